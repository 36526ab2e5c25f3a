// SPDX-License-Identifier: Apache-2.0
// How semantics are tested: a family says for each mnemonic how one choice of types and modifiers
// is compared with a second implementation; rows, types and modifiers come from the table.
#pragma once

#include "../unit/test_context.h"
#include "insn_choices.h"
#include "reference_values.h"

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace pto::test {

/// The test of one mnemonic; `shape` has types and modifiers, no operands.
struct RowTest {
  std::string_view mnemonic;
  void (*run)(const isa::Insn& shape);
};

// One list a family. The test of the whole table fails for a row that is in none of them.
std::span<const RowTest> arith_tests();
std::span<const RowTest> float_tests();
std::span<const RowTest> logic_tests();
std::span<const RowTest> convert_tests();
std::span<const RowTest> memory_tests();
std::span<const RowTest> atomic_tests();
std::span<const RowTest> copy_tests();
std::span<const RowTest> matrix_tests();
std::span<const RowTest> warp_tests();
std::span<const RowTest> control_tests();

/// Runs each test on every shape of its row.
void run_family(std::span<const RowTest> tests);

/// Fails: the family has no reference for this type or modifier.
void no_reference(const isa::Insn& shape);

/// What the destination must hold, from the values of the sources. A predicate is 0 or 1.
using LaneValue = std::function<uint64_t(const uint64_t* sources)>;
/// Whether `got` will do where LaneValue says `want`; without one, equality.
using LaneMatch = std::function<bool(uint64_t got, uint64_t want)>;

/// Compares a lane-wise insn with its reference: edge values with edge values and 10,000 random
/// ones, in spans of several sizes, all lanes or some active, the destination apart or one of the
/// sources, sources as registers, immediates, parameters and negated predicates. Inactive lanes and
/// other registers must stay as they were.
void check_lanes(const isa::Insn& shape, const LaneValue& expected, const LaneMatch& match = {});

/// The suffix that the insn has of that modifier group; empty if none.
std::string_view mod_of(const isa::Insn& insn, std::string_view group);

/// Masks of a span of that many warps: all lanes, none, one lane, random ones.
std::vector<uint32_t> random_mask(Random& random, unsigned warps);

} // namespace pto::test
