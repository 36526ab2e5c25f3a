// SPDX-License-Identifier: Apache-2.0
// What the timing model knows of each insn of a program before it runs: figures of the latency
// table, registers read and written, fusion with the next insn.
#pragma once

#include "isa/insn_desc.h"
#include "isa/machine.h"
#include "isa/object.h"

#include <cstdint>
#include <string>
#include <vector>

namespace pto::sim {

/// A place in a warp's scoreboard: r0.., d0.., p0... Tiles are the block's.
using ScoreIndex = uint16_t;
inline constexpr ScoreIndex kScoreReg64 = isa::kReg32Count;
inline constexpr ScoreIndex kScorePred = kScoreReg64 + isa::kReg64Count;
inline constexpr ScoreIndex kScoreCount = kScorePred + isa::kPredCount;
/// "r3", "d1", "p0"
[[nodiscard]] std::string score_name(ScoreIndex index);

struct InsnTiming {
  const isa::Insn* insn = nullptr;
  isa::Flags flags = 0;                     // of the row
  const isa::LatencyEntry* entry = nullptr; // null: no key fits, the fallback is used
  double latency_cycles = 0;
  double interval_cycles = 1;
  uint8_t unit = 0;     // isa::Unit
  bool is_free = false; // takes no issue slot (latency 0)
  bool is_memory_pipe = false;
  bool is_block_scoped = false;
  /// What a warp does by its lanes alone, so that warps in step may do it as one (lockstep.cc).
  bool is_of_lanes = false;
  /// Of lanes alone, and all it does is to write registers after a time in a pipe.
  bool is_plain = false;
  /// Tiles, copies or stores may hold it, and not registers alone.
  bool waits_for_more = false;
  /// Takes a slot and a pipe in every warp, by itself, as soon as its registers are there.
  bool awaits_registers = false;
  int8_t wait_event = -1;  // of an insn that waits: its event; -1: all copies
  uint64_t fetch_line = 0; // of code
  const isa::FusionRule* fused_with_next = nullptr;
  double fused_latency_cycles = 0;
  std::vector<ScoreIndex> reads;
  std::vector<ScoreIndex> writes;
  std::vector<ScoreIndex> awaits;   // reads, then writes
  std::vector<uint32_t> tile_reads; // tiles of the block that some insn writes, see tile_key
  std::vector<uint32_t> tile_writes;
};

/// The block's name for what a tile operand means: tile registers first, then symbols.
[[nodiscard]] constexpr uint32_t tile_key(isa::OperandKind kind, uint32_t index) {
  return kind == isa::OperandKind::kTile ? index : isa::kTileCount + index;
}

class ProgramTiming {
public:
  ProgramTiming(const isa::Object& object, const isa::MachineProfile& machine);

  const InsnTiming& operator[](uint32_t pc) const { return insns_[pc]; }
  [[nodiscard]] size_t size() const { return insns_.size(); }
  /// Every register that some insn writes.
  [[nodiscard]] const std::vector<ScoreIndex>& written() const { return written_; }
  /// Whether block-scoped insns (copies, matrix operations) work on the scratchpad at their own
  /// pace, so that accesses to it must be remembered.
  [[nodiscard]] bool shares_l1() const { return shares_l1_; }
  /// Latency keys that insns of the program have and the profile lacks, each once, such as
  /// "TANH.f16". Whoever runs the program warns of them, or refuses with --strict.
  [[nodiscard]] const std::vector<std::string>& missing_keys() const { return missing_keys_; }

private:
  void resolve_latency(InsnTiming& timing, const isa::MachineProfile& machine);
  static void find_registers(InsnTiming& timing);
  static void find_waits(InsnTiming& timing);
  [[nodiscard]] bool is_of_lanes(const InsnTiming& timing) const;
  [[nodiscard]] static bool is_plain(const InsnTiming& timing);
  /// Gathers what each insn awaits; tiles that no insn writes are left out.
  void find_awaited();
  void try_fusion(uint32_t pc, const isa::FusionRule& rule);

  std::vector<InsnTiming> insns_;
  std::vector<ScoreIndex> written_;
  std::vector<std::string> missing_keys_;
  bool shares_l1_ = false;
};

/// The suffixes by which an insn asks the latency table: space, modifiers, types, in this order.
[[nodiscard]] std::vector<std::string_view> latency_suffixes(const isa::Insn& insn);

} // namespace pto::sim
