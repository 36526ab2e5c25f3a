// SPDX-License-Identifier: Apache-2.0
// What an access makes of the words of a packed line: what touch() makes of their cells, as far as
// there is nothing to report.
#pragma once

#include "simulator/checks/race_check.h"

namespace pto::sim {

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

  /// A word that one lane accesses by itself. False, and nothing is done, where there may be a race
  /// to report, or no room.
  bool single_word(unsigned word, const PackedLine::Shared& shared, uint32_t warp, uint32_t lane) {
    if (!is_undisputed(word)) {
      return false;
    }
    const bool keeps_read = keeps_read_of(access_);
    if (!access_.writes && !keeps_read) {
      return true;
    }
    PackedLine::Code slot = line_.find_slot(shared);
    if (slot == 0) {
      slot = line_.take_slot(shared, word, access_.writes ? word + 1 : word);
      if (slot == 0) {
        return false;
      }
    }
    const PackedLine::Code code = PackedLine::code(slot, warp, lane);
    if (access_.writes) {
      write(word, code);
    }
    if (keeps_read) {
      read(word, code);
    }
    return true;
  }

private:
  static constexpr PackedLine::Use kReadUses[] = {PackedLine::kRead, PackedLine::kOtherRead};

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

} // namespace pto::sim
