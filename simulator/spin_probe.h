// SPDX-License-Identifier: Apache-2.0
// Finds runs that can never end although warps go on executing: a lock spun on within one warp, a
// flag that nobody will set, an endless loop.
//
// The proof. A warp's next insns depend on its own state (pc, masks, stack, registers) and on
// memory. If its state repeats, it has done nothing in between that others could see (no value in
// memory changed, nothing was printed, copied, allocated), and memory stays as it is, it repeats
// for ever. If that holds for every warp that can execute at all, over one stretch of the run in
// which no value changed, nobody is left to change memory: under no schedule does the run end. So
// a verdict is never a false alarm; it is judged on the simulated state, however slow the host.
// What is not proven: loops that count, read %clock, or store new values for ever; and runs with
// copies pending, which may still move data. --max-instructions ends those.
//
// SpinWatch looks for a while (the probe, an observer of every insn) each time that the run has
// grown twofold, so that it costs little and finds a stuck run before it has grown much.
#pragma once

#include "simulator/block.h"
#include "simulator/launch.h"
#include "simulator/observer.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace pto::sim {

class SpinProbe : public Observer {
public:
  /// The resident blocks, which must stay while the probe is attached.
  SpinProbe(const Launch& launch, std::vector<const BlockRun*> blocks);
  ~SpinProbe() override;

  /// Every warp that is ready repeats itself, and nothing can change that.
  bool has_verdict() const { return has_verdict_; }
  /// The run makes progress: looking on is of no use.
  bool has_given_up() const { return has_given_up_; }
  /// Who repeats what, reading what, and who waits for them. With a verdict only.
  Fault explain() const;

  Wants wants() const override {
    return kWantsBlock | kWantsBefore | kWantsIssue | kWantsBarrier | kWantsCopy | kWantsWait |
           kWantsTile | kWantsExit | kWantsPrint;
  }
  const Interest* interests() const override { return interests_.data(); }
  void block_begin(const BlockRun& block) override;
  void block_end(const BlockRun& block) override;
  void before_insn(const EventSite& site, uint32_t active_mask, uint32_t exec_mask) override;
  void after_insn(const BlockRun& block, const IssueRecord& record) override;
  void barrier_release(const BlockRun& block, unsigned id) override;
  void copy_start(const EventSite& site, const CopyRecord& copy) override;
  void copy_complete(const BlockRun& block, const CopyRecord& copy, bool forced) override;
  void tile_alloc(const EventSite& site, const ScratchpadSegment& segment) override;
  void tile_free(const EventSite& site, const ScratchpadSegment& segment) override;
  void exit_lanes(const EventSite& site, uint32_t mask) override;
  void print_line(const EventSite& site, unsigned lane, std::string_view line) override;

private:
  struct Track; // of one warp

  Track& track(const BlockRun& block, uint32_t warp);
  void changed();
  void give_up();
  void loop_back(const BlockRun& block, Track& track, uint32_t warp);
  void judge();

  const Launch& launch_;
  std::vector<const BlockRun*> blocks_;
  std::vector<Track> tracks_; // by block, then warp
  std::vector<Interest> interests_;
  std::vector<uint8_t> old_bytes_; // of the lanes that the insn at hand writes
  uint64_t epoch_ = 1;             // counts changes
  uint32_t changes_ = 0;
  bool has_verdict_ = false;
  bool has_given_up_ = false;
};

/// The blocks of a driver's places, some of which are empty.
template <class Places> std::vector<const BlockRun*> resident_blocks(const Places& places) {
  std::vector<const BlockRun*> blocks;
  for (const std::unique_ptr<BlockRun>& block : places) {
    if (block != nullptr) {
      blocks.push_back(block.get());
    }
  }
  return blocks;
}

/// Some resident block has lanes that have not ended.
template <class Places> bool has_live_block(const Places& places) {
  return std::any_of(places.begin(), places.end(), [](const std::unique_ptr<BlockRun>& block) {
    return block != nullptr && !block->is_done();
  });
}

/// When a driver probes.
class SpinWatch {
public:
  /// `window_insns`: warp insns that let every warp of one resident block execute some thousands.
  SpinWatch(Launch& launch, uint64_t window_insns) : launch_(launch), window_insns_(window_insns) {}
  ~SpinWatch();
  SpinWatch(const SpinWatch&) = delete;
  SpinWatch& operator=(const SpinWatch&) = delete;

  /// To be asked between insns, with the number of warp insns executed so far.
  bool is_due(uint64_t executed) const { return executed >= next_look_; }
  uint64_t next_look() const { return next_look_; }
  /// If it is due. `blocks`: all that are resident. The fault that ends a stuck run, or nothing.
  std::optional<Fault> look(uint64_t executed, std::vector<const BlockRun*> blocks);
  /// Forgets what was seen: somebody outside may have changed the state.
  void reset() { stop_probe(); }

private:
  static constexpr uint64_t kFirstLook = uint64_t{1} << 18;
  static constexpr uint64_t kShare = 8; // the run executes so many times what a probe sees

  void stop_probe();

  Launch& launch_;
  uint64_t window_insns_;
  uint64_t next_look_ = kFirstLook;
  uint64_t probe_end_ = 0;
  std::unique_ptr<SpinProbe> probe_;
};

} // namespace pto::sim
