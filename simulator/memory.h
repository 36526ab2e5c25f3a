// SPDX-License-Identifier: Apache-2.0
// hbm: the device's off-chip memory, as allocations that persist from launch to launch.
//
// Addresses are 64-bit numbers of the simulated device, not host pointers. Bases are 256-byte
// aligned, never 0, never used twice, and lie at least kGuardBytes apart, so that a stray or stale
// address is outside every live allocation. Contents start at zero; host pages are touched only
// when the program touches them.
//
// Thread rule: alloc and free only while no launch runs on this object. During a launch the engine
// goes through host pointers; the parallel driver (simulator/parallel.h) keeps workers apart. A
// device that allocates while kernels run gives each launch a view: its own Hbm over the table of
// allocations of that moment, whose host memory it shares and keeps.
#pragma once

#include "isa/error.h"

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pto::sim {

class HbmHistory;

/// Misuse of Hbm by its host side: no memory left, double free, a free of what is no base.
class HbmError : public Error {
public:
  using Error::Error;
};

struct Allocation {
  std::string name;
  std::string made_by; // who allocated it: a source place or API call; may be empty
  std::string freed_by;
  uint64_t base = 0;
  uint64_t size_bytes = 0;
  bool is_live = true;
  uint8_t* host = nullptr;         // null once freed
  uint32_t id = 0;                 // counts allocations from 0
  std::shared_ptr<uint8_t> memory; // owns host, together with every view

  uint64_t end() const { return base + size_bytes; }
  /// The whole range lies inside.
  bool holds(uint64_t address, uint64_t bytes) const {
    return address - base <= size_bytes && bytes <= size_bytes - (address - base);
  }
};

/// The allocations of an Hbm at one moment. Immutable, so that many launches may share it.
struct HbmTable {
  std::vector<Allocation> live; // by base
  std::deque<std::shared_ptr<const Allocation>> freed;
  uint64_t live_bytes = 0;
};

class Hbm {
public:
  static constexpr uint64_t kAlignBytes = 256;
  static constexpr uint64_t kGuardBytes = 1u << 20;
  static constexpr uint64_t kFirstBase = 0x10000000;
  static constexpr size_t kFreedKept = 4096; // freed allocations that describe() remembers

  Hbm() = default;
  /// A view: the same bytes under the same addresses, and no alloc or free (PTO_CHECK).
  explicit Hbm(std::shared_ptr<const HbmTable> table);
  Hbm(const Hbm&) = delete;
  Hbm& operator=(const Hbm&) = delete;
  ~Hbm() = default;

  /// The table as it is now; one object until the next alloc or free.
  std::shared_ptr<const HbmTable> table();

  /// Base address of a new, zeroed allocation. Size 0 is fine (no address in it is valid). Throws
  /// HbmError, with the numbers, if the host has not so much memory.
  uint64_t alloc(uint64_t size_bytes, std::string name, std::string made_by = {});
  /// Throws HbmError for an address that is no live base, saying what it is.
  void free(uint64_t base, std::string freed_by = {});

  /// The live allocation that holds the byte, or null. Pointers stay valid until alloc or free.
  const Allocation* find(uint64_t address) const {
    const size_t i = lower_index(address);
    return i < live_.size() && address - live_[i].base < live_[i].size_bytes ? &live_[i] : nullptr;
  }
  /// Live allocations by base.
  std::span<const Allocation> live() const { return live_; }
  /// The live allocation with that base, or null.
  const Allocation* find_base(uint64_t base) const;
  /// A freed allocation that held the byte, or null.
  const Allocation* find_freed(uint64_t address) const;

  /// "allocation a (4096 bytes) + 4100: 4 bytes past the end". Names the allocation that holds the
  /// range, or the freed one, or the nearest.
  std::string describe(uint64_t address, uint64_t bytes = 1) const;
  /// "a + 16" or "0x1234" where nothing is near.
  std::string label(uint64_t address) const;

  /// Host memory behind [address, address + bytes) if it lies in one live allocation, else null.
  uint8_t* host(uint64_t address, uint64_t bytes);
  const uint8_t* host(uint64_t address, uint64_t bytes) const;
  /// Copies out / in. False, and nothing copied, where host() would be null. write() keeps an
  /// attached history right.
  [[nodiscard]] bool read(uint64_t address, std::span<uint8_t> to) const;
  [[nodiscard]] bool write(uint64_t address, std::span<const uint8_t> from);

  uint64_t live_bytes() const { return live_bytes_; }

  /// Every write from now on is first told to `history` (null: none). One at a time.
  void set_history(HbmHistory* history) { history_ = history; }
  HbmHistory* history() const { return history_; }

private:
  size_t lower_index(uint64_t address) const {
    size_t low = 0;
    size_t high = live_.size();
    while (low < high) { // last base <= address
      const size_t middle = (low + high) / 2;
      if (live_[middle].base <= address) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low == 0 ? live_.size() : low - 1;
  }

  std::vector<Allocation> live_; // by base
  std::deque<std::shared_ptr<const Allocation>> freed_;
  std::shared_ptr<const HbmTable> table_; // null: out of date
  uint64_t next_base_ = kFirstBase;
  uint64_t live_bytes_ = 0;
  uint32_t next_id_ = 0;
  bool is_view_ = false;
  HbmHistory* history_ = nullptr;
};

/// Undo history of hbm in 4 KiB pages: what reverse execution and undo are made of.
///
/// mark() starts an interval and names its start. The first write to a page in an interval keeps
/// the page's old bytes; rewind(mark) puts back everything written since that mark. Cost while no
/// page is new: one array look-up a page. Memory is bounded: past the limit the oldest intervals
/// go, and their marks with them.
class HbmHistory {
public:
  static constexpr uint64_t kPageBytes = 4096;
  using Mark = uint64_t;

  /// Attaches itself to `hbm`; detaches when destroyed. Allocations must not change meanwhile.
  explicit HbmHistory(Hbm& hbm, uint64_t limit_bytes = uint64_t{1} << 30);
  HbmHistory(const HbmHistory&) = delete;
  HbmHistory& operator=(const HbmHistory&) = delete;
  ~HbmHistory();

  Mark mark();
  /// The oldest mark that can still be rewound to.
  Mark oldest() const { return first_mark_; }
  bool can_rewind(Mark mark) const {
    return mark >= first_mark_ && mark < next_mark_ && !intervals_[mark - first_mark_].is_merged;
  }
  /// Memory is as it was at mark(); later marks are gone, this one stays. False if it is gone.
  [[nodiscard]] bool rewind(Mark mark);
  /// Forgets what is needed only for marks before this one.
  void forget_before(Mark mark);
  /// Forgets this mark alone: earlier and later ones stay. Pages that were saved twice are kept
  /// once, so that thinning out marks bounds the history by the memory that was written. The mark
  /// must be one that can be rewound to, and not the oldest.
  void merge(Mark mark);
  uint64_t kept_bytes() const { return kept_bytes_; }

  /// The engine calls this before it writes.
  void before_write(const Allocation& allocation, uint64_t offset, uint64_t bytes);

private:
  struct Page {
    uint8_t* host = nullptr; // in the allocation
    uint32_t size_bytes = 0;
    std::vector<uint8_t> old_bytes;
  };
  struct Interval {
    bool is_merged = false; // into the one before; empty
    std::vector<Page> pages;
    uint64_t kept_bytes = 0;
  };
  void save_page(const Allocation& allocation, std::vector<uint64_t>& stamps, uint64_t page);

  Hbm& hbm_;
  uint64_t limit_bytes_;
  uint64_t kept_bytes_ = 0;
  Mark first_mark_ = 0;
  Mark next_mark_ = 0;
  std::vector<Interval> intervals_;                  // one a mark from first_mark_
  std::map<uint64_t, std::vector<uint64_t>> stamps_; // by base: last interval + 1 that saved a page
  uint64_t epoch_ = 0;                               // never repeats, unlike marks after a rewind
};

} // namespace pto::sim
