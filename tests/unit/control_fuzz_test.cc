// SPDX-License-Identifier: Apache-2.0
// Random structured programs against an interpreter that runs one lane at a time and knows no
// warps: whatever lanes do together, each must compute what it computes alone.
#include "sim_fixture.h"

#include <fmt/format.h>

#include <random>

namespace pto::sim {
namespace {

/// One node of a structured program over a lane's value v (r2) and lane number (r0).
struct Node {
  enum Kind { kMix, kIf, kLoop, kBreak, kExit, kCall, kReturn } kind = kMix;
  uint32_t constant = 0;
  std::vector<Node> first;
  std::vector<Node> second;
};
using Nodes = std::vector<Node>;

constexpr unsigned kFunctions = 3;

class Generator {
public:
  explicit Generator(uint32_t seed) : random_(seed) {
    for (unsigned f = 0; f < kFunctions; ++f) {
      functions[f] = nodes(2, false, f);
    }
    kernel = nodes(4, false, kFunctions);
  }
  Nodes kernel;
  Nodes functions[kFunctions]; // function f calls only functions below f

private:
  uint32_t below(uint32_t limit) { return static_cast<uint32_t>(random_() % limit); }

  Nodes nodes(unsigned depth, bool in_loop, unsigned function) {
    Nodes list;
    const uint32_t count = 1 + below(4);
    for (uint32_t i = 0; i < count; ++i) {
      list.push_back(node(depth, in_loop, function));
    }
    return list;
  }
  Node node(unsigned depth, bool in_loop, unsigned function) {
    Node made;
    made.constant = static_cast<uint32_t>(random_());
    const uint32_t choice = below(16);
    if (depth > 0 && choice < 5) {
      made.kind = Node::kIf;
      made.first = nodes(depth - 1, in_loop, function);
      if (below(2) != 0) {
        made.second = nodes(depth - 1, in_loop, function);
      }
    } else if (depth > 0 && choice < 8) {
      made.kind = Node::kLoop;
      made.first = nodes(depth - 1, true, function);
    } else if (in_loop && choice < 10) {
      made.kind = Node::kBreak;
    } else if (function > 0 && choice < 12) {
      made.kind = Node::kCall;
      made.second.resize(below(function)); // callee: its size
    } else if (choice == 12 && below(4) == 0) {
      made.kind = Node::kExit;
    } else if (choice == 13 && function < kFunctions) {
      made.kind = Node::kReturn;
    }
    return made;
  }
  std::mt19937 random_;
};

constexpr unsigned kConditionShift = 29; // top bits of a mixed value

uint32_t mixed(uint32_t value, uint32_t constant) {
  return value * 1664525u + constant;
}

/// Conditions hold for about half of the lanes, breaks and exits for an eighth.
bool holds(uint32_t value, uint32_t constant, unsigned shift) {
  return (mixed(value, constant) >> shift) == 0;
}

class Writer {
public:
  std::string text(const Generator& program) {
    out_ = ".pto 1\n.kernel k(ptr o)\n    mov.u32 r0, %tid.x\n    mov.u32 r2, r0\n";
    write(program.kernel, {}, 3);
    out_ += "    call finish\n    exit\n.end\n";
    for (unsigned f = 0; f < kFunctions; ++f) {
      out_ += fmt::format(".func f{}\n", f);
      write(program.functions[f], {}, 20 + 20 * f);
      out_ += "    ret\n.end\n";
    }
    // The value goes out through an address that finish computes from the parameter's copy.
    out_ += ".func finish\n    store.u32 hbm[d0 + r0*4], r2\n    ret\n.end\n";
    const size_t at = out_.find("    mov.u32 r2, r0\n");
    out_.insert(at, "    mov.b64 d0, o\n");
    return out_;
  }

private:
  void condition(uint32_t constant, unsigned shift) {
    out_ += fmt::format("    mul.u32 r1, r2, 1664525\n    add.u32 r1, r1, {}\n    shr.b32 r1, r1, "
                        "{}\n    cmp.eq.u32 p0, r1, 0\n",
                        constant,
                        shift);
  }
  void write(const Nodes& list, const std::string& break_label, unsigned counter) {
    for (const Node& node : list) {
      write(node, break_label, counter);
    }
  }
  void write(const Node& node, const std::string& break_label, unsigned counter) {
    const unsigned id = next_++;
    if (node.kind == Node::kMix) {
      out_ += fmt::format("    mul.u32 r2, r2, 1664525\n    add.u32 r2, r2, {}\n", node.constant);
    } else if (node.kind == Node::kIf) {
      condition(node.constant, 31);
      out_ += fmt::format("@!p0 bra else{}\n", id);
      write(node.first, break_label, counter);
      out_ += fmt::format("    bra fi{0}\nelse{0}:\n", id);
      write(node.second, break_label, counter);
      out_ += fmt::format("fi{}:\n", id);
    } else if (node.kind == Node::kLoop) { // (v & 3) + 1 times
      out_ += fmt::format("    and.b32 r{0}, r2, 3\nloop{1}:\n", counter, id);
      write(node.first, fmt::format("end{}", id), counter + 1);
      out_ += fmt::format("    cmp.eq.u32 p0, r{0}, 0\n    sub.u32 r{0}, r{0}, 1\n@!p0 bra "
                          "loop{1}\nend{1}:\n",
                          counter,
                          id);
    } else if (node.kind == Node::kBreak) {
      condition(node.constant, kConditionShift);
      out_ += fmt::format("@p0 bra {}\n", break_label);
    } else if (node.kind == Node::kExit) {
      condition(node.constant, kConditionShift);
      out_ += fmt::format("@!p0 bra stay{0}\n    call finish\n    exit\nstay{0}:\n", id);
    } else if (node.kind == Node::kCall) {
      condition(node.constant, 31);
      out_ += fmt::format("@p0 call f{}\n", node.second.size());
    } else {
      condition(node.constant, 31);
      out_ += "@p0 ret\n";
    }
  }
  std::string out_;
  unsigned next_ = 0;
};

enum class Flow { kNext, kBreak, kReturn, kExit };

Flow interpret(const Generator& program, const Nodes& list, uint32_t& value) {
  for (const Node& node : list) {
    Flow flow = Flow::kNext;
    if (node.kind == Node::kMix) {
      value = mixed(value, node.constant);
    } else if (node.kind == Node::kIf) {
      flow = interpret(program, holds(value, node.constant, 31) ? node.first : node.second, value);
    } else if (node.kind == Node::kLoop) {
      for (uint32_t left = value & 3;; --left) {
        flow = interpret(program, node.first, value);
        if (flow != Flow::kNext || left == 0) {
          break;
        }
      }
      flow = flow == Flow::kBreak ? Flow::kNext : flow;
    } else if (node.kind == Node::kBreak) {
      flow = holds(value, node.constant, kConditionShift) ? Flow::kBreak : Flow::kNext;
    } else if (node.kind == Node::kExit) {
      flow = holds(value, node.constant, kConditionShift) ? Flow::kExit : Flow::kNext;
    } else if (node.kind == Node::kCall) {
      if (holds(value, node.constant, 31)) {
        flow = interpret(program, program.functions[node.second.size()], value);
        flow = flow == Flow::kExit ? Flow::kExit : Flow::kNext;
      }
    } else {
      flow = holds(value, node.constant, 31) ? Flow::kReturn : Flow::kNext;
    }
    if (flow != Flow::kNext) {
      return flow;
    }
  }
  return Flow::kNext;
}

TEST_CASE("random structured programs compute what each lane computes alone") {
  constexpr uint32_t kLanes = 144; // four warps and a half
  const Schedule schedules[] = {
      {SchedulePolicy::kLockstep, 0}, {SchedulePolicy::kGreedy, 0}, {SchedulePolicy::kRandom, 5}};
  for (uint32_t seed = 0; seed < 150; ++seed) {
    const Generator program(seed);
    const std::string text = Writer().text(program);
    CAPTURE(seed);
    CAPTURE(text);
    std::vector<uint32_t> expected(kLanes);
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      expected[lane] = lane;
      interpret(program, program.kernel, expected[lane]);
    }
    SimFixture sim(text);
    const uint64_t out = sim.words(std::vector<uint32_t>(kLanes));
    RunResult result = sim.run({1}, {kLanes});
    REQUIRE(result.status == RunStatus::kCompleted);
    REQUIRE(sim.read(out) == expected);
    const Schedule& schedule = schedules[seed % 3];
    REQUIRE(sim.machine.hbm.write(out, std::vector<uint8_t>(kLanes * 4)));
    const RunResult stepped = run_scheduled(*sim.launch({1}, {kLanes}), schedule);
    REQUIRE(stepped.status == RunStatus::kCompleted);
    REQUIRE(sim.read(out) == expected);
    REQUIRE(stepped.counts.warp_insns == result.counts.warp_insns);
    REQUIRE(stepped.counts.lane_insns == result.counts.lane_insns);
  }
}

} // namespace
} // namespace pto::sim
