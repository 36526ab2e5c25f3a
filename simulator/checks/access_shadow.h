// SPDX-License-Identifier: Apache-2.0
// Who last wrote and read each byte of a memory: the shadow that the race check compares with.
//
// A cell holds one write and two reads. Two reads suffice: a later write by an agent conflicts with
// some reader if two distinct ones are unordered. A cell stands for a line of 64 bytes as long as
// every access takes the whole line, as those of neighbouring lanes to neighbouring elements do;
// then it is packed (packed_line.h) as long as its words have few accesses that differ in more than
// warp and lane, then it is split into words of four bytes (40 bytes of shadow each, 10 a byte),
// and a word whose bytes are accessed apart into four cells more.
#pragma once

#include "simulator/checks/packed_line.h"
#include "simulator/checks/paged_array.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace pto::sim {

/// Parts of packed and split cells, by number. They stay where they are.
template <class Part> class PartPool {
public:
  Part& operator[](size_t number) { return (*chunks_[number / kChunk])[number % kChunk]; }
  const Part& operator[](size_t number) const {
    return (*chunks_[number / kChunk])[number % kChunk];
  }
  /// The number of one that is as new.
  uint32_t add() {
    uint32_t number = count_;
    if (!free_.empty()) {
      number = free_.back();
      free_.pop_back();
    } else {
      if (++count_ > chunks_.size() * kChunk) {
        chunks_.push_back(std::make_unique<std::array<Part, kChunk>>());
      }
      if (number == first_unused_) {
        first_unused_ = count_;
        return number;
      }
    }
    (*this)[number] = Part{};
    return number;
  }
  void release(uint32_t number) { free_.push_back(number); }
  size_t count() const { return count_; }
  /// Keeps the memory.
  void clear() {
    count_ = 0;
    free_.clear();
  }

private:
  static constexpr size_t kChunk = 16;

  std::vector<std::unique_ptr<std::array<Part, kChunk>>> chunks_;
  std::vector<uint32_t> free_;
  uint32_t count_ = 0;
  uint32_t first_unused_ = 0; // since the chunks were made: that one and all after it are as new
};

class AccessShadow {
public:
  static constexpr uint64_t kLineBytes = 64;
  static constexpr uint64_t kWordBytes = 4;

  /// Nothing was accessed. Keeps the memory, for a shadow that is soon used again.
  void clear();

  /// Calls visitor.cell(cell, byte_mask, address, bytes) for the cells of [address, address +
  /// bytes). The mask says which bytes of a word are meant; all for a line or a byte. Words of a
  /// line are packed if visitor.packs(): then it calls visitor.words(line, address, end), which
  /// returns how far it got. What is left is cells of a line that is split.
  template <class Visitor> void visit(uint64_t address, uint64_t bytes, Visitor&& visitor) {
    const uint64_t end = address + bytes;
    for (uint64_t at = address; at < end;) {
      const uint64_t line_end = (at / kLineBytes + 1) * kLineBytes;
      const uint64_t stop = end < line_end ? end : line_end;
      visit_in_line(line_of(at), at, stop, visitor);
      at = stop;
    }
  }
  /// Of a line that line_of() gave.
  template <class Visitor>
  void visit_in_line(AccessCell& line, uint64_t begin, uint64_t end, Visitor&& visitor) {
    if (line.is_packed || (!line.is_split && end - begin != kLineBytes)) {
      if ((begin | end) % kWordBytes == 0 && visitor.packs()) {
        begin = visitor.words(packed_of(line), begin, end);
        if (begin == end) {
          return;
        }
      }
    } else if (!line.is_split) {
      visitor.cell(line, kAllBytes, begin, kLineBytes);
      return;
    }
    visit_words(words_of(line), begin, end, visitor);
  }
  AccessCell& line_of(uint64_t address) { return lines_[address / kLineBytes]; }
  /// line_of() of some addresses, at least one.
  void lines_of(const uint64_t* addresses, size_t count, AccessCell** lines) {
    constexpr uint64_t kPageCells = PagedArray<AccessCell>::kPageCells;
    constexpr uint64_t kPageBytes = kLineBytes * kPageCells;
    if (addresses[0] / kPageBytes >= PagedArray<AccessCell>::kFirstPages) { // hbm
      for (size_t i = 0; i < count; ++i) {
        lines[i] = &lines_.scattered(addresses[i] / kLineBytes);
      }
      return;
    }
    uint64_t differing = 0;
    for (size_t i = 0; i < count; ++i) {
      differing |= addresses[i] ^ addresses[0];
    }
    if (differing < kPageBytes) {
      AccessCell* const page = &lines_[addresses[0] / kPageBytes * kPageCells];
      for (size_t i = 0; i < count; ++i) {
        lines[i] = page + addresses[i] % kPageBytes / kLineBytes;
      }
    } else {
      for (size_t i = 0; i < count; ++i) {
        lines[i] = &lines_.among_first(addresses[i] / kLineBytes);
      }
    }
  }

  /// The word at an address, of a line that is split.
  AccessCell& word_in(const AccessCell& line, uint64_t address) {
    return words_[line.write.pc][word_of(address)];
  }

  /// What line_of() leads to for the word at an address, as it is now: a line that is packed or
  /// split.
  struct Place {
    PackedLine* packed;
    AccessCell* word;
  };
  Place place_of(const AccessCell& line, uint64_t address) {
    Place place = {nullptr, nullptr};
    if (line.is_packed) {
      place.packed = &packed_[line.write.pc];
    } else if (line.is_split) {
      place.word = &word_in(line, address);
    }
    return place;
  }
  /// No part of the word was accessed alone.
  static bool is_whole(const AccessCell& word) {
    return !word.is_split && !needs_split(word, kAllBytes);
  }
  static unsigned word_of(uint64_t address) {
    return static_cast<unsigned>(address % kLineBytes / kWordBytes);
  }

  /// Asks the host's cache for shadow. A gather needs that of 32 places far apart, and waiting for
  /// each in turn would be most of its cost. Always inline: GCC takes a function that only
  /// prefetches for one without effect and drops its calls.
  [[gnu::always_inline]] static void prefetch(const AccessCell& cell) { prefetch_ends(cell); }
  [[gnu::always_inline]] static void prefetch(const Place& place) {
    if (place.packed != nullptr) {
      prefetch_ends(*place.packed);
    } else if (place.word != nullptr) {
      prefetch_ends(*place.word);
    }
  }
  /// A small shadow is in the host's cache already.
  bool is_large() const {
    constexpr size_t kFits = 512;
    return words_.count() + packed_.count() / 4 >= kFits;
  }

  /// The cell that stands for a byte now.
  AccessCell peek(uint64_t address);

  static constexpr uint8_t kAllBytes = 0xf;

private:
  using Words = std::array<AccessCell, kLineBytes / kWordBytes>;
  using Bytes = std::array<AccessCell, kWordBytes>;

  template <class Part> [[gnu::always_inline]] static void prefetch_ends(const Part& part) {
    const char* begin = reinterpret_cast<const char*>(&part);
    __builtin_prefetch(begin, 1);
    __builtin_prefetch(begin + sizeof(Part) - 1, 1);
  }
  template <class Visitor>
  void visit_words(Words& words, uint64_t begin, uint64_t end, Visitor& visitor) {
    for (uint64_t at = begin; at < end;) {
      const uint64_t word_end = (at / kWordBytes + 1) * kWordBytes;
      const uint64_t stop = end < word_end ? end : word_end;
      const auto mask = static_cast<uint8_t>(((1u << (stop - at)) - 1) << (at % kWordBytes));
      AccessCell& word = words[word_of(at)];
      if (!word.is_split && !needs_split(word, mask)) {
        visitor.cell(word, mask, at, stop - at);
      } else {
        Bytes& bytes = bytes_of(word);
        for (; at < stop; ++at) {
          visitor.cell(bytes[at % kWordBytes], kAllBytes, at, uint64_t{1});
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
  /// The packed form of a line that was not split.
  PackedLine& packed_of(AccessCell& line) {
    return line.is_packed ? packed_[line.write.pc] : pack(line);
  }
  PackedLine& pack(AccessCell& line);
  /// The parts of a cell, which is split if it was not yet.
  Words& words_of(AccessCell& line);
  Bytes& bytes_of(AccessCell& word);

  PagedArray<AccessCell> lines_;
  PartPool<PackedLine> packed_;
  PartPool<Words> words_;
  PartPool<Bytes> bytes_;
};

} // namespace pto::sim
