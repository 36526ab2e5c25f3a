// SPDX-License-Identifier: Apache-2.0
// Packed lines from and to cells, and the slots of their entries.
#include "simulator/checks/packed_line.h"

namespace pto::sim {

PackedLine::PackedLine(const AccessCell& line) {
  const std::array<AccessEntry, kUses> entries = {line.write, line.reads[0], line.reads[1]};
  for (unsigned use = 0; use < kUses; ++use) {
    const AccessEntry& entry = entries[use];
    if (!entry.is_present()) {
      continue;
    }
    slots_[use] = {entry.agent, entry.time, entry.pc};
    Code all = code(static_cast<Code>(1U << use), 0, entry.lane);
    all |= entry.is_line != 0 ? kWholeLine : Code{0};
    all |= use == kWrite && line.is_write_atomic ? kAtomic : Code{0};
    codes_[use].fill(all);
  }
}

AccessEntry PackedLine::entry(Code code) const {
  if (code == 0) {
    return {};
  }
  const uint32_t lane = code >> kLaneShift;
  return {.agent = agent(code),
          .time = shared(code).time,
          .pc = shared(code).pc & 0x3ffffff,
          .is_line = (code & kWholeLine) != 0 ? 1u : 0u,
          .lane = lane & 31};
}

AccessCell PackedLine::cell(unsigned word) const {
  constexpr uint8_t kAllBytes = 0xf;
  AccessCell cell;
  cell.write = entry(codes_[kWrite][word]);
  cell.reads = {entry(codes_[kRead][word]), entry(codes_[kOtherRead][word])};
  cell.write_bytes = cell.write.is_present() ? kAllBytes : 0;
  for (unsigned r = 0; r < cell.reads.size(); ++r) {
    cell.read_bytes[r] = cell.reads[r].is_present() ? kAllBytes : 0;
  }
  cell.is_write_atomic = (codes_[kWrite][word] & kAtomic) != 0;
  return cell;
}

PackedLine::Code PackedLine::take_slot(const Shared& shared, unsigned begin, unsigned end) {
  unsigned used = 0;
  if (begin == end) {
    for (unsigned word = 0; word < kWords; ++word) { // as vectors
      used |= codes_[kWrite][word] | codes_[kRead][word] | codes_[kOtherRead][word];
    }
  } else {
    used = slots_in_use(0, begin) | slots_in_use(end, kWords);
  }
  used &= kSlotBits;
  if (used == kSlotBits) {
    return 0;
  }
  const auto slot = static_cast<unsigned>(__builtin_ctz(~used));
  slots_[slot] = shared;
  return static_cast<Code>(1U << slot);
}

} // namespace pto::sim
