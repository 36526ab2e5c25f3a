// SPDX-License-Identifier: Apache-2.0
// Who last wrote and read each byte of a memory: the shadow that the race check compares with.
//
// A cell holds one write and two reads. Two reads suffice: a later write by an agent conflicts with
// some reader if two distinct ones are unordered. A cell stands for a line of 64 bytes as long as
// every access takes the whole line, as those of neighbouring lanes to neighbouring elements do;
// then it is split into words of four bytes (40 bytes of shadow each, 10 a byte), and a word whose
// bytes are accessed apart into four cells more.
#pragma once

#include "isa/error.h"
#include "isa/insn.h"
#include "simulator/checks/happens_before.h"
#include "simulator/checks/paged_array.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace pto::sim {

struct AccessEntry {
  Agent agent = kNoAgent;
  uint32_t time = 0;
  uint32_t pc : 26 = 0;
  uint32_t is_line : 1 = 0; // the entry was made for a whole line
  uint32_t lane : 5 = 0;    // that accessed the cell, or the first byte of the line
  bool is_present() const { return agent != kNoAgent; }
};
static_assert(sizeof(AccessEntry) == 12);

struct AccessCell {
  AccessEntry write; // split: its pc is the number of the chunk
  std::array<AccessEntry, 2> reads;
  uint8_t write_bytes = 0; // of a word: mask of its bytes; otherwise all
  std::array<uint8_t, 2> read_bytes{};
  bool is_write_atomic : 1 = false;
  bool is_split : 1 = false;
};
static_assert(sizeof(AccessCell) == 40);

/// Parts of split cells, by number. They stay where they are.
template <class Part> class PartPool {
public:
  Part& operator[](size_t number) { return (*chunks_[number / kChunk])[number % kChunk]; }
  /// A new one, whose number is count() - 1.
  Part& add() {
    if (count_ == chunks_.size() * kChunk) {
      chunks_.push_back(std::make_unique<std::array<Part, kChunk>>());
    }
    Part& part = (*this)[count_++];
    part = Part{};
    return part;
  }
  size_t count() const { return count_; }
  /// Keeps the memory.
  void clear() { count_ = 0; }

private:
  static constexpr size_t kChunk = 8;

  std::vector<std::unique_ptr<std::array<Part, kChunk>>> chunks_;
  size_t count_ = 0;
};

class AccessShadow {
public:
  static constexpr uint64_t kLineBytes = 64;
  static constexpr uint64_t kWordBytes = 4;

  /// Nothing was accessed. Keeps the memory, for a shadow that is soon used again.
  void clear();

  /// Calls visit(cell, byte_mask, address, bytes) for the cells of [address, address + bytes). The
  /// mask says which bytes of a word are meant; all for a line or a byte.
  template <class Visit> void visit(uint64_t address, uint64_t bytes, Visit&& visit) {
    const uint64_t end = address + bytes;
    for (uint64_t at = address; at < end;) {
      const uint64_t line_end = (at / kLineBytes + 1) * kLineBytes;
      const uint64_t stop = end < line_end ? end : line_end;
      AccessCell& line = lines_[at / kLineBytes];
      if (!line.is_split && stop - at == kLineBytes) {
        visit(line, kAllBytes, at, kLineBytes);
      } else {
        visit_words(words_of(line), at, stop, visit);
      }
      at = stop;
    }
  }

  /// Asks the host's cache for the cells of accesses that are to come. A gather has 32 of them far
  /// apart, and waiting for each in turn would be most of its cost.
  void prefetch(std::span<const uint64_t> addresses) {
    constexpr size_t kFits = 512; // a small shadow is in that cache already
    if (words_.count() < kFits) {
      return;
    }
    std::array<const AccessCell*, isa::kWarpLanes> lines{};
    PTO_CHECK(addresses.size() <= lines.size());
    for (size_t i = 0; i < addresses.size(); ++i) {
      lines[i] = &lines_[addresses[i] / kLineBytes];
      prefetch(*lines[i]);
    }
    for (size_t i = 0; i < addresses.size(); ++i) {
      if (lines[i]->is_split) {
        prefetch(words_[lines[i]->write.pc][addresses[i] % kLineBytes / kWordBytes]);
      }
    }
  }

  /// The cell that stands for a byte now.
  const AccessCell& peek(uint64_t address);

private:
  static constexpr uint8_t kAllBytes = 0xf;
  using Words = std::array<AccessCell, kLineBytes / kWordBytes>;
  using Bytes = std::array<AccessCell, kWordBytes>;

  static void prefetch(const AccessCell& cell) {
    const char* begin = reinterpret_cast<const char*>(&cell);
    __builtin_prefetch(begin, 1);
    __builtin_prefetch(begin + sizeof(AccessCell) - 1, 1);
  }
  template <class Visit>
  void visit_words(Words& words, uint64_t begin, uint64_t end, Visit& visit) {
    for (uint64_t at = begin; at < end;) {
      const uint64_t word_end = (at / kWordBytes + 1) * kWordBytes;
      const uint64_t stop = end < word_end ? end : word_end;
      const auto mask = static_cast<uint8_t>(((1u << (stop - at)) - 1) << (at % kWordBytes));
      AccessCell& word = words[at % kLineBytes / kWordBytes];
      if (!word.is_split && !needs_split(word, mask)) {
        visit(word, mask, at, stop - at);
      } else {
        Bytes& bytes = bytes_of(word);
        for (; at < stop; ++at) {
          visit(bytes[at % kWordBytes], kAllBytes, at, uint64_t{1});
        }
      }
      at = stop;
    }
  }
  // A word stays whole while every access to it touches the same bytes.
  static bool needs_split(const AccessCell& cell, uint8_t mask) {
    return (cell.write.is_present() && cell.write_bytes != mask) ||
           (cell.reads[0].is_present() && cell.read_bytes[0] != mask) ||
           (cell.reads[1].is_present() && cell.read_bytes[1] != mask);
  }
  /// The parts of a cell, which is split if it was not yet.
  Words& words_of(AccessCell& line);
  Bytes& bytes_of(AccessCell& word);

  PagedArray<AccessCell> lines_;
  PartPool<Words> words_;
  PartPool<Bytes> bytes_;
};

} // namespace pto::sim
