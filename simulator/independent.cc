// SPDX-License-Identifier: Apache-2.0
#include "simulator/independent.h"

#include "isa/error.h"
#include "simulator/block.h"
#include "simulator/gang.h"
#include "simulator/host_threads.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>

namespace pto::sim {

namespace {

class Chunks {
public:
  Chunks(Launch& launch, const RunOptions& options, const GridProof& proof, uint64_t chunk_blocks)
      : launch_(launch), options_(options), proof_(proof), chunk_blocks_(chunk_blocks),
        count_((launch.block_count() + chunk_blocks - 1) / chunk_blocks) {}

  /// Executes chunks as long as there are some. Each that was taken runs to its end, so those that
  /// ran are the first ones.
  void work(bool is_caller) {
    std::unique_ptr<Gang> gang = Gang::make(launch_, chunk_blocks_);
    if (gang != nullptr && !gang->trust(proof_)) {
      gang.reset(); // it might have to be undone
    }
    BlockRun block(launch_);
    while (options_.interrupt == nullptr || !options_.interrupt->load(std::memory_order_relaxed)) {
      const uint64_t chunk = next_.fetch_add(1);
      if (chunk >= count_) {
        break;
      }
      const uint64_t first = chunk * chunk_blocks_;
      const uint64_t end = std::min(first + chunk_blocks_, launch_.block_count());
      const InsnCounts counts = run(gang.get(), block, first, end);
      const Progress progress = add(end - first, counts);
      if (is_caller && options_.progress) {
        options_.progress(progress);
      }
    }
  }

  /// After all workers.
  bool credit() {
    const Progress all = progress();
    launch_.credit_blocks(all.blocks_done, all.counts);
    return all.blocks_done == all.block_count;
  }

private:
  InsnCounts run(Gang* gang, BlockRun& block, uint64_t first, uint64_t end) const {
    const uint32_t cores = std::max(1u, launch_.machine().profile.cores);
    InsnCounts counts;
    for (uint64_t index = first; index < end; ++index) {
      if (gang != nullptr && gang->covers(index, end)) {
        PTO_CHECK(gang->run(index) == Gang::Stop::kDone);
        counts.add(gang->counts());
        index += gang->size() - 1;
        continue;
      }
      block.start(index, static_cast<uint32_t>(index % cores));
      block.forget_when_ended();
      PTO_CHECK(block.run(UINT64_MAX) == BlockStop::kDone);
      counts.add(block.counts());
    }
    return counts;
  }

  /// One more chunk has run, of so many blocks and insns.
  Progress add(uint64_t blocks, const InsnCounts& counts) {
    const std::lock_guard<std::mutex> lock(mutex_);
    done_ += blocks;
    counts_.add(counts);
    return progress();
  }

  Progress progress() const {
    return {.blocks_done = done_, .block_count = launch_.block_count(), .counts = counts_};
  }

  Launch& launch_;
  const RunOptions& options_;
  const GridProof proof_;
  const uint64_t chunk_blocks_;
  const uint64_t count_;
  std::atomic<uint64_t> next_{0};
  std::mutex mutex_;
  uint64_t done_ = 0; // blocks, under the mutex
  InsnCounts counts_; // theirs
};

} // namespace

bool run_independent(Launch& launch,
                     const RunOptions& options,
                     const GridProof& proof,
                     unsigned threads,
                     uint64_t chunk_blocks) {
  Chunks chunks(launch, options, proof, chunk_blocks);
  work_on_threads(threads, [&](unsigned number) { chunks.work(number == 0); });
  return chunks.credit();
}

} // namespace pto::sim
