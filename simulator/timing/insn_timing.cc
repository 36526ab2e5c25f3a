// SPDX-License-Identifier: Apache-2.0
// Static timing facts of a program, derived from the insn rows alone.
#include "simulator/timing/insn_timing.h"

#include <fmt/format.h>

#include <algorithm>

namespace pto::sim {

namespace {

using namespace pto::isa;

void add_once(std::vector<ScoreIndex>& list, unsigned index) {
  const auto value = static_cast<ScoreIndex>(index);
  if (std::find(list.begin(), list.end(), value) == list.end()) {
    list.push_back(value);
  }
}

// "LOAD.f16" of a rule fits an insn whose key and suffixes contain it.
bool fits(const std::string& pattern, const Insn& insn) {
  LatencyTable one;
  LatencyEntry entry;
  entry.key = pattern;
  one.put(entry);
  return one.find(insn.desc->latency, latency_suffixes(insn)) != nullptr;
}

/// What latency_suffixes and the key depend on: insns alike share one look-up.
bool is_same_shape(const Insn& a, const Insn& b) {
  const auto space_of = [](const Insn& insn) -> int {
    for (unsigned i = 0; i < insn.operand_count; ++i) {
      if (insn.operand(i).kind == OperandKind::kMem) {
        return static_cast<int>(insn.operand(i).mem().space);
      }
    }
    return -1;
  };
  return a.desc == b.desc && a.type == b.type && a.type2 == b.type2 && a.mods == b.mods &&
         space_of(a) == space_of(b);
}

bool is_operand_connected(const Insn& first,
                          std::string_view first_name,
                          const Insn& second,
                          std::string_view second_name) {
  for (unsigned i = 0; i < first.operand_count; ++i) {
    for (unsigned j = 0; j < second.operand_count; ++j) {
      if (spec_of(first, i).name == first_name && spec_of(second, j).name == second_name &&
          first.operand(i).kind == second.operand(j).kind &&
          first.operand(i).index == second.operand(j).index) {
        return true;
      }
    }
  }
  return false;
}

template <class List> bool share_one(const List& a, const List& b) {
  return std::any_of(
      a.begin(), a.end(), [&](auto x) { return std::find(b.begin(), b.end(), x) != b.end(); });
}

} // namespace

std::string score_name(ScoreIndex index) {
  if (index < kScoreReg64) {
    return fmt::format("r{}", index);
  }
  if (index < kScorePred) {
    return fmt::format("d{}", index - kScoreReg64);
  }
  return fmt::format("p{}", index - kScorePred);
}

std::vector<std::string_view> latency_suffixes(const Insn& insn) {
  std::vector<std::string_view> suffixes;
  for (unsigned i = 0; i < insn.operand_count; ++i) {
    // What may be a tile is in scratchpad however it is written, and so the space says nothing.
    const bool may_be_tile = (spec_of(insn, i).accepts & isa::kAcceptTile) != 0;
    if (insn.operand(i).kind == OperandKind::kMem && !may_be_tile) {
      suffixes.push_back(name(insn.operand(i).mem().space));
      break;
    }
  }
  const auto add_types = [&] {
    for (const Type type : {insn.type, insn.type2}) {
      if (type != Type::kNone) {
        suffixes.push_back(name(type));
      }
    }
  };
  if (insn.desc->has(kTypesFirst)) {
    add_types();
  }
  for (unsigned g = 0; g < insn.desc->mods.size(); ++g) {
    const ModGroup& group = *insn.desc->mods[g];
    if (insn.mods[g] < group.values.size()) {
      const std::string_view suffix = group.values[insn.mods[g]].suffix;
      if (!suffix.empty()) {
        suffixes.push_back(suffix);
      }
    }
  }
  if (!insn.desc->has(kTypesFirst)) {
    add_types();
  }
  return suffixes;
}

ProgramTiming::ProgramTiming(const Object& object, const MachineProfile& machine)
    : insns_(object.code.size()) {
  std::vector<uint32_t> shapes; // a pc of each shape
  std::vector<uint32_t> shape_of(insns_.size());
  for (uint32_t pc = 0; pc < insns_.size(); ++pc) {
    InsnTiming& timing = insns_[pc];
    timing.insn = &object.code[pc];
    timing.flags = object.code[pc].desc->flags;
    timing.is_block_scoped = object.code[pc].desc->scope == Scope::kBlock;
    timing.fetch_line = uint64_t{pc} * machine.fetch.insn_bytes / machine.fetch.line_bytes;
    timing.unit = static_cast<uint8_t>(object.code[pc].desc->unit);
    const auto known = std::find_if(shapes.begin(), shapes.end(), [&](uint32_t other) {
      return is_same_shape(object.code[other], object.code[pc]);
    });
    shape_of[pc] = static_cast<uint32_t>(known - shapes.begin());
    if (known == shapes.end()) {
      shapes.push_back(pc);
      resolve_latency(timing, machine);
    } else {
      const InsnTiming& same = insns_[*known];
      timing.entry = same.entry;
      timing.latency_cycles = same.latency_cycles;
      timing.interval_cycles = same.interval_cycles;
      timing.is_free = same.is_free;
      timing.is_memory_pipe = same.is_memory_pipe;
    }
    find_registers(timing);
    for (const ScoreIndex index : timing.writes) {
      add_once(written_, index);
    }
    shares_l1_ |= timing.is_block_scoped;
  }
  for (const FusionRule& rule : machine.fusion) {
    std::vector<bool> is_first;
    std::vector<bool> is_second;
    for (const uint32_t pc : shapes) {
      is_first.push_back(fits(rule.first, object.code[pc]));
      is_second.push_back(fits(rule.second, object.code[pc]));
    }
    for (uint32_t pc = 0; pc + 1 < insns_.size(); ++pc) {
      if (insns_[pc].fused_with_next == nullptr && is_first[shape_of[pc]] &&
          is_second[shape_of[pc + 1]]) {
        try_fusion(pc, rule);
      }
    }
  }
  find_awaited();
  for (InsnTiming& timing : insns_) {
    find_waits(timing);
    timing.is_of_lanes = is_of_lanes(timing);
    timing.is_plain = timing.is_of_lanes && is_plain(timing);
    timing.awaits_registers = !timing.is_free && !timing.is_block_scoped &&
                              !timing.waits_for_more && timing.fused_with_next == nullptr;
  }
}

void ProgramTiming::resolve_latency(InsnTiming& timing, const MachineProfile& machine) {
  const InsnDesc& desc = *timing.insn->desc;
  const std::vector<std::string_view> suffixes = latency_suffixes(*timing.insn);
  timing.entry = machine.latency.find(desc.latency, suffixes);
  if (timing.entry == nullptr) {
    timing.latency_cycles = machine.fallback_latency_cycles;
    std::string key(desc.latency);
    for (const std::string_view suffix : suffixes) {
      key += fmt::format(".{}", suffix);
    }
    if (std::find(missing_keys_.begin(), missing_keys_.end(), key) == missing_keys_.end()) {
      missing_keys_.push_back(key);
    }
  } else {
    timing.latency_cycles = timing.entry->latency_cycles;
    timing.interval_cycles = timing.entry->interval_cycles;
  }
  timing.is_free = timing.latency_cycles == 0;
  timing.is_memory_pipe = desc.unit == Unit::kM;
}

void ProgramTiming::find_registers(InsnTiming& timing) {
  const Insn& insn = *timing.insn;
  // Copies wait in their engine, by bytes (L1Ledger); so do block-scoped insns on part of a tile.
  const bool is_block_scoped = insn.desc->scope == Scope::kBlock;
  const bool is_copy = insn.desc->has(kAsync);
  if (insn.guard.present) {
    add_once(timing.reads, kScorePred + insn.guard.pred);
  }
  for (unsigned i = 0; i < insn.operand_count; ++i) {
    const Operand& operand = insn.operand(i);
    const OperandSpec& spec = spec_of(insn, i);
    const unsigned count = spec.vector ? vector_count(insn) : 1;
    const auto note = [&](unsigned first, unsigned n) {
      for (unsigned r = 0; r < n; ++r) {
        if (reads(spec.role)) {
          add_once(timing.reads, first + r);
        }
        if (writes(spec.role)) {
          add_once(timing.writes, first + r);
        }
      }
    };
    if (operand.kind == OperandKind::kReg32) {
      note(operand.index, count);
    } else if (operand.kind == OperandKind::kReg64) {
      note(kScoreReg64 + operand.index, count);
    } else if (operand.kind == OperandKind::kPred) {
      note(kScorePred + operand.index, 1);
    } else if (operand.kind == OperandKind::kTile || operand.kind == OperandKind::kSymbol) {
      if (is_copy) {
        continue;
      }
      if (reads(spec.role)) {
        timing.tile_reads.push_back(tile_key(operand.kind, operand.index));
      }
      if (writes(spec.role)) {
        timing.tile_writes.push_back(tile_key(operand.kind, operand.index));
      }
    } else if (operand.kind == OperandKind::kMem) {
      const MemRef ref = operand.mem();
      if (ref.base == BaseKind::kReg) {
        add_once(timing.reads,
                 ref.space == Space::kHbm ? kScoreReg64 + ref.base_index : ref.base_index);
      } else if (is_block_scoped) {
        // by bytes
      } else if (ref.base == BaseKind::kTile) {
        timing.tile_reads.push_back(tile_key(OperandKind::kTile, ref.base_index));
      } else if (ref.base == BaseKind::kSymbol && ref.space == Space::kL1) {
        timing.tile_reads.push_back(tile_key(OperandKind::kSymbol, ref.base_index));
      }
      if (ref.index_reg != kNoIndexReg) {
        add_once(timing.reads, ref.index_reg);
      }
    }
  }
}

void ProgramTiming::find_waits(InsnTiming& timing) {
  const Insn& insn = *timing.insn;
  for (unsigned i = 0; i < insn.operand_count; ++i) {
    if (insn.operand(i).kind == OperandKind::kEvent) {
      timing.wait_event = static_cast<int8_t>(insn.operand(i).index % kEventCount);
    }
  }
  timing.waits_for_more =
      !timing.tile_reads.empty() || !timing.tile_writes.empty() || insn.desc->has(kWaits | kFence);
}

void ProgramTiming::find_awaited() {
  std::vector<uint32_t> written;
  for (const InsnTiming& timing : insns_) {
    written.insert(written.end(), timing.tile_writes.begin(), timing.tile_writes.end());
  }
  for (InsnTiming& timing : insns_) {
    std::erase_if(timing.tile_reads, [&](uint32_t key) {
      return std::find(written.begin(), written.end(), key) == written.end();
    });
    timing.awaits = timing.reads;
    timing.awaits.insert(timing.awaits.end(), timing.writes.begin(), timing.writes.end());
  }
}

bool ProgramTiming::is_plain(const InsnTiming& timing) {
  constexpr Flags kMore =
      kBranch | kCall | kReturn | kEndsLane | kWarpBarrier | kBlockBarrier | kFence;
  return !timing.is_memory_pipe && !timing.waits_for_more && (timing.flags & kMore) == 0;
}

bool ProgramTiming::is_of_lanes(const InsnTiming& timing) const {
  constexpr Flags kBeyondLanes =
      kAsync | kWaits | kAllocates | kFrees | kPrints | kTraps | kCacheControl;
  if (timing.is_block_scoped || timing.is_free || timing.fused_with_next != nullptr ||
      (timing.flags & kBeyondLanes) != 0) {
    return false;
  }
  for (unsigned i = 0; i < timing.insn->operand_count; ++i) {
    const Operand& operand = timing.insn->operand(i);
    if (operand.kind == OperandKind::kMem) {
      const Space space = operand.mem().space;
      return (space != Space::kHbm || (timing.flags & kAtomic) == 0) &&
             (space != Space::kL1 || !shares_l1_);
    }
  }
  return true;
}

void ProgramTiming::try_fusion(uint32_t pc, const FusionRule& rule) {
  InsnTiming& first = insns_[pc];
  const InsnTiming& second = insns_[pc + 1];
  if (!(first.insn->guard == second.insn->guard)) {
    return;
  }
  const size_t arrow = rule.connect.find("->");
  const bool is_connected =
      rule.connect == "none" ||
      (rule.connect == "any" && (share_one(first.writes, second.reads) ||
                                 share_one(first.tile_writes, second.tile_reads))) ||
      (arrow != std::string::npos &&
       is_operand_connected(*first.insn,
                            std::string_view(rule.connect).substr(0, arrow),
                            *second.insn,
                            std::string_view(rule.connect).substr(arrow + 2)));
  if (is_connected) {
    first.fused_with_next = &rule;
    first.fused_latency_cycles = rule.latency_cycles;
  }
}

} // namespace pto::sim
