// SPDX-License-Identifier: Apache-2.0
// The accesses of the 16 words of a line in 144 bytes, where cells would take 640.
//
// Words of one line are mostly accessed by one insn, in warps of one block that have passed the
// same barriers: their entries differ in the warp and the lane. So agent (of the block's first
// warp), time and pc are kept once, in one of four slots, and an entry is 16 bits: slot, warp,
// lane. Nothing is lost: a line that does not fit is taken apart into cells that say the same.
#pragma once

#include "simulator/checks/access_cell.h"

#include <array>
#include <cstdint>

namespace pto::sim {

class PackedLine {
public:
  static constexpr unsigned kWords = 16;
  static constexpr unsigned kSlots = 4;
  static constexpr unsigned kMaxWarps = 32; // that a code can tell apart

  /// An entry without warp and lane.
  struct Shared {
    Agent agent = kNoAgent; // of warp 0, or of the copy
    uint32_t time = 0;
    uint32_t pc = 0;
    // Word by word: a wider comparison would wait for the stores that made the other side.
    bool operator==(const Shared& other) const {
      return agent == other.agent && time == other.time && pc == other.pc;
    }
  };
  /// 0: no entry. Otherwise one of the lowest four bits is set, that of the slot.
  using Code = uint16_t;
  static constexpr Code kSlotBits = 0xf;
  static constexpr Code kAtomic = 1 << 4;
  static constexpr Code kWholeLine = 1 << 5; // AccessEntry::is_line
  static Code code(Code slot, uint32_t warp, uint32_t lane) {
    return static_cast<Code>(slot | warp << kWarpShift | lane << kLaneShift);
  }
  /// What an entry is for.
  enum Use : unsigned { kWrite, kRead, kOtherRead, kUses };
  using Codes = std::array<Code, kWords>;

  PackedLine() = default;
  /// Of a line that was accessed as a whole, or not at all.
  explicit PackedLine(const AccessCell& line);

  Code at(Use use, unsigned word) const { return codes_[use][word]; }
  void set(Use use, unsigned word, Code code) { codes_[use][word] = code; }
  Agent agent(Code code) const { return shared(code).agent + (code >> kWarpShift & 31U); }
  const Shared& shared(Code code) const { return slots_[slot_of(code)]; }
  AccessEntry entry(Code code) const;
  AccessCell cell(unsigned word) const;

  /// The slot, as bit of a code, that holds `shared`; 0 if none does.
  Code find_slot(const Shared& shared) const {
    for (unsigned slot = 0; slot < kSlots; ++slot) {
      if (slots_[slot] == shared) {
        return static_cast<Code>(1U << slot);
      }
    }
    return 0;
  }
  /// A slot for it, where none holds it. 0 if every slot is in use by other entries than those of
  /// the words [begin, end).
  Code take_slot(const Shared& shared, unsigned begin, unsigned end);
  /// The slots that entries of the words [begin, end) are in.
  Code slots_in_use(unsigned begin, unsigned end) const {
    Code used = 0;
    for (const Codes& codes : codes_) {
      for (unsigned word = begin; word < end; ++word) {
        used |= codes[word];
      }
    }
    return used & kSlotBits;
  }

private:
  static constexpr unsigned kWarpShift = 6;
  static constexpr unsigned kLaneShift = 11;

  static unsigned slot_of(Code code) {
    return static_cast<unsigned>(__builtin_ctz(code | 1U << kSlots));
  }

  std::array<Codes, kUses> codes_{};
  std::array<Shared, kSlots> slots_{};
};
static_assert(sizeof(PackedLine) == 144);

} // namespace pto::sim
