// SPDX-License-Identifier: Apache-2.0
// The lane-wise comparison, and the test that every row has a reference.
#include "semantics.h"

#include "isa/lane_ops.h"
#include "isa/print.h"
#include "isa/table.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>

namespace pto::test {

using namespace pto::isa;

namespace {

constexpr unsigned kRandomTuples = 10000;
constexpr unsigned kMaxFailures = 3; // shown of one shape
constexpr unsigned kDst = 20;
constexpr unsigned kWideLanes = 2 * kPieceLanes + 32; // computed in pieces, the last one shorter

// Values of all sources, one after the other.
struct Tuples {
  unsigned arity = 0;
  std::vector<uint64_t> values;
  size_t size() const { return arity == 0 ? 0 : values.size() / arity; }
  const uint64_t* at(size_t i) const { return values.data() + i * arity; }
};

Tuples make_tuples(const Insn& insn) {
  Tuples tuples{.arity = insn.operand_count - 1u, .values = {}};
  std::vector<std::vector<uint64_t>> edges;
  size_t count = 1;
  for (unsigned i = 1; i < insn.operand_count; ++i) {
    const Type type = operand_type(insn, i);
    edges.push_back(insn.operand_count > 3 ? few_edge_values(type) : edge_values(type));
    count *= edges.back().size();
  }
  for (size_t i = 0; i < count; ++i) {
    size_t rest = i;
    for (const std::vector<uint64_t>& of_source : edges) {
      tuples.values.push_back(of_source[rest % of_source.size()]);
      rest /= of_source.size();
    }
  }
  Random random(0x9e3779b97f4a7c15u ^ insn.desc->opcode);
  for (unsigned i = 0; i < kRandomTuples; ++i) {
    for (unsigned s = 1; s < insn.operand_count; ++s) {
      tuples.values.push_back(random_value(operand_type(insn, s), random));
    }
  }
  return tuples;
}

bool is_register(const Operand& operand) {
  return operand.kind == OperandKind::kReg32 || operand.kind == OperandKind::kReg64 ||
         operand.kind == OperandKind::kPred;
}

bool same_register(const Operand& a, const Operand& b) {
  return is_register(a) && a.kind == b.kind && a.index == b.index;
}

std::string text_of(const Insn& insn) {
  const Object object = object_with({});
  return print_insn(insn, object, object.functions[1]);
}

// All registers and predicates of a context, to see what an insn has touched.
struct State {
  std::vector<uint32_t> r;
  std::vector<uint64_t> d;
  std::vector<uint32_t> p;

  explicit State(TestContext& ctx)
      : r(ctx.reg32(0), ctx.reg32(0) + size_t{kReg32Count} * ctx.lanes()),
        d(ctx.reg64(0), ctx.reg64(0) + size_t{kReg64Count} * ctx.lanes()),
        p(ctx.pred(0), ctx.pred(0) + size_t{kPredCount} * ctx.lanes() / kWarpLanes) {}
  bool operator==(const State&) const = default;
};

class LaneCheck {
public:
  LaneCheck(const Insn& insn, const LaneValue& expected, const LaneMatch& match)
      : insn_(insn), match_(match), tuples_(make_tuples(insn)) {
    for (size_t i = 0; i < tuples_.size(); ++i) {
      wants_.push_back(expected(tuples_.at(i)));
    }
  }

  /// All tuples from `first` to `last` in spans of that many lanes.
  void run(const Insn& insn, unsigned lanes, bool masked, size_t first, size_t last) {
    TestContext ctx(lanes);
    Random random(lanes + insn.desc->opcode);
    for (size_t at = first; at < last && failures_ < kMaxFailures; at += lanes) {
      ctx.activate(masked ? random_mask(random, lanes / kWarpLanes)
                          : std::vector<uint32_t>(lanes / kWarpLanes, ~0u));
      run_span(ctx, insn, at);
    }
  }

  void run_all() {
    const size_t all = tuples_.size();
    run(insn_, 320, false, 0, all);
    run(insn_, 128, true, 0, all);
    run(insn_, 32, true, all - std::min<size_t>(all, 512), all);
    for (unsigned i = 1; i < insn_.operand_count; ++i) {
      Insn varied = insn_;
      varied.operands[0].index = insn_.operands[i].index;
      if (same_register(varied.operands[0], varied.operands[i])) {
        run(varied, 96, true, 0, std::min<size_t>(all, 2048));
        run(varied, 96, true, all - std::min<size_t>(all, 2048), all);
      }
      varied = insn_;
      varied.operands[i].negated = true;
      if (validate(varied).empty()) {
        run(varied, 64, true, 0, all);
      }
    }
  }

  /// The result somewhere else than in its register, which stays as it was.
  void run_placed() {
    const Operand& dst = insn_.operands[0];
    if (!holds_lanes(dst)) {
      return;
    }
    TestContext ctx(kWideLanes);
    std::vector<uint64_t> result(kWideLanes, 0x5a5a5a5a5a5a5a5au);
    set_sources(ctx, insn_, 0);
    for (unsigned lane = 0; lane < kWideLanes; ++lane) {
      ctx.set(dst, lane, lane);
    }
    ctx.place_results(result.data());
    static_cast<void>(insn_.desc->exec(ctx, insn_));
    const auto* narrow = reinterpret_cast<const uint32_t*>(result.data());
    for (unsigned lane = 0; lane < kWideLanes && failures_ < kMaxFailures; ++lane) {
      const uint64_t got = dst.kind == OperandKind::kReg64 ? result[lane] : narrow[lane];
      check(insn_, tuples_.at(lane), got, wants_[lane]);
      if (ctx.get(dst, lane) != lane) {
        ++failures_;
        FAIL_CHECK(text_of(insn_), " writes its register, too");
      }
    }
  }

  /// Source `i` as immediate and parameter of a few values.
  void run_constants(const LaneValue& expected) {
    TestContext ctx(64);
    TestContext wide(kWideLanes);
    for (unsigned i = 1; i < insn_.operand_count; ++i) {
      const Type type = operand_type(insn_, i);
      for (const uint64_t edge : edge_values(type)) {
        const uint64_t value = bits(type) == 64 ? edge : edge & ((uint64_t{1} << bits(type)) - 1);
        for (const OperandKind kind : {OperandKind::kImm, OperandKind::kParam}) {
          Insn varied = insn_;
          varied.operands[i] = kind == OperandKind::kImm ? Operand::immediate(value)
                                                         : Operand{.kind = kind, .index = 0};
          if (!validate(varied).empty() || failures_ >= kMaxFailures) {
            continue;
          }
          ctx.params = wide.params = {value};
          run_constant(ctx, varied, i, value, expected);
          if (edge == edge_values(type).back()) {
            run_constant(wide, varied, i, value, expected);
          }
        }
      }
    }
  }

private:
  void run_span(TestContext& ctx, const Insn& insn, size_t at) {
    const unsigned lanes = ctx.lanes();
    for (unsigned lane = 0; lane < lanes; ++lane) {
      ctx.set(insn.operands[0], lane, 0x5a5a5a5a00000001u + lane * 0x01010101u);
    }
    set_sources(ctx, insn, at);
    std::vector<uint64_t> old(lanes);
    for (unsigned lane = 0; lane < lanes; ++lane) {
      old[lane] = ctx.get(insn.operands[0], lane);
    }
    const bool looks_at_all = lanes <= 64; // a copy of all registers costs more than the insn
    const auto before = looks_at_all ? std::optional<State>(ctx) : std::nullopt;
    if (insn.desc->exec(ctx, insn) != Outcome::kNext) {
      ++failures_;
      FAIL_CHECK(text_of(insn), " does not go on with the next insn: ", ctx.fault_text);
    }
    for (unsigned lane = 0; lane < lanes && failures_ < kMaxFailures; ++lane) {
      const uint64_t got = ctx.get(insn.operands[0], lane);
      const size_t t = (at + lane) % tuples_.size();
      if (ctx.is_active(lane)) {
        check(insn, tuples_.at(t), got, wants_[t]);
      } else if (got != old[lane]) {
        ++failures_;
        FAIL_CHECK(text_of(insn), " writes inactive lane ", lane);
      }
      ctx.set(insn.operands[0], lane, old[lane]);
    }
    if (looks_at_all && State(ctx) != *before && failures_ < kMaxFailures) {
      ++failures_;
      FAIL_CHECK(text_of(insn), " changes a register other than its destination");
    }
  }

  void set_sources(TestContext& ctx, const Insn& insn, size_t at) const {
    for (unsigned lane = 0; lane < ctx.lanes(); ++lane) {
      const uint64_t* sources = tuples_.at((at + lane) % tuples_.size());
      for (unsigned s = 1; s < insn.operand_count; ++s) {
        ctx.set(insn.operands[s], lane, sources[s - 1] ^ (insn.operands[s].negated ? 1u : 0u));
      }
    }
  }

  void run_constant(TestContext& ctx,
                    const Insn& insn,
                    unsigned constant,
                    uint64_t value,
                    const LaneValue& expected) {
    std::vector<uint64_t> sources(tuples_.arity);
    const size_t first = tuples_.size() - ctx.lanes();
    const auto tuple_of = [&](unsigned lane) {
      const uint64_t* others = tuples_.at(first + lane);
      std::copy(others, others + tuples_.arity, sources.begin());
      sources[constant - 1] = value;
    };
    for (unsigned lane = 0; lane < ctx.lanes(); ++lane) {
      tuple_of(lane);
      for (unsigned s = 1; s < insn.operand_count; ++s) {
        if (s != constant) {
          ctx.set(insn.operands[s], lane, sources[s - 1]);
        }
      }
    }
    static_cast<void>(insn.desc->exec(ctx, insn));
    for (unsigned lane = 0; lane < ctx.lanes() && failures_ < kMaxFailures; ++lane) {
      tuple_of(lane);
      check(insn, sources.data(), ctx.get(insn.operands[0], lane), expected(sources.data()));
    }
  }

  void check(const Insn& insn, const uint64_t* sources, uint64_t got, uint64_t want) {
    if (match_ ? match_(got, want) : got == want) {
      return;
    }
    ++failures_;
    std::string text = text_of(insn) + " of";
    for (unsigned s = 0; s < tuples_.arity; ++s) {
      text += fmt::format(" {:#x}", sources[s]);
    }
    FAIL_CHECK(text, fmt::format(" gives {:#x}, the reference {:#x}", got, want));
  }

  Insn insn_;
  const LaneMatch& match_;
  Tuples tuples_;
  std::vector<uint64_t> wants_;
  unsigned failures_ = 0;
};

} // namespace

std::vector<uint32_t> random_mask(Random& random, unsigned warps) {
  std::vector<uint32_t> words;
  for (unsigned w = 0; w < warps; ++w) {
    const uint32_t bits = random.bits32();
    const uint32_t choice = random.bits32() % 6;
    words.push_back(choice == 0   ? 0
                    : choice == 1 ? ~0u
                    : choice == 2 ? 1u << bits % 32
                    : choice == 3 ? (bits | 1) >> bits % 31 // as a partial last warp
                                  : bits);
  }
  return words;
}

void check_lanes(const Insn& shape, const LaneValue& expected, const LaneMatch& match) {
  const Insn insn = with_registers(
      shape,
      shape.desc->operands[0].type == TypeRule::kPred || shape.type == Type::kPred ? kPredCount - 1
                                                                                   : kDst);
  REQUIRE_MESSAGE(validate(insn).empty(), name_of(shape), ": ", validate(insn));
  LaneCheck check(insn, expected, match);
  check.run_all();
  check.run_placed();
  check.run_constants(expected);
}

void no_reference(const Insn& shape) {
  FAIL_CHECK("no reference for ", name_of(shape), ": add one to tests/generated");
}

std::string_view mod_of(const Insn& insn, std::string_view group) {
  for (unsigned g = 0; g < insn.desc->mods.size(); ++g) {
    if (insn.desc->mods[g]->name == group) {
      return insn.desc->mods[g]->values[insn.mods[g]].suffix;
    }
  }
  return "";
}

void run_family(std::span<const RowTest> tests) {
  for (const RowTest& test : tests) {
    const InsnDesc* row = find_insn(test.mnemonic);
    REQUIRE_MESSAGE(row != nullptr, "no row ", test.mnemonic);
    for (const Insn& shape : shapes_of(*row)) {
      test.run(shape);
    }
  }
}

// The table's ADD with other semantics; what the comparison should see.
template <Outcome (*kExec)(ExecContext&, const Insn&)> void check_broken_add() {
  InsnDesc row = *find_insn("add");
  row.exec = kExec;
  check_lanes({.desc = &row, .type = Type::kU32},
              [](const uint64_t* s) { return slot_of(Type::kU32, Int128{s[0]} + Int128{s[1]}); });
}

Outcome add_right(ExecContext& ctx, const Insn& insn) {
  return find_insn("add")->exec(ctx, insn);
}
Outcome add_wrong_once(ExecContext& ctx, const Insn& insn) {
  const uint32_t* a = ctx.source32(insn.operands[1]);
  const bool carries = a[0] == 0x80000001u && ctx.all_active();
  const Outcome outcome = find_insn("add")->exec(ctx, insn);
  ctx.reg32(insn.operands[0].index)[0] += carries ? 1 : 0;
  return outcome;
}
Outcome add_in_all_lanes(ExecContext& ctx, const Insn& insn) {
  const uint32_t* a = ctx.source32(insn.operands[1]);
  const uint32_t* b = ctx.source32(insn.operands[2]);
  for (unsigned lane = 0; lane < ctx.lanes(); ++lane) {
    ctx.reg32(insn.operands[0].index)[lane] = a[lane] + b[lane];
  }
  return Outcome::kNext;
}
Outcome add_with_scratch(ExecContext& ctx, const Insn& insn) {
  ctx.reg32(99)[0] += 1;
  return find_insn("add")->exec(ctx, insn);
}
Outcome add_destination_first(ExecContext& ctx, const Insn& insn) {
  uint32_t* d = ctx.reg32(insn.operands[0].index);
  for (const unsigned source : {1u, 2u}) {
    const uint32_t* values = ctx.source32(insn.operands[source]);
    for (unsigned lane = 0; lane < ctx.lanes(); ++lane) {
      if ((ctx.active_words()[lane / 32] >> lane % 32 & 1) != 0) {
        d[lane] = source == 1 ? values[lane] : d[lane] + values[lane];
      }
    }
  }
  return Outcome::kNext;
}

TEST_CASE("the comparison itself lets a right row pass") {
  check_broken_add<add_right>();
}
TEST_CASE("the comparison sees a result that is wrong once" * doctest::should_fail()) {
  check_broken_add<add_wrong_once>();
}
TEST_CASE("the comparison sees writes to inactive lanes" * doctest::should_fail()) {
  check_broken_add<add_in_all_lanes>();
}
TEST_CASE("the comparison sees writes to other registers" * doctest::should_fail()) {
  check_broken_add<add_with_scratch>();
}
TEST_CASE("the comparison sees a source that is overwritten too early" * doctest::should_fail()) {
  check_broken_add<add_destination_first>();
}
TEST_CASE("a type without a reference fails" * doctest::should_fail()) {
  no_reference({.desc = find_insn("add"), .type = Type::kU32});
}

TEST_CASE("every row of the table has a reference") {
  std::multiset<std::string_view> tested;
  for (const auto tests : {arith_tests(),
                           float_tests(),
                           logic_tests(),
                           convert_tests(),
                           memory_tests(),
                           atomic_tests(),
                           copy_tests(),
                           matrix_tests(),
                           warp_tests(),
                           control_tests()}) {
    for (const RowTest& test : tests) {
      tested.insert(test.mnemonic);
    }
  }
  for (const InsnDesc* row : all_insns()) {
    CHECK_MESSAGE(tested.count(row->mnemonic) == 1,
                  row->mnemonic,
                  " has no reference in tests/generated (or two)");
  }
  CHECK(tested.size() == all_insns().size());
}

} // namespace pto::test
