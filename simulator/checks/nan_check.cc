// SPDX-License-Identifier: Apache-2.0
// The nan check, see the header.
#include "simulator/checks/nan_check.h"

#include "isa/host_level.h"
#include "isa/insn_desc.h"
#include "simulator/block.h"
#include "simulator/launch.h"
#include "simulator/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace pto::sim {

namespace {

enum Topic : unsigned { kNotFinite, kDivision };

enum Computes : uint8_t { kNothing, kFloatResult, kIntegerDivision, kMatrix };

bool is_float_like(isa::Type type) {
  return isa::is_float(type) || type == isa::Type::kF16x2;
}

/// Exponent bits of the float in the low half, and of one in the high half (f16x2) or the same.
std::pair<uint32_t, uint32_t> exponents(isa::Type type) {
  switch (type) {
  case isa::Type::kF32:
    return {0x7f800000, 0x7f800000};
  case isa::Type::kBF16:
    return {0x7f80, 0x7f80};
  case isa::Type::kF16x2:
    return {0x7c00, 0x7c000000};
  default:
    return {0x7c00, 0x7c00};
  }
}

// Infinity and NaN have all exponent bits set.
bool is_finite(uint64_t bits, isa::Type type) {
  const auto [low, high] = exponents(type);
  return !is_float_like(type) || ((bits & low) != low && (bits & high) != high);
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

// Some value has all exponent bits of its low or of its high half set.
PTO_HOST_LOOP bool
has_full_exponent(const uint32_t* values, size_t count, uint32_t low, uint32_t high) {
  uint32_t found = 0;
  for (size_t i = 0; i < count; ++i) {
    found |= static_cast<uint32_t>((values[i] & low) == low) |
             static_cast<uint32_t>((values[i] & high) == high);
  }
  return found != 0;
}

PTO_HOST_LOOP bool has_zero(const uint32_t* values, size_t count) {
  uint32_t found = 0;
  for (size_t i = 0; i < count; ++i) {
    found |= static_cast<uint32_t>(values[i] == 0);
  }
  return found != 0;
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

/// Where a tile operand lies now.
std::pair<uint64_t, uint64_t> tile_range(const BlockRun& block, const isa::Operand& operand) {
  if (operand.kind == isa::OperandKind::kTile) {
    const TileState& tile = block.tiles()[operand.index];
    return {tile.offset, tile.is_live ? tile.size_bytes : 0};
  }
  if (operand.kind == isa::OperandKind::kSymbol) {
    const isa::Symbol& symbol = block.image().program->object().symbols[operand.index];
    return {symbol.offset, symbol.size_bytes};
  }
  return {0, block.scratchpad().used_bytes()};
}

} // namespace

void NanCheck::launch_begin(const Launch& launch) {
  computes_.clear();
  interests_.clear();
  for (const ProgramInsn& decoded : launch.program().insns()) {
    computes_.push_back(classify(decoded.insn));
    interests_.push_back(computes_.back() == kNothing  ? Interest::kNone
                         : computes_.back() == kMatrix ? Interest::kWarp
                                                       : Interest::kSpan);
  }
  old_results_.resize(launch.image().padded_lanes);
}

// ---------------------------------------------------------------- lanes

// Results are looked at when they are there; only one that is not finite asks for the operands.
// What a result overwrites must be kept for that.
void NanCheck::before_span(const SpanRecord& span) {
  const isa::Insn& insn = span.decoded->insn;
  if (computes_[span.pc] == kIntegerDivision) {
    division(span);
    return;
  }
  has_old_results_ = false;
  for (unsigned i = 1; i < insn.operand_count; ++i) {
    has_old_results_ |= insn.operands[i].kind == isa::OperandKind::kReg32 &&
                        insn.operands[i].index == insn.operands[0].index;
  }
  if (has_old_results_) {
    std::copy_n(span.block->reg32_of_warp(insn.operands[0].index, span.first_warp),
                size_t{span.warp_count} * isa::kWarpLanes,
                old_results_.begin());
  }
}

void NanCheck::after_span(const SpanRecord& span) {
  if (computes_[span.pc] != kFloatResult) {
    return;
  }
  const isa::Insn& insn = span.decoded->insn;
  const auto [low, high] = exponents(isa::operand_type(insn, 0));
  const uint32_t* results = span.block->reg32_of_warp(insn.operands[0].index, span.first_warp);
  if (!isa::host_loop<has_full_exponent>.on_host()(
          results, size_t{span.warp_count} * isa::kWarpLanes, low, high)) {
    return;
  }
  for (uint32_t w = 0; w < span.warp_count; ++w, results += isa::kWarpLanes) {
    uint32_t suspicious = 0;
    for (unsigned lane = 0; lane < isa::kWarpLanes; ++lane) {
      const bool is_suspicious = (results[lane] & low) == low || (results[lane] & high) == high;
      suspicious |= uint32_t{is_suspicious} << lane;
    }
    suspicious &= span.exec_masks[w];
    if (suspicious != 0) {
      float_results(span, w, suspicious);
    }
  }
}

void NanCheck::division(const SpanRecord& span) {
  const isa::Insn& insn = span.decoded->insn;
  const isa::Operand& divisor = insn.operands[2];
  const bool is_uniform =
      divisor.kind == isa::OperandKind::kImm || divisor.kind == isa::OperandKind::kParam;
  if (is_uniform && span.block->source_value(divisor, insn.type, 0) != 0) {
    return;
  }
  if (divisor.kind == isa::OperandKind::kReg32 && isa::bits(insn.type) == 32 &&
      !isa::host_loop<has_zero>.on_host()(span.block->reg32_of_warp(divisor.index, span.first_warp),
                                          size_t{span.warp_count} * isa::kWarpLanes)) {
    return;
  }
  for (uint32_t w = 0; w < span.warp_count; ++w) {
    const uint32_t warp = span.first_warp + w;
    uint32_t zero_lanes = 0;
    for (unsigned lane = 0; lane < isa::kWarpLanes; ++lane) {
      if ((span.exec_masks[w] >> lane & 1) != 0 &&
          span.block->source_value(divisor, insn.type, warp * isa::kWarpLanes + lane) == 0) {
        zero_lanes |= 1u << lane;
      }
    }
    if (zero_lanes == 0 ||
        findings_.count_known(CheckKind::kNan, span.pc, Findings::kNoPc, kDivision)) {
      continue;
    }
    findings_.add({.kind = CheckKind::kNan,
                   .message = "integer division by zero (the result is defined: all ones, and the "
                              "dividend as remainder)",
                   .hint = "test the divisor, or guard the division with a predicate",
                   .here = {.pc = span.pc,
                            .block = span.block->index(),
                            .warp = warp,
                            .lane_mask = zero_lanes,
                            .what = "division"}},
                  kDivision);
  }
}

uint64_t NanCheck::source(const SpanRecord& span,
                          const isa::Operand& operand,
                          isa::Type type,
                          uint32_t lane) const {
  const isa::Operand& result = span.decoded->insn.operands[0];
  if (has_old_results_ && operand.kind == isa::OperandKind::kReg32 &&
      operand.index == result.index) {
    return old_results_[lane - span.first_warp * isa::kWarpLanes];
  }
  return span.block->source_value(operand, type, lane);
}

void NanCheck::float_results(const SpanRecord& span, uint32_t w, uint32_t suspicious) {
  const isa::Insn& insn = span.decoded->insn;
  const uint32_t exec_mask = span.exec_masks[w];
  const uint32_t warp = span.first_warp + w;
  uint32_t finite_lanes = exec_mask; // all float sources are finite
  uint32_t number_lanes = exec_mask; // none of them is NaN
  for (unsigned i = 1; i < insn.operand_count; ++i) {
    const isa::Type type = isa::operand_type(insn, i);
    if (!is_float_like(type)) {
      continue;
    }
    for (unsigned lane = 0; lane < isa::kWarpLanes; ++lane) {
      if ((exec_mask >> lane & 1) == 0) {
        continue;
      }
      const uint64_t bits = source(span, insn.operands[i], type, warp * isa::kWarpLanes + lane);
      if (!is_finite(bits, type)) {
        finite_lanes &= ~(1u << lane);
      }
      if (is_nan(bits, type)) {
        number_lanes &= ~(1u << lane);
      }
    }
  }
  // A reduction mixes lanes: one that is not finite reaches them all.
  if (insn.desc->has(isa::kCrossLane)) {
    finite_lanes = finite_lanes == exec_mask ? exec_mask : 0;
    number_lanes = number_lanes == exec_mask ? exec_mask : 0;
  }
  const isa::Type type = isa::operand_type(insn, 0);
  uint32_t made_infinity = 0;
  uint32_t made_nan = 0;
  for (unsigned lane = 0; lane < isa::kWarpLanes; ++lane) {
    if ((suspicious >> lane & 1) == 0) {
      continue;
    }
    const uint32_t bits = span.block->reg32(insn.operands[0].index, warp * isa::kWarpLanes + lane);
    if (is_nan(bits, type)) {
      made_nan |= number_lanes & 1u << lane;
    } else {
      made_infinity |= finite_lanes & 1u << lane;
    }
  }
  if (made_nan != 0) {
    const bool from_finite = (made_nan & finite_lanes) != 0;
    report(span.pc,
           *span.block,
           warp,
           made_nan,
           from_finite ? "NaN made from finite operands" : "NaN made from infinite operands");
  } else if (made_infinity != 0) {
    report(span.pc, *span.block, warp, made_infinity, "infinity made from finite operands");
  }
}

// ---------------------------------------------------------------- matrices

void NanCheck::before_insn(const EventSite& site, uint32_t, uint32_t exec_mask) {
  old_tile_.clear();
  if (exec_mask == 0 || site.warp != 0) {
    return;
  }
  const auto [offset, bytes] =
      tile_range(site.block, site.block.next_insn(site.warp).insn.operands[0]);
  const uint8_t* l1 = site.block.scratchpad().data();
  old_tile_.assign(l1 + offset, l1 + offset + bytes);
}

// An element of C counts as made here if it was finite before and A and B are. The record names the
// tiles in operand order: C, A, B.
void NanCheck::after_insn(const BlockRun& block, const IssueRecord& record) {
  if (record.exec_mask == 0 || record.passed_over || record.l1_count < 3) {
    return;
  }
  const uint8_t* l1 = block.scratchpad().data();
  const L1Record& c = record.l1[0];
  if (all_finite(l1 + c.offset, c.size_bytes, isa::Type::kF32) ||
      !all_finite(l1 + record.l1[1].offset, record.l1[1].size_bytes, record.insn->type2) ||
      !all_finite(l1 + record.l1[2].offset, record.l1[2].size_bytes, record.insn->type2)) {
    return;
  }
  const uint64_t tile = tile_range(block, record.insn->operands[0]).first;
  for (uint64_t at = 0; at + 4 <= c.size_bytes; at += 4) {
    uint32_t after = 0;
    uint32_t before = 0;
    std::memcpy(&after, l1 + c.offset + at, 4);
    const uint64_t in_tile = c.offset + at - tile;
    if (in_tile + 4 <= old_tile_.size()) {
      std::memcpy(&before, old_tile_.data() + in_tile, 4);
    }
    if (!is_finite(after, isa::Type::kF32) && is_finite(before, isa::Type::kF32)) {
      report(record.pc,
             block,
             record.warp,
             0,
             fmt::format("NaN or infinity in the product of finite tiles, at byte {} of C", at));
      return;
    }
  }
}

void NanCheck::report(
    uint32_t pc, const BlockRun& block, uint32_t warp, uint32_t lanes, const std::string& message) {
  if (findings_.count_known(CheckKind::kNan, pc, Findings::kNoPc, kNotFinite)) {
    return;
  }
  findings_.add(
      {.kind = CheckKind::kNan,
       .message = message,
       .hint = "look at the operands of this insn: print them, or break here in the debugger",
       .here = {.pc = pc,
                .block = block.index(),
                .warp = warp,
                .lane_mask = lanes,
                .what = "computation"}},
      kNotFinite);
}

} // namespace pto::sim
