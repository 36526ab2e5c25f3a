// SPDX-License-Identifier: Apache-2.0
// What a parallel run (parallel.cc) keeps of a chunk of blocks in flight: the granules that it has
// accessed, the old bytes of what it wrote, and atomics that are put off. Private to the simulator.
#pragma once

#include "simulator/memory.h"
#include "simulator/old_bytes.h"
#include "simulator/reductions.h"

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <optional>
#include <vector>

namespace pto::sim {

inline constexpr uint64_t kGranuleBytes = 64;
inline constexpr uint64_t kWordGranules = 32; // of a word: bits 0..31 read, 32..63 written

using Word = std::atomic<uint64_t>;

/// Words for every granule of the live allocations. Pages of it that nobody touches cost nothing.
class NoteTable {
public:
  explicit NoteTable(const Hbm& hbm) : first_(hbm.live().data()) {
    for (const Allocation& allocation : hbm.live()) {
      constexpr uint64_t kBytes = kGranuleBytes * kWordGranules;
      const uint64_t words = allocation.size_bytes / kBytes + 1;
      void* memory = std::calloc(words, sizeof(Word)); // zeroed bytes are zeroed atomics
      if (memory == nullptr) {
        throw std::bad_alloc();
      }
      words_.emplace_back(static_cast<Word*>(memory));
    }
  }
  /// `allocation` is an element of the hbm's live().
  Word* of(const Allocation& allocation) const {
    return words_[static_cast<size_t>(&allocation - first_)].get();
  }

private:
  struct Free {
    void operator()(Word* words) const { std::free(words); }
  };
  const Allocation* first_;
  std::vector<std::unique_ptr<Word, Free>> words_; // in the order of live()
};

/// A chunk in flight, or several of one worker where nothing commits: their notes and the old bytes
/// of what they write.
class ChunkSlot {
public:
  /// `has_reductions`: atomics may be put off, which has a table of its own.
  ChunkSlot(const Hbm& hbm, bool has_reductions) : hbm_(hbm), notes_(hbm) {
    if (has_reductions) {
      reduced_.emplace(hbm);
    }
  }

  void begin(uint64_t chunk) {
    for (Word* word : touched_) {
      word->store(0, std::memory_order_release);
    }
    touched_.clear();
    old_bytes_.clear();
    reductions_.clear();
    parts_.clear();
    go_on(chunk);
    is_live.store(true);
  }
  /// With a further chunk.
  void go_on(uint64_t chunk) {
    parts_.push_back({chunk, old_bytes_.mark()});
    for (Word* word : touched_saved_) {
      word->store(0, std::memory_order_relaxed);
    }
    touched_saved_.clear();
    if (has_parts() && !saved_) {
      saved_.emplace(hbm_);
    }
  }
  /// Several chunks: each may be undone without those before it.
  bool has_parts() const { return parts_.size() > 1; }
  /// Those of the granules, in bits 0..31, whose bytes are still to be saved for the chunk at hand;
  /// they count as saved from now on. With has_parts() only: else the notes say it.
  uint64_t take_unsaved(const Allocation& allocation, uint64_t index, uint64_t granules) {
    Word& word = saved_->of(allocation)[index];
    const uint64_t old = word.load(std::memory_order_relaxed);
    if (old == 0) {
      touched_saved_.push_back(&word);
    }
    word.store(old | granules, std::memory_order_relaxed);
    return granules & ~old;
  }
  uint64_t kept_bytes() const { return old_bytes_.size_bytes() + reductions_.size_bytes(); }
  Word* notes_of(const Allocation& allocation) const { return notes_.of(allocation); }
  /// Granules with atomics that are put off, in bits 0..31; null where none are.
  Word* reduced_of(const Allocation& allocation) const {
    return reduced_ ? reduced_->of(allocation) : nullptr;
  }
  Reductions& reductions() { return reductions_; }
  void touch(Word& word) { touched_.push_back(&word); }
  void save(uint8_t* host, uint64_t size) { old_bytes_.save(host, size); }
  struct Part {
    uint64_t chunk = 0;
    size_t mark = 0; // in old_bytes_
  };
  const std::vector<Part>& parts() const { return parts_; }
  void undo(size_t part) {
    const size_t end = part + 1 < parts_.size() ? parts_[part + 1].mark : old_bytes_.mark();
    old_bytes_.undo(parts_[part].mark, end);
  }

  std::atomic<bool> is_live{false}; // its notes count

private:
  const Hbm& hbm_;
  NoteTable notes_;
  std::optional<NoteTable> reduced_;
  std::optional<NoteTable> saved_; // of the chunk at hand, where there are several
  std::vector<Part> parts_;
  std::vector<Word*> touched_;
  std::vector<Word*> touched_saved_;
  OldBytes old_bytes_;
  Reductions reductions_;
};

} // namespace pto::sim
