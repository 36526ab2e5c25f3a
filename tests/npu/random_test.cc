// SPDX-License-Identifier: Apache-2.0
// Random kernels: the emitted file, built by the host compiler, gives the simulator's bits.
//
// Two kinds. Structured ones nest if, else, loops with breaks and continues, calls and exits, and
// use memory, atomics and warp functions at any depth. Tangled ones jump to labels at random, into
// loops too; there which lanes are together is not the same everywhere (see simt_host.cc), so they
// compute lane by lane. PTO_NPU_RANDOM=500 runs so many of each kind; the default is a part of
// that.
#include "host_build.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdlib>
#include <random>

namespace pto::test {
namespace {

constexpr uint32_t kLanes = 80; // two warps and a half

class Writer {
public:
  explicit Writer(uint32_t seed) : random_(seed) {}

  // r0: lane, r1: address of the lane's 64 bytes, r10..r15, d10..d12: values, p1..p3: conditions;
  // r20 and up: trip counters.
  std::string nested(const std::string& name) {
    has_warp_insns_ = true;
    return broken(name);
  }
  std::string broken(const std::string& name) {
    begin(name);
    nodes(4, "", "", 20);
    end();
    out_ += fmt::format(".func f_{}\n", name);
    can_call_ = false;
    is_function_ = true;
    nodes(2, "", "", 50);
    out_ += "    ret\n.end\n";
    return out_;
  }

  std::string tangled(const std::string& name) {
    begin(name);
    const uint32_t labels = 3 + below(7);
    out_ += "    mov.u32 r20, 40\n"; // jumps that a lane may make
    for (uint32_t i = 0; i < labels; ++i) {
      out_ += fmt::format("to{}:\n", i);
      for (uint32_t k = below(3); k > 0; --k) {
        lane_insn();
      }
      condition();
      out_ += "    cmp.gt.and.u32 p1, r20, 0, p1\n@p1 sub.u32 r20, r20, 1\n";
      out_ += fmt::format("@p1 bra to{}\n", below(labels));
    }
    end();
    return out_;
  }

private:
  uint32_t below(uint32_t limit) { return static_cast<uint32_t>(random_() % limit); }
  uint32_t value() { return 10 + below(6); }
  template <size_t kCount> const char* one_of(const char* const (&names)[kCount]) {
    return names[below(kCount)];
  }

  void begin(const std::string& name) {
    name_ = name;
    out_ = fmt::format(".kernel {}(ptr a, ptr o, u32 n)\n    mov.u32 r0, %tid.x\n"
                       "    shl.b32 r1, r0, 6\n",
                       name);
    for (uint32_t r = 10; r < 16; ++r) {
      out_ += fmt::format("    load.u32 r{}, hbm[a + r1 + {}]\n", r, (r - 10) * 4);
    }
    for (uint32_t d = 10; d < 13; ++d) {
      out_ += fmt::format("    load.u64 d{}, hbm[a + r1 + {}]\n", d, 24 + (d - 10) * 8);
    }
    out_ +=
        "    store.u32 l1[s + r0*4], r10\n    mov.pred p1, 0\n    mov.pred p2, 0\n    mov.pred p3, "
        "0\n    barrier_block\n";
  }
  void end() {
    for (uint32_t r = 10; r < 16; ++r) {
      out_ += fmt::format("    store.u32 hbm[o + r1 + {}], r{}\n", (r - 10) * 4, r);
    }
    for (uint32_t d = 10; d < 13; ++d) {
      out_ += fmt::format("    store.u64 hbm[o + r1 + {}], d{}\n", 24 + (d - 10) * 8, d);
    }
    out_ += "    exit\n.end\n";
  }

  void condition() {
    static constexpr const char* const kCompare[] = {"eq", "ne", "lt", "le", "gt", "ge"};
    static constexpr const char* const kType[] = {"u32", "s32", "f32", "u16"};
    out_ += fmt::format(
        "    cmp.{}.{} p1, r{}, r{}\n", one_of(kCompare), one_of(kType), value(), value());
  }

  void lane_insn() {
    static constexpr const char* const kTwo[] = {
        "add.u32",  "sub.s32",   "mul.u32", "mul.f32", "add.f32",   "min.s32", "max.f32",
        "and.b32",  "xor.b32",   "shl.b32", "shr.s32", "div.u32",   "rem.s32", "add.f16",
        "mul.bf16", "mulhi.u32", "div.f32", "sub.s16", "add.f16x2", "pow.f32"};
    static constexpr const char* const kOne[] = {"neg.s32",
                                                 "abs.f32",
                                                 "popc.b32",
                                                 "clz.b32",
                                                 "brev.b32",
                                                 "cvt.f32.s32",
                                                 "exp.f32",
                                                 "cvt.s32.f32.rm",
                                                 "cvt.u16.f32.rn",
                                                 "sin.f32",
                                                 "cvt.f16.f32",
                                                 "sqrt.f32"};
    static constexpr const char* const kWide[] = {
        "add.u64", "mul.s64", "xor.b64", "min.u64", "div.s64"};
    const char* guard = below(5) == 0 ? "@!p1 " : below(5) == 0 ? "@p2 " : "";
    switch (below(6)) {
    case 0:
      out_ += fmt::format("{}{} r{}, r{}\n", guard, one_of(kOne), value(), value());
      break;
    case 1:
      out_ += fmt::format("{}{} d{}, d{}, d{}\n",
                          guard,
                          one_of(kWide),
                          10 + below(3),
                          10 + below(3),
                          10 + below(3));
      break;
    case 2:
      out_ += fmt::format("{}mad.wide.u32 d{}, r{}, r{}, d{}\n",
                          guard,
                          10 + below(3),
                          value(),
                          value(),
                          10 + below(3));
      break;
    case 3:
      out_ += fmt::format("{}sel.b32 r{}, r{}, {}, {}p1\n",
                          guard,
                          value(),
                          value(),
                          is_function_ ? "77" : "n",
                          below(2) != 0 ? "!" : "");
      break;
    default:
      out_ += fmt::format("{}{} r{}, r{}, r{}\n", guard, one_of(kTwo), value(), value(), value());
    }
  }

  // Lanes of a warp meet here: memory that others of the warp write, and warp functions.
  void warp_insn() {
    static constexpr const char* const kShuffle[] = {"idx", "up", "down", "xor"};
    static constexpr const char* const kReduce[] = {
        "add.f32", "min.s32", "max.u32", "xor.u32", "add.u32", "max.f32"};
    const uint32_t to = value();
    switch (below(7)) {
    case 0:
      out_ +=
          fmt::format("    shfl.{}.b32 r{}, r{}, {}\n", one_of(kShuffle), to, value(), below(32));
      break;
    case 1:
      out_ += fmt::format("    vote.ballot r{}, p1\n", to);
      break;
    case 2:
      out_ += fmt::format("    reduce.{} r{}, r{}\n", one_of(kReduce), to, value());
      break;
    case 3:
      out_ += fmt::format("    mov.u32 r{}, %activemask\n", to);
      break;
    case 4: // the neighbour's cell of the same warp
      out_ += fmt::format(
          "    and.b32 r2, r0, 0xe0\n    xor.b32 r3, r0, {}\n    and.b32 r3, r3, 31\n    "
          "or.b32 r2, r2, r3\n    store.u32 l1[s + r0*4], r{}\n    barrier\n    load.u32 "
          "r{}, l1[s + r2*4]\n",
          1 + below(31),
          value(),
          to);
      break;
    case 5: // a cell of the warp
      out_ += fmt::format("    shr.b32 r2, r0, 5\n    atom.add.u32 r{}, l1[s + r2*4 + 512], {}\n",
                          to,
                          1 + below(9));
      break;
    default:
      out_ += fmt::format(
          "    vote.{} p3, p1\n    sel.b32 r{}, 3, 4, p3\n", below(2) != 0 ? "any" : "uni", to);
    }
  }

  void nodes(unsigned depth, const std::string& after, const std::string& latch, unsigned counter) {
    for (uint32_t count = 1 + below(4); count > 0; --count) {
      node(depth, after, latch, counter);
    }
  }

  void node(unsigned depth, const std::string& after, const std::string& latch, unsigned counter) {
    const unsigned id = next_++;
    const uint32_t choice = below(18);
    if (depth > 0 && choice < 5) {
      condition();
      out_ += fmt::format("@!p1 bra else{}\n", id);
      const std::string outer = has_warp_insns_ ? "" : after; // no break from here
      nodes(depth - 1, outer, latch, counter);
      if (below(2) != 0) {
        out_ += fmt::format("    bra fi{0}\nelse{0}:\n", id);
        nodes(depth - 1, outer, latch, counter);
        out_ += fmt::format("fi{}:\n", id);
      } else {
        out_ += fmt::format("else{}:\n", id);
      }
    } else if (depth > 0 && choice < 8) {
      out_ += fmt::format("    and.b32 r{0}, r{1}, 3\nloop{2}:\n", counter, value(), id);
      nodes(depth - 1,
            fmt::format("end{}", id),
            has_warp_insns_ ? "" : fmt::format("latch{}", id),
            counter + 1);
      out_ +=
          fmt::format("latch{1}:\n    cmp.eq.u32 p2, r{0}, 0\n    sub.u32 r{0}, r{0}, 1\n@!p2 bra "
                      "loop{1}\nend{1}:\n",
                      counter,
                      id);
    } else if (!after.empty() && choice == 8) {
      condition();
      out_ += fmt::format("@p1 bra {}\n", after);
    } else if (!latch.empty() && choice == 9) {
      condition();
      out_ += fmt::format("@p1 bra {}\n", latch);
    } else if (can_call_ && choice == 10) {
      out_ += fmt::format("{}call f_{}\n", below(2) != 0 ? "@p1 " : "    ", name_);
    } else if (choice == 11 && below(3) == 0) {
      condition();
      out_ += "    cmp.eq.and.u32 p1, r0, 7, p1\n@p1 exit\n";
    } else if (is_function_ && choice == 12) {
      condition();
      out_ += "@p1 ret\n";
    } else if (has_warp_insns_ && choice < 15) {
      warp_insn();
    } else {
      lane_insn();
      lane_insn();
    }
  }

  std::mt19937 random_;
  std::string out_;
  std::string name_;
  unsigned next_ = 0;
  bool can_call_ = true;
  bool has_warp_insns_ = false;
  bool is_function_ = false;
};

uint32_t wanted() {
  const char* number = std::getenv("PTO_NPU_RANDOM");
  return number != nullptr ? static_cast<uint32_t>(std::atoi(number)) : 60;
}

KernelCase launch_of(const std::string& kernel, uint32_t seed) {
  std::mt19937 random(seed);
  KernelCase one{.kernel = kernel,
                 .block = kLanes,
                 .buffers = {std::vector<uint8_t>(kLanes * 64), std::vector<uint8_t>(kLanes * 64)},
                 .scalars = {77}};
  for (size_t i = 0; i < one.buffers[0].size(); i += 4) { // some alike, so that conditions differ
    const auto value = static_cast<uint32_t>(random() % 3 == 0 ? random() : random() % 9);
    for (unsigned b = 0; b < 4; ++b) {
      one.buffers[0][i + b] = static_cast<uint8_t>(value >> (8 * b));
    }
  }
  return one;
}

template <class Write> void run(uint32_t first_seed, Write write) {
  constexpr uint32_t kBatch = 30;
  HostBuild build;
  std::vector<std::pair<size_t, KernelCase>> cases;
  for (uint32_t from = 0; from < wanted(); from += kBatch) {
    std::string text = ".pto 1\n.shared s, u32[256]\n";
    std::vector<KernelCase> batch;
    for (uint32_t i = from; i < from + kBatch && i < wanted(); ++i) {
      const std::string name = fmt::format("k{}", i);
      text += write(Writer(first_seed + i), name);
      batch.push_back(launch_of(name, i));
    }
    const size_t program = build.add(text, {.comments = false});
    for (KernelCase& one : batch) {
      cases.emplace_back(program, std::move(one));
    }
  }
  build.build();
  for (const auto& [program, one] : cases) {
    const std::string difference = build.difference(program, one);
    CHECK_MESSAGE(difference.empty(), difference);
  }
}

TEST_CASE("random nested kernels give the simulator's bits") {
  run(1000, [](Writer writer, const std::string& name) { return writer.nested(name); });
}

TEST_CASE("random broken kernels give the simulator's bits") {
  run(3000, [](Writer writer, const std::string& name) { return writer.broken(name); });
}

TEST_CASE("clock reads change no result") {
  HostBuild build;
  std::string text = ".pto 1\n.shared s, u32[256]\n";
  for (uint32_t i = 0; i < 4; ++i) {
    text += Writer(1000 + i).nested(fmt::format("k{}", i));
  }
  std::vector<size_t> programs;
  for (const rt::Instrument instrument : {rt::Instrument::kInsns,
                                          rt::Instrument::kPairs,
                                          rt::Instrument::kPairsFromSecond,
                                          rt::Instrument::kBlocks,
                                          rt::Instrument::kKernel}) {
    programs.push_back(build.add(text, {.instrument = instrument, .comments = false}));
  }
  build.build();
  for (const size_t program : programs) {
    for (uint32_t i = 0; i < 4; ++i) {
      const uint32_t entries = build.file(program).kernels[i].probe_entries;
      CHECK(entries == 1 + build.file(program).regions.size());
      CHECK((entries > 1) == (program != programs.back()));
      const std::string difference = build.difference(program, launch_of(fmt::format("k{}", i), i));
      CHECK_MESSAGE(difference.empty(), difference);
    }
  }
}

TEST_CASE("random tangled kernels give the simulator's bits") {
  run(5000, [](Writer writer, const std::string& name) { return writer.tangled(name); });
}

} // namespace
} // namespace pto::test
