// SPDX-License-Identifier: Apache-2.0
// Breakpoints, watchpoints and catchpoints: what the user asked to stop at. Plain values; a table
// of them outlives a session, so that `run` keeps them.
#pragma once

#include "debugger/expression.h"
#include "isa/insn.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pto::dbg {

enum class StopKind : uint8_t { kBreak, kWatch, kCatch };
enum class WatchAccess : uint8_t { kChange, kRead, kAny }; // watch, rwatch, awatch
/// What `catch` knows, beside checks: nan, race, init, sync findings are events too.
enum class CatchKind : uint8_t { kNan, kRace, kInit, kSync, kBarrier, kTrap, kLaunch, kFault };
inline constexpr unsigned kCatchKindCount = 8;
std::string_view name(CatchKind kind); // "nan", "race", ...
std::optional<CatchKind> find_catch_kind(std::string_view name);

/// Bytes or registers that a watchpoint looks at, resolved when it was made.
struct WatchTarget {
  bool is_register = false;
  RegisterRef reg{};
  uint32_t warp = 0;      // registers: of that block and warp
  uint32_t lane_mask = 0; // registers
  isa::Space space = isa::Space::kHbm;
  uint64_t address = 0; // hbm address or byte offset in the block's scratchpad
  uint64_t size_bytes = 0;
  uint64_t block = 0; // registers and scratchpad
  isa::Type type = isa::Type::kB32;
};

struct StopPoint {
  int id = 0;
  StopKind kind = StopKind::kBreak;
  std::string text; // location, expression or event, as written
  bool is_enabled = true;
  bool is_temporary = false;
  uint64_t hits = 0;
  uint64_t ignore = 0; // so many hits pass
  std::string condition_text;
  std::shared_ptr<const Expression> condition;
  std::vector<std::string> commands; // for a front end to run at the stop

  std::vector<uint32_t> pcs; // kBreak
  WatchAccess access = WatchAccess::kChange;
  WatchTarget target; // kWatch
  CatchKind event = CatchKind::kFault;
};

/// The table. Ids count from 1 and are never used twice.
class StopTable {
public:
  StopPoint& add(StopPoint point);
  /// By id, or null.
  StopPoint* find(int id);
  [[nodiscard]] const StopPoint* find(int id) const;
  bool erase(int id);
  void clear() { points_.clear(); }
  [[nodiscard]] const std::vector<StopPoint>& all() const { return points_; } // by id
  [[nodiscard]] std::vector<StopPoint>& all() { return points_; }

private:
  std::vector<StopPoint> points_;
  int next_id_ = 1;
};

/// Gives it a condition, or none for an empty text. False with a sentence in `error`, and the point
/// as it was, if the text is no expression of the program.
[[nodiscard]] bool set_condition(StopPoint& point,
                                 std::string_view text,
                                 const sim::Program& program,
                                 std::string& error);

/// A catchpoint on an event by its name; nothing with a sentence in `error`.
std::optional<StopPoint> make_catch(std::string_view event, std::string& error);

} // namespace pto::dbg
