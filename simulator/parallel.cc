// SPDX-License-Identifier: Apache-2.0
// Workers, claims and undo of parallel functional runs.
#include "simulator/parallel.h"

#include "simulator/block.h"
#include "simulator/block_context.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <thread>

namespace pto::sim {

namespace {

constexpr uint64_t kGranuleBytes = 128;
/// Warp insns after which a block counts as one that may wait for others.
constexpr uint64_t kBlockLimit = uint64_t{1} << 26;
constexpr uint64_t kSliceInsns = uint64_t{1} << 16;     // between two looks at the stop flag
constexpr uint64_t kUndoLimitBytes = uint64_t{1} << 30; // of one worker
constexpr uint64_t kMinBlocks = 16;                     // fewer are not worth the threads
constexpr uint64_t kMaxRun = 256; // consecutive blocks that a worker takes at a time

// A claim: 0 none, kSharedRead, or twice the worker's number (from 1), plus 1 where it writes.
using Claim = std::atomic<uint16_t>;
constexpr uint16_t kSharedRead = 1;

/// Claims on every granule of the live allocations, by allocation base.
class ClaimTable {
public:
  explicit ClaimTable(const Hbm& hbm) {
    for (const Allocation& allocation : hbm.live()) {
      const uint64_t granules = (allocation.size_bytes + kGranuleBytes - 1) / kGranuleBytes;
      claims_.emplace(allocation.base, std::vector<Claim>(granules));
    }
  }
  Claim* of(const Allocation& allocation) { return claims_.find(allocation.base)->second.data(); }

private:
  std::map<uint64_t, std::vector<Claim>> claims_;
};

/// What workers share.
struct Shared {
  Launch& launch;
  const RunOptions& options;
  ClaimTable claims;
  uint64_t run_blocks;
  std::atomic<uint64_t> next_block{0};
  std::atomic<bool> stop{false};
};

class Worker final : public AccessGate {
public:
  Worker(Shared& shared, unsigned number)
      : shared_(shared), reader_(static_cast<uint16_t>(number * 2)),
        writer_(static_cast<uint16_t>(number * 2 + 1)) {}

  void work() {
    Launch& launch = shared_.launch;
    const uint64_t blocks = launch.block_count();
    const uint32_t cores = std::max(1u, launch.machine().profile.cores);
    BlockRun block(launch);
    block.set_gate(this);
    while (!must_stop()) {
      const uint64_t first = shared_.next_block.fetch_add(shared_.run_blocks);
      const uint64_t last = std::min(blocks, first + shared_.run_blocks);
      if (first >= blocks) {
        return;
      }
      for (uint64_t index = first; index < last; ++index) {
        block.start(index, static_cast<uint32_t>(index % cores));
        if (!finish(block)) {
          shared_.stop.store(true, std::memory_order_relaxed);
          return;
        }
        counts_.add(block.counts());
      }
    }
  }

  const InsnCounts& counts() const { return counts_; }
  void undo() {
    for (const Saved& saved : saved_) {
      std::memcpy(saved.host, old_bytes_.data() + saved.at, saved.size_bytes);
    }
  }

  bool may_read(const Allocation& allocation, uint64_t offset, uint64_t bytes) override {
    Claim* claims = claims_of(allocation);
    const uint64_t last = (offset + bytes - 1) / kGranuleBytes;
    for (uint64_t i = offset / kGranuleBytes; i <= last; ++i) {
      uint16_t claim = claims[i].load(std::memory_order_acquire);
      while (claim != reader_ && claim != writer_ && claim != kSharedRead) {
        if (claim != 0 && (claim & 1) != 0) {
          return false; // another worker writes it
        }
        const uint16_t wanted = claim == 0 ? reader_ : kSharedRead;
        if (claims[i].compare_exchange_weak(claim, wanted, std::memory_order_acq_rel)) {
          break;
        }
      }
    }
    return true;
  }

  bool may_write(const Allocation& allocation, uint64_t offset, uint64_t bytes) override {
    Claim* claims = claims_of(allocation);
    const uint64_t last = (offset + bytes - 1) / kGranuleBytes;
    for (uint64_t i = offset / kGranuleBytes; i <= last; ++i) {
      uint16_t claim = claims[i].load(std::memory_order_acquire);
      if (claim == writer_) {
        continue;
      }
      do {
        if (claim != 0 && claim != reader_) {
          return false;
        }
      } while (!claims[i].compare_exchange_weak(claim, writer_, std::memory_order_acq_rel));
      save(allocation, i);
    }
    return old_bytes_.size() <= kUndoLimitBytes;
  }

private:
  struct Saved {
    uint8_t* host = nullptr;
    size_t at = 0; // in old_bytes_
    uint32_t size_bytes = 0;
  };

  bool must_stop() const {
    return shared_.stop.load(std::memory_order_relaxed) ||
           (shared_.options.interrupt != nullptr &&
            shared_.options.interrupt->load(std::memory_order_relaxed));
  }

  /// Runs the block to its end; false where only the order can tell what comes out.
  bool finish(BlockRun& block) {
    BlockStop stop = BlockStop::kBudget;
    while (stop == BlockStop::kBudget && block.counts().warp_insns < kBlockLimit && !must_stop()) {
      stop = block.run(kSliceInsns);
    }
    if (stop != BlockStop::kDone) {
      return false;
    }
    block.finish();
    return !block.was_stopped_by_gate();
  }

  Claim* claims_of(const Allocation& allocation) {
    if (last_base_ != allocation.base) {
      last_base_ = allocation.base;
      last_claims_ = shared_.claims.of(allocation);
    }
    return last_claims_;
  }

  void save(const Allocation& allocation, uint64_t granule) {
    const uint64_t begin = granule * kGranuleBytes;
    const uint64_t size = std::min(kGranuleBytes, allocation.size_bytes - begin);
    const uint8_t* from = allocation.host + begin;
    if (!saved_.empty() && saved_.back().host + saved_.back().size_bytes == from) {
      saved_.back().size_bytes += static_cast<uint32_t>(size);
    } else {
      saved_.push_back({allocation.host + begin, old_bytes_.size(), static_cast<uint32_t>(size)});
    }
    old_bytes_.insert(old_bytes_.end(), from, from + size);
  }

  Shared& shared_;
  uint16_t reader_;
  uint16_t writer_;
  InsnCounts counts_;
  std::vector<Saved> saved_;
  std::vector<uint8_t> old_bytes_;
  uint64_t last_base_ = 0;
  Claim* last_claims_ = nullptr;
};

/// Atomics on hbm exist to meet other blocks.
bool has_hbm_atomics(const Program& program) {
  const std::vector<ProgramInsn>& insns = program.insns();
  return std::any_of(insns.begin(), insns.end(), [](const ProgramInsn& decoded) {
    return decoded.insn.desc->has(isa::kAtomic) && decoded.writes_hbm;
  });
}

} // namespace

bool run_parallel(Launch& launch, const RunOptions& options) {
  const unsigned host = std::max(1u, std::thread::hardware_concurrency());
  const uint64_t wanted = options.host_threads == 0 ? host : options.host_threads;
  const auto threads = static_cast<unsigned>(std::min<uint64_t>(
      {wanted, launch.block_count() / (kMinBlocks / 2), uint64_t{UINT16_MAX / 2 - 1}}));
  const Program& program = launch.program();
  if (threads < 2 || !launch.observers().empty() || launch.machine().hbm.history() != nullptr ||
      launch.blocks_started() != 0 || launch.image().data_caches != nullptr ||
      options.copies == CopyPolicy::kByDriver || (program.flags() & isa::kPrints) != 0 ||
      has_hbm_atomics(program)) {
    return false;
  }
  Shared shared{.launch = launch,
                .options = options,
                .claims = ClaimTable(launch.machine().hbm),
                .run_blocks =
                    std::clamp<uint64_t>(launch.block_count() / (threads * 8), 1, kMaxRun)};
  std::vector<Worker> workers;
  workers.reserve(threads);
  for (unsigned i = 0; i < threads; ++i) {
    workers.emplace_back(shared, i + 1);
  }
  std::vector<std::thread> others;
  for (unsigned i = 1; i < threads; ++i) {
    others.emplace_back([&worker = workers[i]] { worker.work(); });
  }
  workers[0].work();
  for (std::thread& thread : others) {
    thread.join();
  }
  InsnCounts counts;
  for (const Worker& worker : workers) {
    counts.add(worker.counts());
  }
  const bool is_complete = !shared.stop.load() &&
                           shared.next_block.load() >= launch.block_count() &&
                           (options.interrupt == nullptr || !options.interrupt->load()) &&
                           counts.warp_insns < options.max_insns;
  if (!is_complete) {
    for (Worker& worker : workers) {
      worker.undo(); // each granule has one writer, so the order does not matter
    }
    return false;
  }
  launch.credit_all_blocks(counts);
  return true;
}

} // namespace pto::sim
