// SPDX-License-Identifier: Apache-2.0
// The parsed form of an expression. Private.
#pragma once

#include "debugger/expression.h"

namespace pto::dbg {

enum class NodeKind : uint8_t {
  kConstant,
  kRegister,
  kSpecial,  // number: isa::Special
  kVariable, // number: Variable
  kHistory,  // number: how far back (is_from_end) or which
  kParam,    // number: parameter
  kSymbol,   // number: Object::symbols
  kAddress,  // space: left, which may already be a place
  kIndex,    // left[right]
  kDeref,
  kAddressOf,
  kCast,  // type, or a pointer to it
  kCount, // left @ right elements
  kLanes, // left @ lanes first..last of the block
  kUnary,
  kBinary,
  kChoice, // left ? right : third
};

enum class Variable : uint8_t { kPc, kLane, kWarp, kBlock, kCore, kCycle, kTid, kPosition };
inline constexpr std::string_view kVariableNames[] = {
    "pc", "lane", "warp", "block", "core", "cycle", "tid", "position"};

enum class Op : uint8_t {
  kNegate,
  kComplement,
  kNot,
  kPlus,
  kMultiply,
  kDivide,
  kRemainder,
  kAdd,
  kSubtract,
  kShiftLeft,
  kShiftRight,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kEqual,
  kNotEqual,
  kAnd,
  kXor,
  kOr,
  kLogicalAnd,
  kLogicalOr,
};

/// To another type as a cast does it.
[[nodiscard]] Value convert(const Value& value, isa::Type type);
/// A binary operator that needs both sides. False with a sentence in `error`.
[[nodiscard]] bool
compute(Op op, const Value& left, const Value& right, Value& out, std::string& error);

struct Node {
  NodeKind kind = NodeKind::kConstant;
  Op op = Op::kPlus;
  Value constant;
  RegisterRef reg{};
  uint32_t number = 0;
  bool is_from_end = false; // kHistory
  bool is_pointer = false;  // kCast
  bool has_all_lanes = false;
  uint32_t first_lane = 0;
  uint32_t last_lane = 0;
  isa::Type type = isa::Type::kNone;
  isa::Space space = isa::Space::kHbm;
  int left = -1;
  int right = -1;
  int third = -1;
};

struct Expression::Tree {
  std::vector<Node> nodes;
  int root = -1;
};

} // namespace pto::dbg
