// SPDX-License-Identifier: Apache-2.0
// One launch of a kernel: its configuration, checked; the constants that all its blocks share; and
// the grid, handed out block by block in order. Drivers (functional.h, schedule.h, the timing
// model, the debugger) own the resident blocks and decide who runs next.
#pragma once

#include "isa/error.h"
#include "isa/machine.h"
#include "simulator/fault.h"
#include "simulator/memory.h"
#include "simulator/observer.h"
#include "simulator/program.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace pto::sim {

class BlockRun;
class IncoherentCache;

/// A device: profile and memory. Persistent across launches.
struct Machine {
  explicit Machine(isa::MachineProfile machine_profile) : profile(std::move(machine_profile)) {}
  /// A launch's own view of a device that allocates while kernels run.
  Machine(isa::MachineProfile machine_profile, std::shared_ptr<const HbmTable> table)
      : profile(std::move(machine_profile)), hbm(std::move(table)) {}
  isa::MachineProfile profile;
  Hbm hbm;
};

struct Dim3 {
  uint32_t x = 1;
  uint32_t y = 1;
  uint32_t z = 1;
  uint64_t total() const { return uint64_t{x} * y * z; }
  constexpr bool operator==(const Dim3&) const = default;
};
std::string to_string(const Dim3& dim); // "4" or "4x2x1"

/// Raw bits of an argument. `type` kNone: whatever the parameter is; else it must agree with it.
struct LaunchArg {
  uint64_t bits = 0;
  isa::Type type = isa::Type::kNone;
  bool is_pointer = false; // with type kNone: not checked
};

struct LaunchConfig {
  Dim3 grid{};
  Dim3 block{};
  std::vector<LaunchArg> args;
  uint32_t dynamic_l1_bytes = 0; // scratchpad after the kernel's statics
};

enum class LaunchErrorKind : uint8_t {
  kBlockSize, // no lane, over the machine's limit or over .maxlanes
  kGridSize,
  kRegisterBudget,
  kArgumentCount,
  kArgumentType,
  kScratchpad,
};

class LaunchError : public Error {
public:
  LaunchError(LaunchErrorKind kind, const std::string& message) : Error(message), kind_(kind) {}
  LaunchErrorKind kind() const { return kind_; }

private:
  LaunchErrorKind kind_;
};

/// What every block of a launch shares and none changes.
struct LaunchImage {
  std::shared_ptr<const Program> program;
  Hbm* hbm = nullptr;
  const isa::MachineProfile* profile = nullptr;
  Dim3 grid{};
  Dim3 block{};
  Dim3 extent{};      // lanes of the grid along each axis
  uint32_t lanes = 0; // in a block
  uint32_t warps = 0;
  uint32_t padded_lanes = 0;    // warps * 32
  uint32_t static_l1_bytes = 0; // statics and dynamic_l1_bytes
  uint32_t max_l1_bytes = 0;    // scratchpad at most
  uint32_t call_depth = 0;
  std::vector<uint64_t> params;             // scalars extended to 64 bit by their type
  std::vector<uint32_t> warp_masks;         // lanes that exist
  std::array<std::vector<uint32_t>, 3> tid; // x, y, z of each lane
  /// Broadcast arrays of padded_lanes values, by slot (Program::broadcast_slots).
  std::vector<uint32_t> broadcast32;
  std::vector<uint64_t> broadcast64;
  std::vector<uint32_t> broadcast_offset; // by slot: first element in its array
  /// By parameter: the live allocation that a pointer points into, else null.
  std::vector<const Allocation*> param_allocation;
  /// What the cores' data caches hold, where loads may see stale values; else null.
  IncoherentCache* data_caches = nullptr;

  Dim3 block_index(uint64_t linear) const {
    return {static_cast<uint32_t>(linear % grid.x),
            static_cast<uint32_t>(linear / grid.x % grid.y),
            static_cast<uint32_t>(linear / grid.x / grid.y)};
  }
};

/// When the data of an asynchronous copy moves.
enum class CopyPolicy : uint8_t {
  kAtWait,   // when something waits for it, at the end of the block at the latest: a missing wait
             // shows as old data
  kAtIssue,  // at once: a missing wait stays hidden
  kByDriver, // when the driver calls BlockRun::complete_copy
};

enum class RunStatus : uint8_t {
  kCompleted,
  kFault,
  kDeadlock,
  kLimit, // max_insns reached
  kInterrupted,
};
std::string_view name(RunStatus status);

struct InsnCounts {
  uint64_t warp_insns = 0; // issued by warps
  uint64_t lane_insns = 0; // the same times the lanes that executed it
  void add(const InsnCounts& other) {
    warp_insns += other.warp_insns;
    lane_insns += other.lane_insns;
  }
};

struct PrintLine {
  uint64_t block = 0;
  uint32_t warp = 0;
  uint32_t lane = 0;
  uint32_t pc = 0;
  std::string text;
};

struct RunResult {
  RunStatus status = RunStatus::kCompleted;
  InsnCounts counts;
  uint64_t blocks_done = 0;
  std::optional<Fault> fault; // with kFault and kDeadlock; with kLimit: where the grid stands
  std::vector<PrintLine> prints;
  bool prints_truncated = false; // more than kMaxPrintLines
  bool is_parallel = false;      // several host threads did the work
};
inline constexpr size_t kMaxPrintLines = 1 << 20;

struct Progress {
  uint64_t blocks_done = 0;
  uint64_t block_count = 0;
  InsnCounts counts;
};

/// What every driver takes.
struct RunOptions {
  uint64_t max_insns = UINT64_MAX;               // warp insns of the whole run
  const std::atomic<bool>* interrupt = nullptr;  // set: stop soon
  std::function<void(const Progress&)> progress; // called now and then, on the caller's thread
  CopyPolicy copies = CopyPolicy::kAtWait;
  unsigned host_threads = 1; // 0: as many as the host has cores; results never depend on it
};

/// Part of Launch that changes while it runs; a value for snapshots.
struct LaunchState {
  uint64_t next_block = 0;
  uint64_t blocks_done = 0;
  InsnCounts counts; // of ended blocks
  size_t print_count = 0;
  std::shared_ptr<const IncoherentCache> data_caches; // null: memory is coherent
};

class Launch {
public:
  /// Checks everything and throws LaunchError with the numbers of the first thing that is wrong,
  /// or HostLevelError (isa/host_level.h).
  /// `machine` must outlive the launch.
  Launch(Machine& machine, std::shared_ptr<const Program> program, LaunchConfig config);
  ~Launch();
  /// The launch with `factor` neighbours in x as one block, whatever the machine allows; blocks
  /// left over are not in it. For runs in which that makes no difference (gang.h).
  static std::unique_ptr<Launch> widened(const Launch& launch, uint32_t factor);
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;

  Machine& machine() const { return machine_; }
  const Program& program() const { return *image_.program; }
  const LaunchConfig& config() const { return config_; }
  const LaunchImage& image() const { return image_; }
  uint64_t block_count() const { return block_count_; }
  /// Blocks resident at once: cores * blocks_per_core.
  uint32_t resident_limit() const;

  /// Attach before the run. Borrowed.
  ObserverList& observers() { return observers_; }
  const ObserverList& observers() const { return observers_; }
  void set_copy_policy(CopyPolicy policy) { copy_policy_ = policy; }
  CopyPolicy copy_policy() const { return copy_policy_; }
  /// Before the run: plain loads see what the core's data cache holds, however old (see
  /// incoherent_cache.h). Without it every load sees memory.
  void use_incoherent_caches();

  bool has_next_block() const { return state_.next_block < block_count_; }
  /// The next block of the grid, ready to run on `core`; null when none is left.
  std::unique_ptr<BlockRun> next_block(uint32_t core);
  /// A block that has ended (done or not): counts it and keeps it for reuse.
  void retire_block(std::unique_ptr<BlockRun> block);
  /// The first `blocks` blocks have run elsewhere (parallel.cc).
  void credit_blocks(uint64_t blocks, const InsnCounts& counts);
  /// A block object for restoring snapshots into.
  std::unique_ptr<BlockRun> make_block();

  uint64_t blocks_started() const { return state_.next_block; }
  uint64_t blocks_done() const { return state_.blocks_done; }
  bool is_finished() const { return state_.blocks_done == block_count_; }
  const InsnCounts& ended_counts() const { return state_.counts; }
  std::vector<PrintLine>& prints() { return prints_; }
  bool prints_truncated() const { return prints_truncated_; }
  void add_print(PrintLine line);

  LaunchState save() const;
  void restore(const LaunchState& state);

private:
  Launch(const Launch& launch, uint32_t factor);
  void check_shape() const;
  void check_registers() const;
  void check_scratchpad() const;
  void bind_args();
  void build_lanes();
  void build_broadcasts();

  Machine& machine_;
  LaunchConfig config_;
  LaunchImage image_;
  uint64_t block_count_ = 0;
  LaunchState state_;
  ObserverList observers_;
  CopyPolicy copy_policy_ = CopyPolicy::kAtWait;
  std::vector<PrintLine> prints_;
  bool prints_truncated_ = false;
  std::vector<std::unique_ptr<BlockRun>> idle_;
  std::unique_ptr<IncoherentCache> data_caches_;
};

} // namespace pto::sim
