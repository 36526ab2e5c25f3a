// SPDX-License-Identifier: Apache-2.0
// What an access makes of the words of packed lines: what touch() makes of their cells, as far as
// there is nothing to report.
#pragma once

#include "simulator/checks/race_check.h"

namespace pto::sim {

/// One access, or those of the lanes of one warp in one insn: they differ in nothing that counts
/// here. It is_packable().
class RaceCheck::PackedTouch {
public:
  PackedTouch(const HappensBefore& order, const Access& access)
      : order_(order), access_(access), shared_(shared_of(access)),
        polls_(access.reads && !access.writes && access.is_volatile),
        keeps_read_(keeps_read_of(access)) {}

  /// A word that a lane writes. False, and nothing is done, where there may be a race to report, or
  /// no room.
  bool write_word(PackedLine& line, unsigned word, uint32_t lane) {
    if (!is_over(line, line.at(PackedLine::kWrite, word)) ||
        !is_over(line, line.at(PackedLine::kRead, word)) ||
        !is_over(line, line.at(PackedLine::kOtherRead, word)) || !has_slot(line, word, word + 1)) {
      return false;
    }
    write(line, word, PackedLine::code(last_slot_, access_.by.warp(), lane));
    return true;
  }
  /// The same for one that it reads, and the read is kept.
  bool read_word(PackedLine& line, unsigned word, uint32_t lane) {
    if (!is_over(line, line.at(PackedLine::kWrite, word)) || !has_slot(line, word, word)) {
      return false;
    }
    read(line, word, PackedLine::code(last_slot_, access_.by.warp(), lane));
    return true;
  }

  /// The words [first, stop), of which lane(word) accesses one. Returns the first one that it left
  /// alone.
  template <class Lane>
  unsigned words(PackedLine& line, unsigned first, unsigned stop, Lane&& lane) {
    const bool is_settled = are_ordered(line, line.slots_in_use(first, stop));
    for (unsigned word = first; word < stop && !is_settled; ++word) {
      if (!is_undisputed(line, word)) {
        stop = word;
      }
    }
    if (stop == first || !(access_.writes || keeps_read_)) {
      return stop;
    }
    if (!has_slot(line, first, access_.writes ? stop : first)) {
      return first;
    }
    const PackedLine::Code slot = last_slot_;
    if (is_settled) { // all that was there gives way
      for (unsigned word = first; word < stop; ++word) {
        const PackedLine::Code code = PackedLine::code(slot, warp(), lane(word));
        line.set(access_.writes ? PackedLine::kWrite : PackedLine::kRead, word, code);
      }
      if (access_.writes) {
        for (unsigned word = first; word < stop; ++word) {
          line.set(PackedLine::kRead,
                   word,
                   keeps_read_ ? line.at(PackedLine::kWrite, word) : PackedLine::Code{0});
          line.set(PackedLine::kOtherRead, word, 0);
        }
      }
      return stop;
    }
    for (unsigned word = first; word < stop; ++word) {
      const PackedLine::Code code = PackedLine::code(slot, warp(), lane(word));
      if (access_.writes) {
        write(line, word, code);
      }
      if (keeps_read_) {
        read(line, word, code);
      }
    }
    return stop;
  }

private:
  static bool is_copy(Agent agent) { return (agent & kCopyBit) != 0; }
  static PackedLine::Shared shared_of(const Access& access) {
    const Agent first = is_copy(access.agent) ? access.agent : access.by.first_agent();
    return {first, access.time, access.pc};
  }
  uint32_t warp() const { return is_copy(access_.agent) ? 0 : access_.by.warp(); }

  /// There is room for words [first, stop) that are written: in last_slot_. Most lines have it in
  /// the same one.
  bool has_slot(PackedLine& line, unsigned first, unsigned stop) {
    if (last_slot_ == 0 || !(line.shared(last_slot_) == shared_)) {
      last_slot_ = line.find_slot(shared_);
      if (last_slot_ == 0) {
        last_slot_ = line.take_slot(shared_, first, stop);
      }
    }
    return last_slot_ != 0;
  }

  /// Nothing that happened to the word races with the access.
  bool is_undisputed(const PackedLine& line, unsigned word) {
    if (!polls_ && !is_over(line, line.at(PackedLine::kWrite, word))) {
      return false;
    }
    return !access_.writes || (is_over(line, line.at(PackedLine::kRead, word)) &&
                               is_over(line, line.at(PackedLine::kOtherRead, word)));
  }

  static void write(PackedLine& line, unsigned word, PackedLine::Code code) {
    line.set(PackedLine::kWrite, word, code);
    line.set(PackedLine::kRead, word, 0);
    line.set(PackedLine::kOtherRead, word, 0);
  }

  void read(PackedLine& line, unsigned word, PackedLine::Code code) {
    if (is_over(line, line.at(PackedLine::kRead, word))) {
      line.set(PackedLine::kRead, word, code);
    } else if (is_over(line, line.at(PackedLine::kOtherRead, word)) ||
               order_.are_of_one_block(line.agent(line.at(PackedLine::kRead, word)),
                                       line.agent(line.at(PackedLine::kOtherRead, word)))) {
      line.set(PackedLine::kOtherRead, word, code);
    }
  }

  /// There was no such access, or it is ordered.
  bool is_over(const PackedLine& line, PackedLine::Code code) {
    return code == 0 || is_ordered(line, code);
  }
  bool is_ordered(const PackedLine& line, PackedLine::Code code) {
    if (is_slot_ordered(line.shared(code))) {
      return true;
    }
    const Agent agent = line.agent(code);
    return agent == access_.agent || order_.is_ordered(agent, line.shared(code).time, access_.by);
  }

  /// What the slot says is ordered, in whichever warp it happened.
  bool is_slot_ordered(const PackedLine::Shared& slot) {
    if (slot.agent == ordered_agent_ && slot.time == ordered_time_) {
      return true;
    }
    const bool is_ordered =
        is_copy(slot.agent)
            ? slot.agent == access_.agent || order_.is_ordered(slot.agent, slot.time, access_.by)
            : order_.is_before_barrier(slot.agent, slot.time, access_.by);
    if (is_ordered) {
      ordered_agent_ = slot.agent;
      ordered_time_ = slot.time;
    }
    return is_ordered;
  }

  bool are_ordered(const PackedLine& line, PackedLine::Code slots) {
    bool all = true;
    for (unsigned open = slots; open != 0 && all; open &= open - 1) {
      all = is_slot_ordered(line.shared(static_cast<PackedLine::Code>(open & -open)));
    }
    return all;
  }

  const HappensBefore& order_;
  const Access& access_;
  const PackedLine::Shared shared_;
  const bool polls_; // a flag: .cv loads against stores and atomics
  const bool keeps_read_;
  PackedLine::Code last_slot_ = 0;
  // The slot that was last found to be ordered.
  Agent ordered_agent_ = kNoAgent;
  uint32_t ordered_time_ = 0;
};

} // namespace pto::sim
