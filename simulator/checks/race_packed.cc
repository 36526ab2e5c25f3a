// SPDX-License-Identifier: Apache-2.0
// Accesses to packed lines. What is done to a word here is what touch() does to its cell, as far as
// there is nothing to report.
#include "simulator/checks/race_check.h"

namespace pto::sim {

namespace {

constexpr PackedLine::Use kReadUses[] = {PackedLine::kRead, PackedLine::kOtherRead};

} // namespace

/// What an access makes of the words of a packed line.
class RaceCheck::PackedTouch {
public:
  PackedTouch(const HappensBefore& order, PackedLine& line, const Access& access)
      : order_(order), line_(line), access_(access) {}

  /// Finds out which slots hold only what is ordered, in whichever warp it happened.
  void look_at_slots(unsigned begin, unsigned end) {
    for (unsigned open = line_.slots_in_use(begin, end); open != 0; open &= open - 1) {
      const auto slot = static_cast<PackedLine::Code>(open & -open);
      const PackedLine::Shared& shared = line_.shared(slot);
      const bool is_copy = (shared.agent & kCopyBit) != 0;
      if (is_copy ? is_ordered(slot)
                  : order_.is_before_barrier(shared.agent, shared.time, access_.by)) {
        ordered_slots_ |= slot;
      }
    }
  }

  /// Nothing that happened to the word races with the access.
  bool is_undisputed(unsigned word) const {
    const PackedLine::Code write = line_.at(PackedLine::kWrite, word);
    if (write != 0 && !is_ordered(write)) {
      const bool both_atomic = (write & PackedLine::kAtomic) != 0 && access_.is_atomic;
      const bool polls = access_.reads && !access_.writes && access_.is_volatile;
      if (!both_atomic && !polls) {
        return false;
      }
    }
    if (access_.writes) {
      for (const PackedLine::Use use : kReadUses) {
        const PackedLine::Code read = line_.at(use, word);
        if (read != 0 && !is_ordered(read)) {
          return false;
        }
      }
    }
    return true;
  }

  void write(unsigned word, PackedLine::Code code) {
    line_.set(PackedLine::kWrite, word, access_.is_atomic ? code | PackedLine::kAtomic : code);
    line_.set(PackedLine::kRead, word, 0);
    line_.set(PackedLine::kOtherRead, word, 0);
  }

  void read(unsigned word, PackedLine::Code code) {
    for (const PackedLine::Use use : kReadUses) {
      const PackedLine::Code earlier = line_.at(use, word);
      if (earlier == 0 || is_ordered(earlier)) {
        line_.set(use, word, code);
        return;
      }
    }
    if (order_.are_of_one_block(line_.agent(line_.at(PackedLine::kRead, word)),
                                line_.agent(line_.at(PackedLine::kOtherRead, word)))) {
      line_.set(PackedLine::kOtherRead, word, code);
    }
  }

private:
  bool is_ordered(PackedLine::Code code) const {
    if ((code & ordered_slots_) != 0) {
      return true;
    }
    const Agent agent = line_.agent(code);
    return agent == access_.agent || order_.is_ordered(agent, line_.shared(code).time, access_.by);
  }

  const HappensBefore& order_;
  PackedLine& line_;
  const Access& access_;
  PackedLine::Code ordered_slots_ = 0;
};

uint64_t
RaceCheck::touch_packed(PackedLine& line, uint64_t begin, uint64_t end, const Access& access) {
  const bool is_copy = (access.agent & kCopyBit) != 0;
  // Words that warps take turns at by atomics often have fences between, so other times each.
  if (access.is_atomic || (!is_copy && access.by.warp() >= PackedLine::kMaxWarps)) {
    return begin;
  }
  const unsigned first = AccessShadow::word_of(begin);
  unsigned stop = first + static_cast<unsigned>((end - begin) / AccessShadow::kWordBytes);
  const uint32_t warp = is_copy ? 0 : access.by.warp();
  const PackedLine::Shared shared = {
      is_copy ? access.agent : access.by.first_agent(), access.time, access.pc};
  PackedLine::Code slot = line.find_slot(shared);
  // A read that no later write races with is not kept: it would only hide one that can.
  const bool keeps_read = access.reads && !access.is_atomic && !access.is_volatile;
  PackedTouch touch(order_, line, access);
  if (stop - first > 1) {
    touch.look_at_slots(first, stop);
  }
  for (unsigned word = first; word < stop; ++word) {
    if (!touch.is_undisputed(word)) {
      stop = word;
    }
  }
  const uint64_t done = begin + (stop - first) * AccessShadow::kWordBytes;
  if (stop == first || !(access.writes || keeps_read)) {
    return done;
  }
  if (slot == 0) {
    slot = line.take_slot(shared, first, access.writes ? stop : first);
    if (slot == 0) {
      return begin;
    }
  }
  for (unsigned word = first; word < stop; ++word) {
    const uint64_t address = begin + (word - first) * AccessShadow::kWordBytes;
    const PackedLine::Code code = PackedLine::code(slot, warp, lane_of(address, access));
    if (access.writes) {
      touch.write(word, code);
    }
    if (keeps_read) {
      touch.read(word, code);
    }
  }
  return done;
}

} // namespace pto::sim
