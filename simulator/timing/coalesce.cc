// SPDX-License-Identifier: Apache-2.0
// Grouping of a warp's addresses. Words and lines are found by small sorted arrays: a warp has at
// most 32 addresses, and they usually ascend.
#include "simulator/timing/coalesce.h"

#include "isa/host_level.h"
#include "isa/insn.h"
#include "simulator/timing/lane_repeats.h"

#include <algorithm>
#include <bit>
#include <type_traits>
#include <utility>

namespace pto::sim {

namespace {

constexpr unsigned kMaxWords = 32 * 8; // 32 lanes of at most 32 bytes in words of 4 bytes

// Distinct word numbers that the lanes touch, ascending; returns how many.
unsigned distinct_words(const WarpAddresses& access,
                        uint32_t word_bytes,
                        std::array<uint64_t, kMaxWords>& words) {
  unsigned count = 0;
  bool is_sorted = true;
  for (uint32_t rest = access.mask; rest != 0; rest &= rest - 1) {
    const uint64_t address = access.addresses[std::countr_zero(rest)];
    const uint64_t first = address / word_bytes;
    const uint64_t last = (address + access.bytes - 1) / word_bytes;
    for (uint64_t word = first; word <= last && count < kMaxWords; ++word) {
      if (count != 0 && words[count - 1] == word) {
        continue;
      }
      is_sorted = is_sorted && (count == 0 || words[count - 1] < word);
      words[count++] = word;
    }
  }
  if (!is_sorted) {
    std::sort(words.begin(), words.begin() + count);
    count =
        static_cast<unsigned>(std::unique(words.begin(), words.begin() + count) - words.begin());
  }
  return count;
}

/// Every lane is active and takes the bytes after those of the lane before.
bool is_one_run(const WarpAddresses& access) {
  if (access.is_run || access.mask != ~0u) {
    return access.is_run;
  }
  uint64_t differs = 0;
  for (unsigned lane = 0; lane < isa::kWarpLanes; ++lane) {
    differs |= access.addresses[lane] ^ (access.addresses[0] + uint64_t{lane} * access.bytes);
  }
  return differs == 0;
}

/// Fills `near` from line numbers of all lanes, less that of the first. False: they lie too far
/// apart.
PTO_HOST_LOOP bool make_near(const uint64_t* __restrict lines, LaneNumbers& __restrict near) {
  constexpr uint64_t kReach = 1u << 30;
  uint64_t outside = 0;
  for (unsigned i = 0; i < LaneNumbers::kLanes; ++i) {
    const uint64_t from_first = lines[i] - lines[0] + kReach;
    outside |= from_first;
    near.number[i] = LaneNumbers::kNone;
    near.lanes()[i] = static_cast<uint32_t>(from_first);
  }
  return outside < 2 * kReach;
}

/// No lane's access reaches into a second line.
PTO_HOST_LOOP bool
are_whole(const uint64_t* __restrict addresses, uint32_t bytes, uint32_t line_bytes) {
  uint64_t furthest = 0; // in its line
  for (unsigned i = 0; i < isa::kWarpLanes; ++i) {
    furthest = std::max(furthest, addresses[i] & (line_bytes - 1));
  }
  return furthest + bytes <= line_bytes;
}

/// Lines of addresses that are anything. False: not of the kind that this can do.
bool list_scattered(const WarpAddresses& access, unsigned shift, LineList& list) {
  constexpr unsigned kLanes = isa::kWarpLanes;
  std::array<uint64_t, kLanes> lines;
  unsigned count = kLanes;
  if (access.mask == ~0u) {
    std::copy_n(access.addresses, kLanes, lines.begin());
  } else {
    count = 0;
    for (uint32_t rest = access.mask; rest != 0; rest &= rest - 1) {
      lines[count++] = access.addresses[std::countr_zero(rest)];
    }
    // The last one again changes nothing.
    std::fill(lines.begin() + count, lines.end(), lines[count - 1]);
  }
  if (!isa::host_loop<are_whole>.on_host()(lines.data(), access.bytes, 1u << shift)) {
    return false;
  }
  for (uint64_t& line : lines) {
    line >>= shift;
  }
  LaneNumbers near;
  std::array<uint32_t, kLanes> repeats;
  if (!isa::host_loop<make_near>.on_host()(lines.data(), near)) {
    return false;
  }
  if (!isa::host_loop<find_repeats_ascending>.on_host()(near, repeats.data())) {
    isa::host_loop<find_repeats>.on_host()(near, repeats.data());
  }
  list.count = 0;
  for (unsigned i = 0; i < count; ++i) {
    list.line[list.count] = lines[i];
    list.count += 1 + repeats[i]; // all bits set: one less
  }
  return true;
}

} // namespace

LineList touched_lines(const WarpAddresses& access, uint32_t line_bytes) {
  const unsigned shift = static_cast<unsigned>(std::countr_zero(line_bytes));
  LineList list;
  if (access.mask == 0 ||
      (!access.is_run && !access.is_same && list_scattered(access, shift, list))) {
    return list;
  }
  const LineSet set = distinct_lines(access, line_bytes);
  list.count = set.count;
  std::copy_n(set.line.begin(), set.count, list.line.begin());
  return list;
}

LineSet distinct_lines(const WarpAddresses& access, uint32_t line_bytes) {
  LineSet set;
  const unsigned shift = static_cast<unsigned>(std::countr_zero(line_bytes));
  if (is_one_run(access)) {
    const uint64_t begin = access.addresses[0];
    const uint64_t end = begin + uint64_t{access.bytes} * isa::kWarpLanes;
    for (uint64_t line = begin >> shift; line << shift < end && set.count < kMaxWarpLines; ++line) {
      const uint64_t from = std::max(begin, line << shift);
      const uint64_t to = std::min(end, (line + 1) << shift);
      set.line[set.count] = line;
      set.covered_bytes[set.count] = static_cast<uint32_t>(to - from);
      ++set.count;
    }
    return set;
  }
  if (access.is_same && access.mask != 0) {
    const uint64_t address = access.addresses[std::countr_zero(access.mask)];
    if (address >> shift == (address + access.bytes - 1) >> shift) {
      set.line[0] = address >> shift;
      set.covered_bytes[0] =
          std::min(line_bytes, static_cast<uint32_t>(std::popcount(access.mask)) * access.bytes);
      set.count = 1;
      return set;
    }
  }
  uint64_t seen = 0; // bit i: a line of the set with line % 64 == i
  uint64_t lowest = UINT64_MAX;
  uint64_t highest = 0;
  for (uint32_t rest = access.mask; rest != 0; rest &= rest - 1) {
    const uint64_t address = access.addresses[std::countr_zero(rest)];
    const uint64_t last = (address + access.bytes - 1) >> shift;
    for (uint64_t line = address >> shift; line <= last; ++line) {
      const uint64_t from = std::max(address, line << shift);
      const uint64_t to = std::min(address + access.bytes, (line + 1) << shift);
      unsigned at = set.count; // the most recent line is the likeliest
      const uint64_t bit = uint64_t{1} << (line % 64);
      if (line < lowest || line > highest || (seen & bit) == 0) {
        at = 0; // surely new: no need to search
        lowest = std::min(lowest, line);
        highest = std::max(highest, line);
        seen |= bit;
      }
      while (at != 0 && set.line[at - 1] != line) {
        --at;
      }
      if (at == 0) {
        if (set.count == kMaxWarpLines) {
          continue;
        }
        set.line[set.count] = line;
        set.covered_bytes[set.count] = 0;
        at = ++set.count;
      }
      set.covered_bytes[at - 1] += static_cast<uint32_t>(to - from);
    }
  }
  for (unsigned i = 0; i < set.count; ++i) {
    set.covered_bytes[i] = std::min(set.covered_bytes[i], line_bytes);
  }
  return set;
}

BankUse bank_use(const WarpAddresses& access, const isa::MachineProfile::L1& l1) {
  if (access.mask == 0) {
    return {};
  }
  BankUse use{1, 1};
  const uint32_t word_bytes = l1.subbank_bytes;
  const bool has_bus = l1.bytes_per_cycle != 0;
  if (l1.banks == 0 && !has_bus) {
    return use;
  }
  std::array<uint64_t, kMaxWords> words;
  const unsigned count = distinct_words(access, word_bytes, words);
  const uint32_t groups = l1.bank_groups != 0 ? l1.bank_groups : std::max(l1.banks, 1u);
  const uint32_t words_per_row = l1.row_bytes / word_bytes;
  const uint32_t ports = groups * words_per_row;
  const uint32_t bus_lanes = has_bus ? std::max(l1.bytes_per_cycle / word_bytes, 1u) : 0;
  if (count == 1) {
    return use;
  }
  std::array<uint16_t, 1024> port_words;
  const auto most = [&](uint32_t places, auto place_of) {
    places = std::min<uint32_t>(places, port_words.size());
    std::fill_n(port_words.begin(), places, uint16_t{0});
    unsigned top = 0;
    for (unsigned i = 0; i < count; ++i) {
      top = std::max<unsigned>(top, ++port_words[place_of(words[i]) % places]);
    }
    return top;
  };
  if (l1.banks != 0) {
    // Rows go round the banks; banks i and i + groups share a port for each word of a row.
    use.degree = most(ports, [&](uint64_t word) {
      const uint64_t bank = word / words_per_row % l1.banks;
      return static_cast<uint32_t>(bank % groups * words_per_row + word % words_per_row);
    });
  }
  if (has_bus) {
    use.bus_words =
        most(bus_lanes, [&](uint64_t word) { return static_cast<uint32_t>(word % bus_lanes); });
  }
  return use;
}

namespace {

/// In words of 4 bytes from the lowest one. False: they are not all words, or lie too far apart.
template <class Numbers>
PTO_HOST_LOOP bool make_words(const uint64_t* __restrict addresses, Numbers& words) {
  using Number = std::remove_reference_t<decltype(*words.lanes())>;
  const auto first = static_cast<uint32_t>(addresses[0]);
  std::array<int32_t, isa::kWarpLanes> from_first;
  int32_t lowest = 0;
  int32_t highest = 0;
  uint32_t bits = 0;
  for (unsigned i = 0; i < isa::kWarpLanes; ++i) {
    from_first[i] = static_cast<int32_t>(static_cast<uint32_t>(addresses[i]) - first);
    lowest = std::min(lowest, from_first[i]);
    highest = std::max(highest, from_first[i]);
    bits |= static_cast<uint32_t>(from_first[i]);
  }
  for (unsigned i = 0; i < isa::kWarpLanes; ++i) {
    const uint32_t offset = static_cast<uint32_t>(from_first[i]) - static_cast<uint32_t>(lowest);
    words.number[i] = Numbers::kNone;
    words.lanes()[i] = static_cast<Number>(offset / 4);
  }
  const uint32_t span = static_cast<uint32_t>(highest) - static_cast<uint32_t>(lowest);
  return bits % 4 == 0 && span < uint32_t{Numbers::kNone} * 4;
}

/// The greatest element of a vector, plus 1.
template <class Number, class Vector> PTO_HOST_LOOP unsigned one_more_than_most(const Vector& of) {
  std::array<Number, sizeof(Vector) / sizeof(Number)> numbers;
  __builtin_memcpy(numbers.data(), &of, sizeof(Vector));
  Number most = 0;
  for (const Number number : numbers) {
    most = std::max(most, number);
  }
  return most + 1u;
}

/// Counts in `before` the lanes before each that have its number; a loop would not be unrolled.
template <size_t... kBack>
PTO_HOST_LOOP void
count_before(ByteWarp& before, const uint8_t* lanes, std::index_sequence<kBack...>) {
  ByteWarp own;
  ByteWarp other;
  read_vector(own, lanes);
  ((read_vector(other, lanes - (kBack + 1)), before -= own == other), ...);
}

/// most_on_one_word of lanes within 254 words, a byte a lane; 0: they are not.
PTO_HOST_LOOP unsigned most_on_near_word(const uint64_t* __restrict addresses) {
  TinyLaneNumbers words;
  if (!make_words(addresses, words)) {
    return 0;
  }
  constexpr unsigned kOthers = TinyLaneNumbers::kLanes - 1;
  ByteWarp before = {};
  count_before(before, words.lanes(), std::make_index_sequence<kOthers>());
  return one_more_than_most<uint8_t>(before);
}

/// The most lanes on one word, of all lanes; 0: they are not all words, or lie too far apart.
PTO_HOST_LOOP unsigned most_on_one_word(const uint64_t* __restrict addresses) {
  if (const unsigned most = most_on_near_word(addresses); most != 0) {
    return most;
  }
  SmallLaneNumbers words;
  if (!make_words(addresses, words)) {
    return 0;
  }
  HalfWarp before[2] = {}; // lanes before each with its word
  for_each_pair(words, [&](unsigned half, const HalfWarp& own, const HalfWarp& other) {
    before[half] -= own == other;
  });
  const HalfWarp more = before[0] > before[1];
  const HalfWarp most = (before[0] & more) | (before[1] & ~more);
  return one_more_than_most<uint16_t>(most);
}

/// The most active lanes on one address, whatever the addresses are.
unsigned most_by_sorting(const WarpAddresses& access) {
  std::array<uint32_t, isa::kWarpLanes> sorted;
  unsigned count = 0;
  for (uint32_t rest = access.mask; rest != 0; rest &= rest - 1) {
    sorted[count++] = static_cast<uint32_t>(access.addresses[std::countr_zero(rest)]);
  }
  std::sort(sorted.begin(), sorted.begin() + count);
  uint32_t most = 0;
  uint32_t run = 0;
  for (unsigned i = 0; i < count; ++i) {
    run = i != 0 && sorted[i] == sorted[i - 1] ? run + 1 : 1;
    most = std::max(most, run);
  }
  return most;
}

} // namespace

unsigned most_on_one_address(const WarpAddresses& access) {
  const unsigned most =
      access.mask == ~0u ? isa::host_loop<most_on_one_word>.on_host()(access.addresses) : 0;
  return most != 0 ? most : most_by_sorting(access);
}

AtomicGroups atomic_groups(const WarpAddresses& access, uint32_t sector_bytes) {
  AtomicGroups groups;
  std::array<uint64_t, 32> sorted;
  unsigned count = 0;
  for (uint32_t rest = access.mask; rest != 0; rest &= rest - 1) {
    sorted[count++] = access.addresses[std::countr_zero(rest)];
  }
  std::sort(sorted.begin(), sorted.begin() + count);
  uint32_t run = 0;
  for (unsigned i = 0; i < count; ++i) {
    const uint64_t sector = sorted[i] / sector_bytes;
    if (groups.count == 0 || groups.group[groups.count - 1].sector != sector) {
      groups.group[groups.count++] = {sector, 0, 0};
    }
    run = i != 0 && sorted[i] == sorted[i - 1] ? run + 1 : 1;
    AtomicGroup& group = groups.group[groups.count - 1];
    ++group.lane_ops;
    group.same_address = std::max(group.same_address, run);
  }
  return groups;
}

} // namespace pto::sim
