// SPDX-License-Identifier: Apache-2.0
// The nan check, see the header.
#include "simulator/checks/nan_check.h"

#include "isa/insn_desc.h"
#include "simulator/block.h"
#include "simulator/launch.h"
#include "simulator/program.h"

#include <fmt/format.h>

#include <cstring>

namespace pto::sim {

namespace {

enum Topic : unsigned { kNotFinite, kDivision };

enum Computes : uint8_t { kNothing, kFloatResult, kIntegerDivision, kMatrix };

bool is_float_like(isa::Type type) {
  return isa::is_float(type) || type == isa::Type::kF16x2;
}

// All exponent bits set: infinity or NaN.
bool is_finite(uint64_t bits, isa::Type type) {
  switch (type) {
  case isa::Type::kF32:
    return (bits & 0x7f800000) != 0x7f800000;
  case isa::Type::kF16:
    return (bits & 0x7c00) != 0x7c00;
  case isa::Type::kBF16:
    return (bits & 0x7f80) != 0x7f80;
  case isa::Type::kF16x2:
    return (bits & 0x7c00) != 0x7c00 && (bits & 0x7c000000) != 0x7c000000;
  default:
    return true;
  }
}

bool is_nan(uint64_t bits, isa::Type type) {
  switch (type) {
  case isa::Type::kF32:
    return (bits & 0x7fffffff) > 0x7f800000;
  case isa::Type::kF16:
    return (bits & 0x7fff) > 0x7c00;
  case isa::Type::kBF16:
    return (bits & 0x7fff) > 0x7f80;
  case isa::Type::kF16x2:
    return (bits & 0x7fff) > 0x7c00 || (bits >> 16 & 0x7fff) > 0x7c00;
  default:
    return false;
  }
}

// Which insns make values, judged by the row's columns. A load, a shuffle or a copy of a register
// makes none; a float immediate that is infinite is a source that is not finite.
uint8_t classify(const isa::Insn& insn) {
  const isa::InsnDesc& desc = *insn.desc;
  if (desc.unit == isa::Unit::kC) {
    return isa::is_float(insn.type) ? kMatrix : kNothing;
  }
  if (desc.has(isa::kDivides) && isa::is_integer(insn.type)) {
    return kIntegerDivision;
  }
  if (insn.operand_count < 2 || insn.operands[0].kind != isa::OperandKind::kReg32 ||
      desc.has(isa::kReadsMem) || desc.has(isa::kWritesMem)) {
    return kNothing;
  }
  bool has_float_source = false;
  for (unsigned i = 1; i < insn.operand_count; ++i) {
    has_float_source |= is_float_like(isa::operand_type(insn, i));
  }
  const isa::Type result = isa::operand_type(insn, 0);
  return is_float_like(result) && (has_float_source || isa::is_integer(insn.type2)) ? kFloatResult
                                                                                    : kNothing;
}

bool all_finite(const uint8_t* bytes, uint64_t size_bytes, isa::Type type) {
  const unsigned element = isa::size_bytes(type);
  for (uint64_t at = 0; at + element <= size_bytes; at += element) {
    uint64_t bits = 0;
    std::memcpy(&bits, bytes + at, element);
    if (!is_finite(bits, type)) {
      return false;
    }
  }
  return true;
}

} // namespace

void NanCheck::launch_begin(const Launch& launch) {
  computes_.clear();
  for (const ProgramInsn& decoded : launch.program().insns()) {
    computes_.push_back(classify(decoded.insn));
  }
}

void NanCheck::before_insn(const EventSite& site, uint32_t, uint32_t exec_mask) {
  const uint8_t computes = computes_[site.pc];
  finite_lanes_ = exec_mask;
  number_lanes_ = exec_mask;
  zero_divisor_lanes_ = 0;
  if (computes == kNothing || exec_mask == 0) {
    return;
  }
  const isa::Insn& insn = site.block.next_insn(site.warp).insn;
  const uint32_t first_lane = site.warp * isa::kWarpLanes;
  if (computes == kIntegerDivision) {
    for (unsigned lane = 0; lane < isa::kWarpLanes; ++lane) {
      if ((exec_mask >> lane & 1) != 0 &&
          site.block.source_value(insn.operands[2], insn.type, first_lane + lane) == 0) {
        zero_divisor_lanes_ |= 1u << lane;
      }
    }
    return;
  }
  for (unsigned i = 1; computes == kFloatResult && i < insn.operand_count; ++i) {
    const isa::Type type = isa::operand_type(insn, i);
    if (!is_float_like(type)) {
      continue;
    }
    for (unsigned lane = 0; lane < isa::kWarpLanes; ++lane) {
      if ((exec_mask >> lane & 1) == 0) {
        continue;
      }
      const uint64_t bits = site.block.source_value(insn.operands[i], type, first_lane + lane);
      if (!is_finite(bits, type)) {
        finite_lanes_ &= ~(1u << lane);
      }
      if (is_nan(bits, type)) {
        number_lanes_ &= ~(1u << lane);
      }
    }
  }
  // A reduction mixes lanes: one that is not finite reaches them all.
  if (insn.desc->has(isa::kCrossLane)) {
    finite_lanes_ = finite_lanes_ == exec_mask ? exec_mask : 0;
    number_lanes_ = number_lanes_ == exec_mask ? exec_mask : 0;
  }
}

void NanCheck::after_insn(const BlockRun& block, const IssueRecord& record) {
  if (record.exec_mask == 0 || record.passed_over) {
    return;
  }
  switch (computes_[record.pc]) {
  case kIntegerDivision:
    if (zero_divisor_lanes_ != 0 &&
        !findings_.count_known(CheckKind::kNan, record.pc, Findings::kNoPc, kDivision)) {
      findings_.add({.kind = CheckKind::kNan,
                     .message =
                         "integer division by zero (the result is defined: all ones, and the "
                         "dividend as remainder)",
                     .hint = "test the divisor, or guard the division with a predicate",
                     .here = {.pc = record.pc,
                              .block = block.index(),
                              .warp = record.warp,
                              .lane_mask = zero_divisor_lanes_,
                              .what = "division"}},
                    kDivision);
    }
    break;
  case kFloatResult:
    lane_results(block, record);
    break;
  case kMatrix:
    matrix_result(block, record);
    break;
  default:
    break;
  }
}

void NanCheck::lane_results(const BlockRun& block, const IssueRecord& record) {
  const isa::Type type = isa::operand_type(*record.insn, 0);
  uint32_t made_infinity = 0;
  uint32_t made_nan = 0;
  for (unsigned lane = 0; lane < isa::kWarpLanes; ++lane) {
    if ((record.exec_mask >> lane & 1) == 0) {
      continue;
    }
    const uint32_t bits =
        block.reg32(record.insn->operands[0].index, record.warp * isa::kWarpLanes + lane);
    if (is_nan(bits, type)) {
      made_nan |= number_lanes_ & 1u << lane;
    } else if (!is_finite(bits, type)) {
      made_infinity |= finite_lanes_ & 1u << lane;
    }
  }
  if (made_nan != 0) {
    const bool from_finite = (made_nan & finite_lanes_) != 0;
    report(block,
           record,
           made_nan,
           from_finite ? "NaN made from finite operands" : "NaN made from infinite operands");
  } else if (made_infinity != 0) {
    report(block, record, made_infinity, "infinity made from finite operands");
  }
}

// The record names the tiles in operand order: C, A, B. C's old content is gone by now, so an
// accumulator that was not finite before counts as made here if A and B are finite.
void NanCheck::matrix_result(const BlockRun& block, const IssueRecord& record) {
  const uint8_t* l1 = block.scratchpad().data();
  if (record.l1_count < 3) {
    return;
  }
  const L1Record& c = record.l1[0];
  const bool inputs_finite =
      all_finite(l1 + record.l1[1].offset, record.l1[1].size_bytes, record.insn->type2) &&
      all_finite(l1 + record.l1[2].offset, record.l1[2].size_bytes, record.insn->type2);
  if (inputs_finite && !all_finite(l1 + c.offset, c.size_bytes, isa::Type::kF32)) {
    report(block, record, 0, "NaN or infinity in the product of finite tiles");
  }
}

void NanCheck::report(const BlockRun& block,
                      const IssueRecord& record,
                      uint32_t lanes,
                      const std::string& message) {
  if (findings_.count_known(CheckKind::kNan, record.pc, Findings::kNoPc, kNotFinite)) {
    return;
  }
  findings_.add(
      {.kind = CheckKind::kNan,
       .message = message,
       .hint = "look at the operands of this insn: print them, or break here in the debugger",
       .here = {.pc = record.pc,
                .block = block.index(),
                .warp = record.warp,
                .lane_mask = lanes,
                .what = "computation"}},
      kNotFinite);
}

} // namespace pto::sim
