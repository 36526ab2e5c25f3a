// SPDX-License-Identifier: Apache-2.0
// Workers, claims, commits and undo of parallel functional runs.
//
// Each worker notes the granules that it reads and writes in tables of its own, one table a chunk
// of blocks, and after noting looks into the tables of the others: of two that meet, at least one
// sees the other (both note before they look, in one total order), and that one stops before its
// access. Noting and looking are one locked insn and one load a run of 32 granules.
//
// Chunks commit in the order of their blocks. What a committed chunk did happened before, as it
// would in order, so its notes no longer count and its old bytes are forgotten: undo and claims
// cover the chunks in flight alone. Atomics on hbm whose result nobody reads are put off until
// their chunk commits, so that blocks may meet in them; what is put off must not be read or written
// otherwise until then. A chunk with a block so long that it would take turns with others on one
// thread (kQuantumInsns) does not commit, nor do those after it; where atomics are put off, it ends
// the parallel run. An interrupt keeps what is done all the same.
//
// A long block may wait for another one. As soon as it is long the other workers go on without
// waiting for its chunk: the block that it waits for then meets its notes. Where no worker gets
// there, the parallel run gives way when the block provably goes round in circles (RepeatProbe), or
// has read the same again and again for long (kWaitInsns). Blocks that only compute, or go on to
// other memory, may take as long as they like.
#include "simulator/parallel.h"

#include "simulator/block.h"
#include "simulator/block_context.h"
#include "simulator/chunk_slot.h"
#include "simulator/gang.h"
#include "simulator/grid_proof.h"
#include "simulator/host_threads.h"
#include "simulator/independent.h"
#include "simulator/repeat_probe.h"
#include "simulator/written_allocations.h"

#include <algorithm>
#include <bit>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

namespace pto::sim {

namespace {

/// Warp insns in which a block has come to no new memory, and still reads: it may wait for others.
constexpr uint64_t kWaitInsns = uint64_t{1} << 26;
/// Insns of a block before somebody looks whether it repeats itself, then four times as many; and
/// the share of them that a look may take. (On 1,024 lanes a look adds 7 % at worst.)
constexpr uint64_t kFirstProbeInsns = uint64_t{1} << 18;
constexpr uint64_t kProbeShare = 1024;
constexpr uint64_t kProgressInsns = uint64_t{1} << 20;  // of a block, between two reports
constexpr uint64_t kKeptLimitBytes = uint64_t{1} << 30; // of one chunk
constexpr uint64_t kMinBlocks = 16;                     // fewer are not worth the threads
constexpr uint64_t kMaxRun = 64; // consecutive blocks that a worker takes at a time
constexpr unsigned kSlots = 4;   // chunks of a worker in flight

enum class Use : uint8_t { kRead, kWrite, kReduce };

class Worker;

/// What workers share.
struct Shared {
  Launch& launch;
  const RunOptions& options;
  uint64_t run_blocks;            // of a chunk
  std::vector<bool> may_write_to; // of the live allocations
  bool has_reductions;            // the kernel has atomics that are put off
  std::vector<std::unique_ptr<Worker>> workers;
  std::atomic<uint64_t> next_chunk{0};
  std::atomic<bool> stop{false};
  std::atomic<bool> is_strict{false}; // no chunk commits any more

  // Commits, under the mutex.
  struct Finished {
    ChunkSlot* slot = nullptr;
    InsnCounts counts;
  };
  std::mutex mutex;
  std::map<uint64_t, Finished> finished; // by chunk, those that cannot commit yet
  uint64_t committed = 0;                // chunks
  InsnCounts counts;                     // of committed chunks

  uint64_t chunk_count() const { return (launch.block_count() + run_blocks - 1) / run_blocks; }
  void finish(uint64_t chunk, ChunkSlot& slot, const InsnCounts& chunk_counts);
  /// A block has become long. False: the parallel run must end.
  [[nodiscard]] bool meet_long_block();
  /// Commits the finished chunks that are next. False: one more would pass the insn limit.
  [[nodiscard]] bool commit_next();
  void undo_rest();
  Progress progress();
};

void Shared::finish(uint64_t chunk, ChunkSlot& slot, const InsnCounts& chunk_counts) {
  const std::lock_guard<std::mutex> lock(mutex);
  finished.emplace(chunk, Finished{&slot, chunk_counts});
  if (!is_strict.load() && !commit_next()) {
    stop.store(true);
  }
}

bool Shared::meet_long_block() {
  if (has_reductions) { // their order is not that of the blocks
    return false;
  }
  if (is_strict.load()) {
    return true;
  }
  // Under the mutex, so that no slot ends after somebody saw that it goes on.
  const std::lock_guard<std::mutex> lock(mutex);
  is_strict.store(true);
  return true;
}

bool Shared::commit_next() {
  for (auto next = finished.begin(); next != finished.end() && next->first == committed;
       next = finished.erase(next)) {
    if (counts.warp_insns + next->second.counts.warp_insns > options.max_insns) {
      return false;
    }
    counts.add(next->second.counts);
    ++committed;
    next->second.slot->reductions().apply();
    if (!is_strict.load()) { // else it goes on with further chunks, which may have to be undone
      next->second.slot->is_live.store(false);
    }
  }
  return true;
}

Progress Shared::progress() {
  const std::lock_guard<std::mutex> lock(mutex);
  const uint64_t chunks = committed + finished.size();
  return {.blocks_done = std::min(chunks * run_blocks, launch.block_count()),
          .block_count = launch.block_count(),
          .counts = counts};
}

class Worker final : public AccessGate {
public:
  Worker(Shared& shared, unsigned number)
      : AccessGate(shared.launch.machine().hbm, shared.may_write_to), shared_(shared),
        number_(number) {
    for (unsigned i = 0; i < kSlots; ++i) {
      slots_.emplace_back(shared.launch.machine().hbm, shared.has_reductions);
    }
    gang_ = Gang::make(shared.launch, shared.run_blocks);
    if (gang_ != nullptr) {
      gang_->set_gate(this);
    }
  }

  void work() {
    BlockRun block(shared_.launch);
    block.set_gate(this);
    while (!must_stop() && take_slot()) {
      const uint64_t chunk = shared_.next_chunk.fetch_add(1);
      if (chunk >= shared_.chunk_count()) {
        return;
      }
      if (!slot_->is_live.load()) {
        slot_->begin(chunk);
        last_base_ = 0;
      } else {
        slot_->go_on(chunk);
      }
      if (!run_chunk(block, chunk)) {
        shared_.stop.store(true);
        return;
      }
      report();
    }
  }

  bool may_read(const Allocation& allocation, uint64_t offset, uint64_t bytes) override {
    return note(allocation, offset, bytes, false);
  }
  bool may_write(const Allocation& allocation, uint64_t offset, uint64_t bytes) override {
    return !is_probing_ && is_watched(allocation) && note(allocation, offset, bytes, true) &&
           slot_->kept_bytes() <= kKeptLimitBytes;
  }
  bool may_reduce(const Allocation& allocation, uint64_t offset, uint64_t bytes) override;
  Reductions& reductions() override { return slot_->reductions(); }

  std::deque<ChunkSlot>& slots() { return slots_; }

private:
  void report() {
    if (number_ == 0 && shared_.options.progress) { // the caller's thread
      shared_.options.progress(shared_.progress());
    }
  }

  bool must_stop() const {
    return shared_.stop.load(std::memory_order_relaxed) ||
           (shared_.options.interrupt != nullptr &&
            shared_.options.interrupt->load(std::memory_order_relaxed));
  }

  /// A slot that no chunk needs; where nothing commits any more, the last one goes on.
  bool take_slot() {
    while (!must_stop()) {
      for (ChunkSlot& slot : slots_) {
        if (!slot.is_live.load()) {
          slot_ = &slot;
          return true;
        }
      }
      if (shared_.is_strict.load()) {
        return true;
      }
      std::this_thread::yield(); // an earlier chunk is still at work on another thread
    }
    return false;
  }

  bool run_chunk(BlockRun& block, uint64_t chunk) {
    const Launch& launch = shared_.launch;
    const uint32_t cores = std::max(1u, launch.machine().profile.cores);
    const uint64_t first = chunk * shared_.run_blocks;
    const uint64_t last = std::min(launch.block_count(), first + shared_.run_blocks);
    InsnCounts counts;
    for (uint64_t index = first; index < last; ++index) {
      if (gang_ != nullptr && gang_->covers(index, last)) {
        const Gang::Stop stop = gang_->run(index);
        if (stop == Gang::Stop::kRefused) {
          return false;
        }
        if (stop == Gang::Stop::kDone) {
          counts.add(gang_->counts());
          index += gang_->size() - 1;
          continue;
        }
      }
      block.start(index, static_cast<uint32_t>(index % cores));
      block.forget_when_ended();
      if (!finish(block)) {
        return false;
      }
      counts.add(block.counts());
      if (block.counts().warp_insns >= kQuantumInsns && !shared_.meet_long_block()) {
        return false;
      }
    }
    shared_.finish(chunk, *slot_, counts);
    return true;
  }

  /// Runs the block to its end; false where only the order can tell what comes out.
  bool finish(BlockRun& block) {
    const uint64_t max_insns = shared_.options.max_insns;
    uint64_t fresh_at = 0; // insns, when it last came to new memory
    uint64_t next_probe = kFirstProbeInsns;
    uint64_t next_report = kProgressInsns;
    while (true) {
      has_fresh_ = false;
      has_reread_ = false;
      const BlockStop stop = block.run(kQuantumInsns);
      if (stop == BlockStop::kDone) {
        block.finish();
        return !block.was_stopped_by_gate();
      }
      const uint64_t executed = block.counts().warp_insns;
      if (stop != BlockStop::kBudget || must_stop() || executed >= max_insns ||
          !shared_.meet_long_block()) {
        return false;
      }
      if (has_fresh_) {
        fresh_at = executed;
      } else if (has_reread_ && executed - fresh_at >= kWaitInsns) {
        return false;
      }
      if (executed >= next_probe) {
        if (repeats(block, executed / kProbeShare)) {
          return false;
        }
        next_probe = executed * 4;
      }
      if (executed >= next_report) {
        report();
        next_report = executed + kProgressInsns;
      }
    }
  }

  /// The block does over and over what it did, and nobody changes what it reads: whoever writes to
  /// that meets its notes.
  bool repeats(const BlockRun& block, uint64_t steps) {
    if (probe_ == nullptr) {
      probe_ = std::make_unique<RepeatProbe>(shared_.launch, *this);
    }
    is_probing_ = true;
    const bool found = probe_->repeats(block, steps);
    is_probing_ = false;
    return found;
  }

  bool note(const Allocation& allocation, uint64_t offset, uint64_t bytes, bool writes) {
    if (last_base_ != allocation.base) {
      last_base_ = allocation.base;
      last_notes_ = slot_->notes_of(allocation);
      last_reduced_ = slot_->reduced_of(allocation);
    }
    const uint64_t first = offset / kGranuleBytes;
    const uint64_t last = (offset + bytes - 1) / kGranuleBytes;
    for (uint64_t at = first; at <= last; at = (at / kWordGranules + 1) * kWordGranules) {
      const uint64_t index = at / kWordGranules;
      const uint64_t end = std::min(last + 1, (index + 1) * kWordGranules);
      const uint64_t granules = ((uint64_t{1} << (end - at)) - 1) << (at % kWordGranules);
      if (shared_.has_reductions &&
          (last_reduced_[index].load(std::memory_order_relaxed) & granules) != 0) {
        return false; // what was put off should have come before
      }
      Word& word = last_notes_[index];
      const uint64_t old = word.load(std::memory_order_relaxed); // nobody else writes it
      const uint64_t noted = writes ? old >> 32 : (old | old >> 32);
      const uint64_t fresh = granules & ~noted;
      if (fresh == 0) {
        has_reread_ = has_reread_ || !writes;
      } else if (is_probing_ || !claim(allocation, index, word, fresh, writes)) {
        return false; // whoever is probed, and comes to new memory, gets somewhere
      }
      if (writes) {
        const bool saves_again = slot_->has_parts();
        save(allocation,
             index * kWordGranules,
             saves_again ? slot_->take_unsaved(allocation, index, granules) : fresh);
      }
    }
    return true;
  }

  /// Notes the granules, which are new. False: they are contested.
  bool
  claim(const Allocation& allocation, uint64_t index, Word& word, uint64_t granules, bool writes) {
    has_fresh_ = true;
    if (word.load(std::memory_order_relaxed) == 0) {
      slot_->touch(word);
    }
    word.fetch_or(writes ? granules << 32 : granules);
    return !is_contested(allocation, index, granules, writes ? Use::kWrite : Use::kRead);
  }

  /// Whether a chunk in flight on another thread has used one of the granules in a way that an
  /// access of this kind must not meet, or one on this thread has put an atomic on it off.
  bool is_contested(const Allocation& allocation, uint64_t index, uint64_t granules, Use use);

  void save(const Allocation& allocation, uint64_t origin, uint64_t granules) {
    while (granules != 0) { // runs of set bits
      const auto from = static_cast<uint64_t>(__builtin_ctzll(granules));
      const auto count = static_cast<uint64_t>(__builtin_ctzll(~(granules >> from)));
      const uint64_t begin = (origin + from) * kGranuleBytes;
      const uint64_t size = std::min(count * kGranuleBytes, allocation.size_bytes - begin);
      slot_->save(allocation.host + begin, size);
      granules &= ~(((uint64_t{1} << count) - 1) << from);
    }
  }

  Shared& shared_;
  unsigned number_;
  std::deque<ChunkSlot> slots_; // never moved
  ChunkSlot* slot_ = nullptr;
  std::unique_ptr<Gang> gang_;         // null: blocks run one by one
  std::unique_ptr<RepeatProbe> probe_; // null: no block was long enough
  bool is_probing_ = false;            // it is a copy that asks for access
  bool has_fresh_ = false;             // since a block's turn began: an access to new memory
  bool has_reread_ = false;            // and a read of what was accessed before
  uint64_t last_base_ = 0;
  Word* last_notes_ = nullptr;
  Word* last_reduced_ = nullptr;
};

void Shared::undo_rest() {
  struct Undo {
    ChunkSlot* slot = nullptr;
    size_t part = 0;
    uint64_t chunk = 0;
  };
  std::vector<Undo> rest;
  for (const std::unique_ptr<Worker>& worker : workers) {
    for (ChunkSlot& slot : worker->slots()) {
      for (size_t part = 0; slot.is_live.load() && part < slot.parts().size(); ++part) {
        if (slot.parts()[part].chunk >= committed) {
          rest.push_back({&slot, part, slot.parts()[part].chunk});
        }
      }
    }
  }
  // Chunks of one worker may have written the same bytes, one after the other.
  std::sort(
      rest.begin(), rest.end(), [](const Undo& a, const Undo& b) { return a.chunk > b.chunk; });
  for (const Undo& undo : rest) {
    undo.slot->undo(undo.part);
  }
}

bool Worker::may_reduce(const Allocation& allocation, uint64_t offset, uint64_t bytes) {
  if (!is_watched(allocation)) {
    return false;
  }
  const uint64_t last = (offset + bytes - 1) / kGranuleBytes;
  Word* const reduced = slot_->reduced_of(allocation);
  for (uint64_t at = offset / kGranuleBytes; at <= last; ++at) {
    const uint64_t index = at / kWordGranules;
    const uint64_t granule = uint64_t{1} << (at % kWordGranules);
    Word& word = reduced[index];
    const uint64_t old = word.load(std::memory_order_relaxed);
    if ((old & granule) != 0) {
      continue;
    }
    if (old == 0) {
      slot_->touch(word);
    }
    word.fetch_or(granule);
    if (is_contested(allocation, index, granule, Use::kReduce)) {
      return false;
    }
  }
  return slot_->kept_bytes() <= kKeptLimitBytes;
}

bool Worker::is_contested(const Allocation& allocation,
                          uint64_t index,
                          uint64_t granules,
                          Use use) {
  for (const std::unique_ptr<Worker>& other : shared_.workers) {
    // This worker's chunks access memory in their order. What they put off comes later all the
    // same.
    const bool is_own = other.get() == this;
    if (is_own && (!shared_.has_reductions || use == Use::kReduce)) {
      continue;
    }
    for (ChunkSlot& slot : other->slots_) {
      if (!slot.is_live.load()) {
        continue;
      }
      const uint64_t word = is_own ? 0 : slot.notes_of(allocation)[index].load();
      uint64_t barring = use == Use::kRead ? word >> 32 : (word | word >> 32);
      if (shared_.has_reductions && use != Use::kReduce) {
        barring |= slot.reduced_of(allocation)[index].load();
      }
      if ((barring & granules) != 0 && slot.is_live.load()) { // not committed meanwhile
        return true;
      }
    }
  }
  return false;
}

bool is_hbm_atomic(const ProgramInsn& decoded) {
  return decoded.is_reached && decoded.insn.desc->has(isa::kAtomic) && decoded.writes_hbm;
}

/// What an atomic returns depends on the blocks before; one without a result can be put off.
bool must_be_in_order(const ProgramInsn& decoded) {
  const isa::Insn& insn = decoded.insn;
  return is_hbm_atomic(decoded) &&
         (insn.operand(0).kind != isa::OperandKind::kDiscard || insn.has_operand(3));
}

/// All blocks together stay within the limit.
bool has_room(const GridProof& proof, const Launch& launch, const RunOptions& options) {
  return options.max_insns / proof.insns / launch.image().warps >= launch.block_count();
}

} // namespace

bool run_parallel(Launch& launch, const RunOptions& options) {
  // The host, which has to open a file for its answer, is asked only where that counts.
  const uint64_t wanted = options.host_threads != 0
                              ? options.host_threads
                              : std::max(1u, std::thread::hardware_concurrency());
  const auto threads = static_cast<unsigned>(std::min<uint64_t>(
      {wanted, launch.block_count() / (kMinBlocks / 2), uint64_t{UINT16_MAX / 2 - 1}}));
  const Program& program = launch.program();
  const std::vector<ProgramInsn>& insns = program.insns();
  if (threads < 2 || !launch.observers().empty() || launch.machine().hbm.history() != nullptr ||
      launch.blocks_started() != 0 || launch.image().data_caches != nullptr ||
      options.copies == CopyPolicy::kByDriver || (program.flags() & isa::kPrints) != 0 ||
      std::any_of(insns.begin(), insns.end(), must_be_in_order)) {
    return false;
  }
  // A power of two, as gangs are.
  const uint64_t run_blocks = std::bit_floor(
      std::clamp<uint64_t>(launch.block_count() / (uint64_t{threads} * 32), 1, kMaxRun));
  const std::optional<GridProof> proof = prove_grid(launch);
  if (proof && has_room(*proof, launch, options)) {
    return run_independent(launch, options, *proof, threads, run_blocks);
  }
  Shared shared{.launch = launch,
                .options = options,
                .run_blocks = run_blocks,
                .may_write_to = written_allocations(launch),
                .has_reductions = std::any_of(insns.begin(), insns.end(), is_hbm_atomic)};
  for (unsigned i = 0; i < threads; ++i) {
    shared.workers.push_back(std::make_unique<Worker>(shared, i));
  }
  work_on_threads(threads, [&](unsigned number) {
    try {
      shared.workers[number]->work();
    } catch (...) {
      shared.stop.store(true); // or others would wait for its chunk
      throw;
    }
  });
  // In strict mode chunks end without a commit; all of them together make a complete run, too.
  InsnCounts counts = shared.counts;
  for (const auto& [chunk, finished] : shared.finished) {
    counts.add(finished.counts);
  }
  const bool is_complete = shared.committed + shared.finished.size() == shared.chunk_count() &&
                           counts.warp_insns <= options.max_insns;
  if (is_complete) {
    launch.credit_blocks(launch.block_count(), counts);
    return true;
  }
  // Whoever stops a run at some moment wants what is done by then: also in strict mode, where the
  // workers have ended and nothing else commits.
  if (options.interrupt != nullptr && options.interrupt->load()) {
    static_cast<void>(shared.commit_next()); // with the limit reached the rest is undone
  }
  shared.undo_rest();
  launch.credit_blocks(std::min(shared.committed * shared.run_blocks, launch.block_count()),
                       shared.counts);
  return false;
}

} // namespace pto::sim
