// SPDX-License-Identifier: Apache-2.0
// Suffix families that rows refer to by address. An empty first suffix makes a family optional.
#pragma once

#include "isa/insn_desc.h"

namespace pto::isa {

// clang-format off
inline constexpr ModGroup kCompareOps = {"comparison", {
    {"eq", "equal"}, {"ne", "not equal (holds for NaN)"}, {"lt", "less"}, {"le", "less or equal"},
    {"gt", "greater"}, {"ge", "greater or equal"}}};
inline constexpr ModGroup kCombine = {"combination", {
    {"", "the comparison alone"}, {"and", "and with predicate q"}, {"or", "or with predicate q"}}};
inline constexpr ModGroup kLoadCache = {"cache", {
    {"", "as .ca"}, {"ca", "through the data cache"}, {"cg", "past the data cache, to L2"},
    {"cv", "volatile: fresh from memory"}}};
inline constexpr ModGroup kStoreCache = {"cache", {
    {"", "as .wt"}, {"wt", "write through, updating the data cache"},
    {"cg", "write through, not updating the data cache"}}};
inline constexpr ModGroup kVector = {"vector", {
    {"", "one element"}, {"x2", "two elements, consecutive registers"},
    {"x4", "four elements, consecutive registers"}}};
inline constexpr ModGroup kRounding = {"rounding", {
    {"", "to nearest even; to integers toward zero"}, {"rn", "to nearest even"},
    {"rz", "toward zero"}, {"rm", "toward minus infinity"}, {"rp", "toward plus infinity"}}};
inline constexpr ModGroup kWide = {"width", {
    {"", "the low half"}, {"wide", "the full 64-bit product"}}};
inline constexpr ModGroup kAtomicOps = {"operation", {
    {"add", "old + a"}, {"sub", "old - a"}, {"min", "the smaller"}, {"max", "the larger"},
    {"and", "old & a"}, {"or", "old | a"}, {"xor", "old ^ a"},
    {"inc", "old >= a ? 0 : old + 1"}, {"dec", "old == 0 || old > a ? a : old - 1"},
    {"exch", "a"}, {"cas", "old == a ? b : old"}}};
inline constexpr ModGroup kShuffleModes = {"mode", {
    {"idx", "from lane a of the segment"}, {"up", "from the lane b below"},
    {"down", "from the lane b above"}, {"xor", "from the lane whose number differs by xor b"}}};
inline constexpr ModGroup kVoteModes = {"mode", {
    {"all", "true in all active lanes"}, {"any", "true in some active lane"},
    {"uni", "equal in all active lanes"}, {"ballot", "the lanes where it is true, as bits"}}};
inline constexpr ModGroup kReduceOps = {"operation", {
    {"add", "sum"}, {"min", "smallest"}, {"max", "largest"}, {"and", "bitwise and"},
    {"or", "bitwise or"}, {"xor", "bitwise exclusive or"}}};
inline constexpr ModGroup kFenceScopes = {"scope", {
    {"block", "for the lanes of the block"}, {"device", "for all lanes of the grid"}}};
inline constexpr ModGroup kInvalScopes = {"scope", {
    {"", "as .line with an address, as .all without"},
    {"line", "the line that holds the address"}, {"all", "the whole data cache of the core"}}};
// clang-format on

} // namespace pto::isa
