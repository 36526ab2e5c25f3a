// SPDX-License-Identifier: Apache-2.0
// Operands and addresses of which a formula is known for all lanes: linear in the lanes of a span
// (isa/linear.h) or affine over the grid (isa/affine.h). Private to the simulator.
#pragma once

#include "isa/insn.h"
#include "isa/special.h"
#include "simulator/launch.h"
#include "simulator/program.h"

#include <cstdint>
#include <optional>

namespace pto::sim {

/// Registers of which some hold such values: those in `known`.
template <class Value> struct KnownRegisters {
  const ResourceSet& known;
  const Value* at32 = nullptr;
  const Value* at64 = nullptr;
};

constexpr uint32_t along(const Dim3& sizes, unsigned axis) {
  return axis == 0 ? sizes.x : axis == 1 ? sizes.y : sizes.z;
}

/// A special register of three, one an axis.
struct SpecialOfAxis {
  isa::Special group; // the one of axis 0
  unsigned axis = 0;
};
constexpr std::optional<SpecialOfAxis> special_of_axis(isa::Special special) {
  constexpr auto kFirst = static_cast<unsigned>(isa::Special::kTidX);
  constexpr auto kEnd = static_cast<unsigned>(isa::Special::kGsizeX) + 3;
  static_assert((kEnd - kFirst) % 3 == 0);
  const auto number = static_cast<unsigned>(special);
  if (number < kFirst || number >= kEnd) {
    return std::nullopt;
  }
  const unsigned axis = (number - kFirst) % 3;
  return SpecialOfAxis{static_cast<isa::Special>(number - axis), axis};
}

/// What every lane of a launch reads; nullopt where lanes differ.
inline std::optional<uint32_t> launch_special(const LaunchImage& image, isa::Special special) {
  if (special == isa::Special::kBlocksize) {
    return image.lanes;
  }
  const std::optional<SpecialOfAxis> at = special_of_axis(special);
  if (at && at->group == isa::Special::kNtidX) {
    return along(image.block, at->axis);
  }
  if (at && at->group == isa::Special::kNctaidX) {
    return along(image.grid, at->axis);
  }
  return at && at->group == isa::Special::kGsizeX ? std::optional(along(image.extent, at->axis))
                                                  : std::nullopt;
}

/// Value of a source operand whose registers are known. `special_value(special, value)` tells one
/// that lanes may differ in. False: not known. A predicate is no value, and none is needed.
template <class Value, class SpecialValue>
bool source_value(const isa::Operand& operand,
                  const LaunchImage& image,
                  const KnownRegisters<Value>& registers,
                  const SpecialValue& special_value,
                  Value& value) {
  switch (operand.kind) {
  case isa::OperandKind::kReg32:
    value = registers.at32[operand.index];
    return true;
  case isa::OperandKind::kReg64:
    value = registers.at64[operand.index];
    return true;
  case isa::OperandKind::kImm:
    value = Value::uniform(operand.bits);
    return true;
  case isa::OperandKind::kParam:
    value = Value::uniform(image.params[operand.index]);
    return true;
  case isa::OperandKind::kSymbol:
    value = Value::uniform(image.program->object().symbols[operand.index].offset);
    return true;
  case isa::OperandKind::kSpecial: {
    const auto special = static_cast<isa::Special>(operand.index);
    if (const std::optional<uint32_t> same = launch_special(image, special)) {
      value = Value::uniform(*same);
      return true;
    }
    return special_value(special, value);
  }
  case isa::OperandKind::kPred:
    return true;
  default:
    return false;
  }
}

/// The address in each lane, if all registers in it are known. `base` is the part that all lanes
/// share, with the offset; `has_base` says that a base register is in it already. A register of 32
/// bits counts as `widened(value, is_signed)` says, if that knows.
template <class Value, class Widened>
std::optional<Value> lane_address(const isa::MemRef& mem,
                                  uint64_t base,
                                  bool has_base,
                                  const KnownRegisters<Value>& registers,
                                  const Widened& widened) {
  Value at = Value::uniform(base);
  const auto add = [&](unsigned index, bool is_signed, unsigned scale_log2) {
    const std::optional<Value> value =
        registers.known.has_reg32(index) ? widened(registers.at32[index], is_signed) : std::nullopt;
    if (value) {
      at = at + value->scaled(uint64_t{1} << scale_log2);
    }
    return value.has_value();
  };
  if (mem.base == isa::BaseKind::kReg && !has_base) {
    if (mem.space != isa::Space::kHbm) {
      if (!add(mem.base_index, false, 0)) {
        return std::nullopt;
      }
    } else if (registers.known.has_reg64(mem.base_index)) {
      at = at + registers.at64[mem.base_index];
    } else {
      return std::nullopt;
    }
  }
  if (mem.index_reg != isa::kNoIndexReg && !add(mem.index_reg, true, mem.scale_log2)) {
    return std::nullopt;
  }
  return at;
}

} // namespace pto::sim
