// SPDX-License-Identifier: Apache-2.0
// Snapshots of a session in bounded memory. Private to the debugger.
//
// Points lie close together near the present and ever farther apart behind it: when memory runs
// short the point goes whose absence costs least, measured by the gap it leaves relative to its
// age. The pages of hbm that it kept pass to the point before it (HbmHistory::merge), so that all
// remaining points stay good. Only when two are left does the beginning go.
#pragma once

#include "debugger/engine.h"
#include "simulator/memory.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace pto::dbg {

/// Counters of the session that belong to a moment, kept with its snapshot.
class SessionMemo {
public:
  virtual ~SessionMemo() = default;
};

struct HistoryPoint {
  uint64_t position = 0;
  uint64_t cycle = 0; // of the latest issue before it
  size_t edits = 0;   // applied before it was taken
  std::unique_ptr<const EngineState> state;
  std::unique_ptr<const SessionMemo> memo;
  sim::HbmHistory::Mark mark = 0;
  uint64_t size_bytes = 0;
};

class History {
public:
  History(sim::Hbm& hbm, uint64_t limit_bytes);

  /// Keeps the engine's state as the newest point and makes room.
  void add(Engine& engine, size_t edits, std::unique_ptr<const SessionMemo> memo);
  /// Puts the engine back to point `index`; later points are gone. The point stays.
  void restore(Engine& engine, size_t index);

  [[nodiscard]] bool is_on() const { return limit_bytes_ != 0; }
  [[nodiscard]] const std::vector<HistoryPoint>& points() const { return points_; }
  /// Index of the last point at or before a position, cycle; SIZE_MAX if there is none.
  [[nodiscard]] size_t at_or_before(uint64_t position) const;
  [[nodiscard]] uint64_t used_bytes() const;
  [[nodiscard]] uint64_t limit_bytes() const { return limit_bytes_; }
  void set_limit_bytes(uint64_t limit);
  /// Insns between two points, so that saving takes a small part of the time.
  [[nodiscard]] uint64_t interval() const;

private:
  void make_room();

  sim::HbmHistory hbm_;
  uint64_t limit_bytes_;
  uint64_t state_bytes_ = 0;
  std::vector<HistoryPoint> points_; // by position
};

} // namespace pto::dbg
