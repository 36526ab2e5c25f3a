// SPDX-License-Identifier: Apache-2.0
// The lines of a fully associative cache that drives out what came in first, by number of fill.
//
// Of as many latest fills as there are slots each line is cached, of earlier ones none. So a line's
// number says whether it is there: neither a hit nor a line that goes out writes anything, and the
// numbers of all lanes of a gather can be had without a search. They lie side by side for all lines
// between the lowest and the highest that came in, 4 bytes each. Lines too far apart for that, and
// taking one line out, need another way (CacheTags has lists).
#pragma once

#include "simulator/timing/coalesce.h"
#include "simulator/timing/zeroed_allocator.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace pto::sim {

/// What an access met in a cache.
struct LineUse {
  unsigned lines = 0;
  unsigned hits = 0; // of these
};

class FillRing {
public:
  static constexpr uint32_t kNoSlot = UINT32_MAX;

  /// For at most `most_lines` from the lowest to the highest. `slots` is not 0. Numbers of fills
  /// begin behind `first_number`, which matters to tests alone.
  explicit FillRing(uint32_t slots = 1, uint64_t most_lines = 0, uint32_t first_number = 0);
  // A copy has the lines and finds their numbers again when it is used.
  FillRing(const FillRing& other);
  FillRing& operator=(const FillRing& other);
  FillRing(FillRing&&) = default;
  FillRing& operator=(FillRing&&) = default;
  ~FillRing() = default;

  [[nodiscard]] uint32_t find(uint64_t line) const {
    if (line - first_line_ >= numbers_.size()) {
      return numbers_.empty() ? find_without_numbers(line) : kNoSlot;
    }
    const uint32_t age = fills_ - numbers_[line - first_line_];
    return age < slots_ ? slot_of_age(age) : kNoSlot;
  }
  void prefetch(uint64_t line) const {
    if (line - first_line_ < numbers_.size()) {
      __builtin_prefetch(&numbers_[line - first_line_]);
    }
  }

  /// A fill can have this line. False: it is too far from the others.
  [[nodiscard]] bool reach(uint64_t line) {
    return line - first_line_ < numbers_.size() || grow(line);
  }
  struct Fill {
    uint32_t slot = 0;
    bool has_victim = false;
    uint64_t victim = 0;
  };
  /// Brings in a line that is in reach and not there.
  Fill add(uint64_t line) {
    const Fill fill{next_slot_, held_ == slots_, lines_[next_slot_].line};
    count_fill(static_cast<size_t>(line - first_line_));
    return fill;
  }
  /// Looks up each line of a warp's access once, in the order of first touch, and brings in those
  /// that are not there. Nothing, and nothing done: some lane has two lines or one out of reach.
  std::optional<LineUse> bring_in(const WarpAddresses& access, uint32_t line_bytes);
  void clear();

  /// Of a slot below held().
  [[nodiscard]] uint64_t line(uint32_t slot) const { return lines_[slot].line; }
  [[nodiscard]] double ready(uint32_t slot) const { return lines_[slot].ready; }
  void set_ready(uint32_t slot, double cycle) { lines_[slot].ready = cycle; }
  /// How many slots have a line: the first ones.
  [[nodiscard]] uint32_t held() const { return held_; }
  /// The slot of the oldest line; those of younger ones follow in a circle of held() slots.
  [[nodiscard]] uint32_t oldest() const { return held_ < slots_ ? 0 : next_slot_; }
  /// What a copy takes.
  [[nodiscard]] uint64_t size_bytes() const { return lines_.size() * sizeof(Line); }

private:
  struct Line { // zero bytes until it is filled for the first time
    uint64_t line;
    double ready;
  };

  /// Age 0: the latest.
  [[nodiscard]] uint32_t slot_of_age(uint32_t age) const {
    return next_slot_ > age ? next_slot_ - 1 - age : next_slot_ + slots_ - 1 - age;
  }
  void count_fill(size_t place) {
    lines_[next_slot_] = {first_line_ + place, 0};
    numbers_[place] = ++fills_;
    held_ += held_ < slots_ ? 1 : 0;
    next_slot_ = next_slot_ + 1 < slots_ ? next_slot_ + 1 : 0;
    if (fills_ == UINT32_MAX) {
      renumber();
    }
  }
  bool grow(uint64_t line);
  /// Writes the numbers of what is there; the others are 0.
  void write_numbers(uint64_t first_line, uint64_t count);
  void renumber();
  [[nodiscard]] uint32_t find_without_numbers(uint64_t line) const;
  LineUse bring_in_range(uint64_t first, uint64_t last);

  uint32_t slots_;
  uint64_t most_lines_;
  uint32_t
      fills_; // number of the latest fill; never below slots_, so that 0 is no line's that is there
  uint32_t next_slot_ = 0;
  uint32_t held_ = 0;
  std::vector<Line, ZeroedAllocator<Line>> lines_; // by slot
  uint64_t first_line_ = 0;
  std::vector<uint32_t, ZeroedAllocator<uint32_t>>
      numbers_; // from there on; a power of two or none
};

} // namespace pto::sim
