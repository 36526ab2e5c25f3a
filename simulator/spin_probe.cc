// SPDX-License-Identifier: Apache-2.0
// The probe and its explanation, see the header.
#include "simulator/spin_probe.h"

#include "isa/insn_desc.h"
#include "simulator/block.h"
#include "simulator/lane_ranges.h"
#include "simulator/program.h"
#include "simulator/warp_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <tuple>

namespace pto::sim {

namespace {

constexpr uint64_t kLooks = 256;     // of a driver at the verdict, in a window
constexpr uint32_t kMaxChanges = 64; // a run that changes memory so often makes progress

const uint8_t*
host_bytes(const BlockRun& block, isa::Space space, uint64_t address, uint64_t bytes) {
  if (space == isa::Space::kHbm) {
    return static_cast<const Hbm&>(*block.image().hbm).host(address, bytes);
  }
  return space == isa::Space::kL1 && block.scratchpad().holds(address, bytes)
             ? block.scratchpad().data() + address
             : nullptr;
}

} // namespace

/// What is known of one warp.
struct SpinProbe::Track {
  uint64_t epoch = 0;         // of the mark; an older one is void
  std::vector<uint64_t> mark; // the warp's state there
  uint64_t loops = 0;         // backward jumps since the mark
  uint64_t loop_limit = 1;    // then the mark moves on (Brent)
  uint32_t lowest_pc = 0;     // executed since the mark
  uint32_t highest_pc = 0;
  bool is_closed = false; // the state was seen again
  // The last read since the mark.
  bool has_read = false;
  bool is_plain_read = false; // of hbm, through the data cache
  bool is_atomic = false;
  uint32_t read_pc = 0;
  isa::Space space = isa::Space::kHbm;
  uint64_t address = 0;
};

SpinProbe::SpinProbe(const Launch& launch, std::vector<const BlockRun*> blocks)
    : launch_(launch), blocks_(std::move(blocks)), tracks_(blocks_.size() * launch.image().warps),
      interests_(launch.program().insns().size(), Interest::kWarp) {}

SpinProbe::~SpinProbe() = default;

SpinProbe::Track& SpinProbe::track(const BlockRun& block, uint32_t warp) {
  const auto found = std::find(blocks_.begin(), blocks_.end(), &block);
  return tracks_[static_cast<size_t>(found - blocks_.begin()) * launch_.image().warps + warp];
}

void SpinProbe::give_up() {
  has_given_up_ = true;
  std::fill(interests_.begin(), interests_.end(), Interest::kNone);
}

void SpinProbe::changed() {
  ++epoch_;
  if (++changes_ == kMaxChanges) {
    give_up();
  }
}

void SpinProbe::block_begin(const BlockRun&) {
  give_up();
}
void SpinProbe::block_end(const BlockRun&) {
  give_up();
}
void SpinProbe::barrier_release(const BlockRun&, unsigned) {
  changed();
}
void SpinProbe::copy_start(const EventSite&, const CopyRecord&) {
  changed();
}
void SpinProbe::copy_complete(const BlockRun&, const CopyRecord&, bool) {
  changed();
}
void SpinProbe::tile_alloc(const EventSite&, const ScratchpadSegment&) {
  changed();
}
void SpinProbe::tile_free(const EventSite&, const ScratchpadSegment&) {
  changed();
}
void SpinProbe::exit_lanes(const EventSite&, uint32_t) {
  changed();
}
void SpinProbe::print_line(const EventSite&, unsigned, std::string_view) {
  changed();
}

// Keeps what the lanes are about to write over.
void SpinProbe::before_insn(const EventSite& site, uint32_t, uint32_t exec_mask) {
  old_bytes_.clear();
  const isa::Insn& insn = site.block.next_insn(site.warp).insn;
  if (!insn.desc->has(isa::kWritesMem) || insn.desc->scope != isa::Scope::kLane) {
    return;
  }
  const uint32_t bytes = isa::size_bytes(insn.type) * isa::vector_count(insn);
  for (unsigned i = 0; i < insn.operand_count; ++i) {
    if (insn.operands[i].kind != isa::OperandKind::kMem) {
      continue;
    }
    for (unsigned lane = 0; lane < isa::kWarpLanes; ++lane) {
      const uint32_t in_block = site.warp * isa::kWarpLanes + lane;
      if ((exec_mask >> lane & 1) == 0) {
        continue;
      }
      const uint8_t* host = host_bytes(site.block,
                                       insn.operands[i].mem().space,
                                       site.block.address(insn.operands[i], in_block),
                                       bytes);
      if (host != nullptr) {
        old_bytes_.insert(old_bytes_.end(), host, host + bytes);
      }
    }
  }
}

void SpinProbe::after_insn(const BlockRun& block, const IssueRecord& record) {
  if (has_given_up_ || has_verdict_) {
    return;
  }
  const isa::InsnDesc& desc = *record.insn->desc;
  Track& own = track(block, record.warp);
  if (record.writes_memory && record.addresses != nullptr) {
    size_t at = 0;
    bool has_changed = false;
    for (unsigned lane = 0; lane < isa::kWarpLanes; ++lane) {
      if ((record.exec_mask >> lane & 1) == 0) {
        continue;
      }
      const uint8_t* host =
          host_bytes(block, record.space, record.addresses[lane], record.access_bytes);
      has_changed = has_changed || host == nullptr ||
                    at + record.access_bytes > old_bytes_.size() ||
                    std::memcmp(host, old_bytes_.data() + at, record.access_bytes) != 0;
      at += record.access_bytes;
    }
    if (has_changed) {
      changed();
    }
  }
  const bool is_block_work =
      record.decoded->is_block_scoped && !record.passed_over && record.exec_mask != 0;
  // What an incoherent cache holds is seen by other warps of the core.
  const bool changes_cache =
      launch_.image().data_caches != nullptr &&
      (desc.has(isa::kCacheControl) || (record.writes_memory && record.space == isa::Space::kHbm));
  if (is_block_work || changes_cache || names_clock(*record.insn)) {
    changed();
  }
  own.lowest_pc = std::min(own.lowest_pc, record.pc);
  own.highest_pc = std::max(own.highest_pc, record.pc);
  if (record.reads_memory && record.exec_mask != 0 && record.addresses != nullptr) {
    own.has_read = true;
    own.is_atomic = record.is_atomic;
    own.is_plain_read = !record.is_atomic && record.space == isa::Space::kHbm &&
                        record.hint == isa::CacheHint::kCached;
    own.read_pc = record.pc;
    own.space = record.space;
    own.address = record.addresses[std::countr_zero(record.exec_mask)];
  }
  const bool goes_back = record.next_pc <= record.pc && record.next_mask != 0;
  if (goes_back && block.is_ready(record.warp) && !(own.is_closed && own.epoch == epoch_)) {
    loop_back(block, own, record.warp);
  }
}

// The state of the warp against its mark.
void SpinProbe::loop_back(const BlockRun& block, Track& own, uint32_t warp) {
  const BlockState& state = block.state();
  const WarpState& warp_state = state.warps[warp];
  std::vector<uint64_t> now = {warp_state.pc,
                               warp_state.join_pc,
                               uint64_t{warp_state.is_call_base},
                               warp_state.call_depth,
                               state.masks[warp],
                               state.exited[warp]};
  for (const StackEntry& part : warp_state.stack) {
    now.push_back(uint64_t{part.pc} << 32 | part.join_pc);
    now.push_back(uint64_t{part.mask} << 1 | uint64_t{part.is_call_base});
  }
  for (unsigned p = 0; p < isa::kPredCount; ++p) {
    now.push_back(state.preds[size_t{p} * state.warps.size() + warp]);
  }
  const size_t lanes = launch_.image().padded_lanes;
  const size_t first = size_t{warp} * isa::kWarpLanes;
  for (size_t base = first; base < state.reg32.size(); base += lanes) {
    for (unsigned lane = 0; lane < isa::kWarpLanes; lane += 2) {
      now.push_back(uint64_t{state.reg32[base + lane]} << 32 | state.reg32[base + lane + 1]);
    }
  }
  for (size_t base = first; base < state.reg64.size(); base += lanes) {
    now.insert(now.end(),
               state.reg64.begin() + static_cast<std::ptrdiff_t>(base),
               state.reg64.begin() + static_cast<std::ptrdiff_t>(base + isa::kWarpLanes));
  }
  const bool is_void = own.epoch != epoch_;
  if (!is_void && now == own.mark) {
    own.is_closed = true;
    judge();
    return;
  }
  if (is_void || ++own.loops >= own.loop_limit) {
    own.loop_limit = is_void ? 1 : own.loop_limit * 2;
    own.epoch = epoch_;
    own.mark = std::move(now);
    own.loops = 0;
    own.is_closed = false;
    own.has_read = false;
    own.lowest_pc = warp_state.pc;
    own.highest_pc = warp_state.pc;
  }
}

void SpinProbe::judge() {
  for (const BlockRun* block : blocks_) {
    if (!block->pending_copies().empty()) {
      return;
    }
    for (uint32_t w = 0; w < block->warp_count(); ++w) {
      const Track& own = track(*block, w);
      if (block->is_ready(w) && !(own.is_closed && own.epoch == epoch_)) {
        return;
      }
    }
  }
  // A block that has yet to start may change everything, if there is room for it.
  has_verdict_ = !launch_.has_next_block() || blocks_.size() >= launch_.resident_limit();
}

namespace {

std::string place_of(const BlockRun& block, isa::Space space, uint64_t address) {
  return space == isa::Space::kHbm ? block.image().hbm->label(address)
                                   : fmt::format("{}[{}]", isa::name(space), address);
}

} // namespace

Fault SpinProbe::explain() const {
  const Program& program = launch_.program();
  Fault fault;
  fault.kind = FaultKind::kDeadlock;
  bool has_first = false;
  bool has_lock = false;
  bool has_plain = false;
  for (size_t b = 0; b < blocks_.size(); ++b) {
    const BlockRun& block = *blocks_[b];
    // Warps that do alike.
    using Key = std::tuple<bool, uint32_t, uint32_t, uint32_t>;
    WarpGroups<Key> groups;
    for (uint32_t w = 0; w < block.warp_count(); ++w) {
      const WarpState& state = block.warp(w);
      if (state.status == WarpStatus::kDone) {
        continue;
      }
      const Track& own = tracks_[b * launch_.image().warps + w];
      const bool spins = state.status == WarpStatus::kReady;
      const uint32_t waiting = block.live_mask(w) & ~block.active_mask(w);
      const Key key = spins ? Key{true, own.lowest_pc, own.highest_pc, waiting}
                            : Key{false, state.pc, state.pc, 0};
      groups.add(key, w);
      if (spins && !has_first) {
        has_first = true;
        fault.block = block.index();
        fault.core = block.core();
        fault.warp = w;
        fault.lane_mask = block.active_mask(w);
        fault.pc = own.has_read ? own.read_pc : own.lowest_pc;
      }
    }
    for (const auto& [key, warps] : groups) {
      const auto& [spins, low, high, waiting] = key;
      const std::string who = fmt::format("{} of block {}", list_warps(warps), block.index());
      const bool is_one = warps.size() == 1;
      if (!spins) {
        fault.details += fmt::format("{} {} {}, {}\n",
                                     who,
                                     is_one ? "is" : "are",
                                     name(block.warp(warps.front()).status),
                                     program.place(low));
        continue;
      }
      const Track& own = tracks_[b * launch_.image().warps + warps.front()];
      fault.details +=
          low == high
              ? fmt::format(
                    "{} {} {} for ever", who, is_one ? "repeats" : "repeat", program.place(low))
              : fmt::format("{} {} {} to {} for ever",
                            who,
                            is_one ? "repeats" : "repeat",
                            program.place(low),
                            program.place(high));
      if (own.has_read) {
        fault.details += fmt::format(", reading {} at {}",
                                     place_of(block, own.space, own.address),
                                     program.place(own.read_pc));
        has_lock = has_lock || (own.is_atomic && waiting != 0);
        has_plain = has_plain || own.is_plain_read;
      }
      fault.details += '\n';
      if (waiting != 0) {
        const bool is_one_lane = (waiting & (waiting - 1)) == 0;
        fault.details += fmt::format("  {} {} of the warp {} until these leave the loop\n",
                                     is_one_lane ? "lane" : "lanes",
                                     lane_ranges(waiting, ", "),
                                     is_one_lane ? "waits" : "wait");
      }
    }
  }
  if (launch_.has_next_block()) {
    fault.details += fmt::format("{} blocks have not started, since all {} places are taken\n",
                                 launch_.block_count() - launch_.blocks_started(),
                                 launch_.resident_limit());
  }
  if (has_lock) {
    fault.details += "hint: lanes of one warp run together: let the lane that takes the lock "
                     "release it within the same pass of the loop\n";
  } else if (has_plain && launch_.image().data_caches != nullptr) {
    fault.details +=
        "hint: a plain load sees the data cache's old copy for ever: poll with load.cv\n";
  }
  fault.loc = program.loc(fault.pc);
  fault.message = "no progress: every warp that can execute repeats itself, and nothing is left "
                  "that could change what it reads";
  return fault;
}

// ---------------------------------------------------------------- when to look

SpinWatch::~SpinWatch() {
  stop_probe();
}

void SpinWatch::stop_probe() {
  if (probe_ != nullptr) {
    launch_.observers().detach(*probe_);
    probe_.reset();
  }
}

std::optional<Fault> SpinWatch::look(uint64_t executed, std::vector<const BlockRun*> blocks) {
  const uint64_t window = window_insns_ * std::max<size_t>(blocks.size(), 1);
  if (probe_ == nullptr) {
    if (executed < window * kShare) { // not yet, with so many blocks
      next_look_ = window * kShare;
      return std::nullopt;
    }
    probe_ = std::make_unique<SpinProbe>(launch_, std::move(blocks));
    launch_.observers().attach(*probe_);
    probe_end_ = executed + window;
    next_look_ = executed + 1 + window / kLooks;
    return std::nullopt;
  }
  if (probe_->has_verdict()) {
    Fault fault = probe_->explain();
    stop_probe();
    return fault; // still due: a run that goes back from here gets stuck again
  }
  if (probe_->has_given_up() || executed >= probe_end_) {
    stop_probe();
    next_look_ = std::max(executed, kFirstLook) * 2;
  } else {
    next_look_ = executed + 1 + window / kLooks;
  }
  return std::nullopt;
}

} // namespace pto::sim
