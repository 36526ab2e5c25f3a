// SPDX-License-Identifier: Apache-2.0
// Compile-time completeness of rows. A family says, below its rows,
//     static_assert(RowsComplete<kRows>::value);
// and a row that lacks a column fails naming its index and the fault:
//     TableRow<3, RowFault::kNoSummary>
#pragma once

#include "isa/insn_desc.h"

namespace pto::isa {

enum class RowFault {
  kNone,
  kNoMnemonic,
  kNoOpcode,
  kNoLatencyKey,
  kNoSemantics,
  kNoSummary,
  kNoFormula,
  kNoExample,
};

constexpr RowFault fault_of(const InsnDesc& row) {
  if (row.mnemonic.empty()) {
    return RowFault::kNoMnemonic;
  }
  if (row.opcode == 0 || row.opcode >= 512) {
    return RowFault::kNoOpcode;
  }
  if (row.latency.empty()) {
    return RowFault::kNoLatencyKey;
  }
  // Under UBSan, GCC 12 takes the address of a template's function for one that may be null, and
  // the comparison for no constant; the check is then left to the other builds.
  if (__builtin_constant_p(row.exec == nullptr) && row.exec == nullptr) {
    return RowFault::kNoSemantics;
  }
  if (row.summary.empty()) {
    return RowFault::kNoSummary;
  }
  if (row.formula.empty()) {
    return RowFault::kNoFormula;
  }
  return row.example.empty() ? RowFault::kNoExample : RowFault::kNone;
}

template <unsigned kIndex, RowFault kFault> struct TableRow {
  static_assert(kFault == RowFault::kNone, "a row of the instruction table lacks a column");
  static constexpr bool kComplete = true;
};

template <const auto& kRows, unsigned... kIndices> struct RowsCompleteAt {
  static constexpr bool kValue = (TableRow<kIndices, fault_of(kRows[kIndices])>::kComplete && ...);
};

template <unsigned kCount, const auto& kRows, unsigned... kIndices>
struct CountRows : CountRows<kCount - 1, kRows, kCount - 1, kIndices...> {};
template <const auto& kRows, unsigned... kIndices> struct CountRows<0, kRows, kIndices...> {
  static constexpr bool kValue = RowsCompleteAt<kRows, kIndices...>::kValue;
};

template <const auto& kRows>
inline constexpr bool kRowsComplete =
    CountRows<static_cast<unsigned>(sizeof(kRows) / sizeof(kRows[0])), kRows>::kValue;

} // namespace pto::isa
