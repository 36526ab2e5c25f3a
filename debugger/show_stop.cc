// SPDX-License-Identifier: Apache-2.0
// Stops and values as text and as JSON.
#include "debugger/command.h"
#include "simulator/block.h"
#include "simulator/checks/finding.h"
#include "simulator/element.h"
#include "simulator/lane_ranges.h"
#include "simulator/report/text_table.h"

#include <algorithm>
#include <cmath>

namespace pto::dbg {

std::string to_string(const Focus& focus) {
  return fmt::format("block {} warp {} lane {}", focus.block, focus.warp, focus.lane);
}

std::string describe_insn(const sim::Program& program, uint32_t pc) {
  return pc < program.insns().size() ? fmt::format("{}  {}", program.place(pc), program.text(pc))
                                     : std::string("(no insn)");
}

std::vector<std::string>
watch_values(const WatchHit& hit, std::span<const uint8_t> bytes, size_t limit) {
  const unsigned size = std::max(1u, isa::size_bytes(hit.type));
  std::vector<std::string> values;
  for (size_t at = 0; at + size <= bytes.size() && values.size() < limit; at += size) {
    values.push_back(to_string(Value::of_bytes(hit.type, bytes.subspan(at, size))));
  }
  if (bytes.size() > limit * size) {
    values.emplace_back("...");
  }
  return values;
}

namespace {

std::string watch_value(const WatchHit& hit, const std::vector<uint8_t>& bytes) {
  const std::vector<std::string> values = watch_values(hit, bytes, 16);
  return values.size() == 1 ? values[0] : fmt::format("{{{}}}", fmt::join(values, ", "));
}

std::string watch_text(const Session& session, const WatchHit& hit) {
  std::string text = fmt::format("Watchpoint {}: {}\n", hit.id, hit.text);
  if (hit.is_read) {
    text += fmt::format("  value = {}\n", watch_value(hit, hit.new_bytes));
  } else {
    text += fmt::format("  old value = {}\n  new value = {}\n",
                        watch_value(hit, hit.old_bytes),
                        watch_value(hit, hit.new_bytes));
  }
  text += fmt::format("  {} by {} in block {}",
                      hit.is_read ? "read" : "written",
                      hit.is_copy ? std::string("the copy started")
                      : hit.lane_mask == 0
                          ? std::string("the block")
                          : fmt::format("warp {} {}", hit.warp, sim::format_lanes(hit.lane_mask)),
                      hit.block);
  return text + fmt::format(" at {}\n", describe_insn(session.program(), hit.pc));
}

std::string ids_text(const Session& session, const StopEvent& stop, std::string_view what) {
  std::vector<std::string> ids;
  for (const int id : stop.ids) {
    const StopPoint* point = session.stops().find(id);
    ids.push_back(point != nullptr && point->kind == StopKind::kCatch
                      ? fmt::format("{} ({})", id, point->text)
                      : std::to_string(id));
  }
  return fmt::format("{} {}", what, fmt::join(ids, ", "));
}

std::string headline(const Session& session, const StopEvent& stop) {
  switch (stop.reason) {
  case StopReason::kLaunch: {
    const sim::LaunchConfig& config = session.launch().config();
    return fmt::format("Kernel {}, grid {}, block {}, on {}: nothing has executed yet",
                       session.program().kernel().name,
                       sim::to_string(config.grid),
                       sim::to_string(config.block),
                       session.machine().profile.name);
  }
  case StopReason::kBreakpoint:
    return ids_text(session, stop, "Breakpoint");
  case StopReason::kCatchpoint:
    return ids_text(session, stop, "Catchpoint");
  case StopReason::kFault:
    return stop.ids.empty() ? std::string("The kernel faulted")
                            : ids_text(session, stop, "Catchpoint") + ": the kernel faulted";
  case StopReason::kDeadlock:
    return stop.ids.empty()
               ? std::string("The kernel can never go on")
               : ids_text(session, stop, "Catchpoint") + ": the kernel can never go on";
  case StopReason::kFinished: {
    const std::optional<sim::TimedResult> timed = session.timed_result();
    return timed ? fmt::format("The kernel has finished: {}, {}, {}",
                               sim::counted(session.launch().block_count(), "block"),
                               sim::counted(timed->counters.cycles, "cycle"),
                               sim::counted(session.position(), "warp insn"))
                 : fmt::format("The kernel has finished: {}, {}",
                               sim::counted(session.launch().block_count(), "block"),
                               sim::counted(session.position(), "warp insn"));
  }
  case StopReason::kInterrupted:
    return "Interrupted";
  case StopReason::kLimit:
    return "A limit was reached (max-cycles or max-instructions)";
  case StopReason::kHistoryStart:
    return session.position() == 0
               ? "Back at the launch"
               : fmt::format("The history begins here, after {} warp insns", session.position());
  case StopReason::kStep:
  case StopReason::kLocation:
  case StopReason::kWatchpoint:
    break;
  }
  return {};
}

} // namespace

std::string describe_stop(const Session& session, const StopEvent& stop) {
  std::string text;
  const std::string head = headline(session, stop);
  if (!head.empty()) {
    text += head + "\n";
  }
  for (const WatchHit& hit : stop.watches) {
    text += watch_text(session, hit);
  }
  for (const sim::Finding& finding : stop.findings) {
    if (!finding.is_stop) { // the fault below says the same
      text += sim::format_finding(finding, session.program());
    }
  }
  if (stop.fault) {
    text += sim::format_fault(*stop.fault, session.program());
  }
  if (!stop.note.empty()) {
    text += fmt::format("note: {}\n", stop.note);
  }
  if (stop.reason == StopReason::kFinished) {
    return text;
  }
  if (stop.has_moved_focus) {
    text += fmt::format("[focus moves to {}]\n", to_string(stop.focus));
  }
  const std::string where = fmt::format("cycle {}, {}", stop.cycle, to_string(stop.focus));
  if (stop.pc != kNoPc) {
    text += fmt::format("{}\n=> {}\n", where, describe_insn(session.program(), stop.pc));
  } else if (!stop.has_block) {
    text += fmt::format("{}: the block has {}\n",
                        where,
                        session.phase(stop.focus.block) == BlockPhase::kWaiting ? "not started"
                                                                                : "ended");
  } else {
    text += fmt::format("{}: the warp has ended\n", where);
  }
  return text;
}

nlohmann::ordered_json stop_json(const Session& session, const StopEvent& stop) {
  nlohmann::ordered_json out;
  out["reason"] = name(stop.reason);
  out["stop_points"] = stop.ids;
  out["block"] = stop.focus.block;
  out["warp"] = stop.focus.warp;
  out["lane"] = stop.focus.lane;
  out["cycle"] = stop.cycle;
  out["position"] = stop.position;
  if (stop.pc != kNoPc) {
    out["pc"] = stop.pc;
    out["insn"] = session.program().text(stop.pc);
    const isa::SourceLoc loc = session.program().loc(stop.pc);
    if (loc.line != 0) {
      out["file"] = session.program().object().files[loc.file];
      out["line"] = loc.line;
    }
  }
  for (const WatchHit& hit : stop.watches) {
    nlohmann::ordered_json watch;
    watch["id"] = hit.id;
    watch["expression"] = hit.text;
    watch["old"] = watch_value(hit, hit.old_bytes);
    watch["new"] = watch_value(hit, hit.new_bytes);
    watch["pc"] = hit.pc;
    watch["block"] = hit.block;
    watch["warp"] = hit.warp;
    watch["lanes"] = sim::lane_ranges(hit.lane_mask, ",");
    out["watches"].push_back(watch);
  }
  for (const sim::Finding& finding : stop.findings) {
    out["findings"].push_back(
        nlohmann::ordered_json::parse(sim::finding_json(finding, session.program())));
  }
  if (stop.fault) {
    out["fault"] = {{"kind", sim::name(stop.fault->kind)},
                    {"message", stop.fault->message},
                    {"pc", stop.fault->pc},
                    {"lane", stop.fault->lane},
                    {"location", stop.fault->allocation}};
  }
  if (!stop.note.empty()) {
    out["note"] = stop.note;
  }
  return out;
}

// ---------------------------------------------------------------- values

std::string format_value(const Value& value, char format) {
  const unsigned width = std::max(8u, isa::bits(value.type));
  const uint64_t mask = width >= 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1;
  const uint64_t bits =
      value.is_real ? static_cast<uint64_t>(value.as_integer()) : value.bits & mask;
  switch (format) {
  case 'x':
    return fmt::format("{:#x}", bits);
  case 'z':
    return fmt::format("{:#0{}x}", bits, width / 4 + 2);
  case 'o':
    return fmt::format("{:#o}", bits);
  case 't':
    return fmt::format("{:#b}", bits);
  case 'u':
    return fmt::format("{}", bits);
  case 'd': {
    if (value.is_real) {
      return fmt::format("{}", value.as_integer());
    }
    const unsigned shift = 64 - std::min(64u, width);
    return fmt::format("{}", static_cast<int64_t>(bits << shift) >> shift);
  }
  case 'c': {
    const auto c = static_cast<unsigned char>(bits);
    return c >= 32 && c < 127 ? fmt::format("{} '{}'", bits, static_cast<char>(c))
                              : fmt::format("{} '\\{:03o}'", bits, c);
  }
  case 'a':
    return fmt::format("{:#x}", bits);
  case 'f': {
    if (value.is_float()) {
      return to_string(value);
    }
    // The bits as a float of the same size, as gdb does.
    Value real = value;
    real.type = width == 16 ? isa::Type::kF16 : isa::Type::kF32;
    return width == 32 || width == 16 ? to_string(real) : fmt::format("{}", value.as_real());
  }
  default:
    return to_string(value);
  }
}

std::string format_evaluated(const Evaluated& value, char format, uint64_t limit) {
  if (!value.is_array) {
    if (value.is_pointer && format == '\0') {
      return fmt::format(
          "({}*) {}:{:#x}",
          isa::name(value.pointee == isa::Type::kNone ? isa::Type::kF32 : value.pointee),
          isa::name(value.space),
          value.value.bits);
    }
    return format_value(value.value, format);
  }
  std::string text = "{";
  uint64_t shown = 0;
  for (size_t i = 0; i < value.array.size();) {
    if (shown == limit) {
      text += ", ...";
      break;
    }
    size_t same = i + 1;
    while (same < value.array.size() && value.array[same].bits == value.array[i].bits &&
           value.array[same].real == value.array[i].real) {
      ++same;
    }
    text += i == 0 ? "" : ", ";
    text += format_value(value.array[i], format);
    constexpr size_t kRepeats = 8; // as gdb: a long run of one value is written once
    if (same - i > kRepeats) {
      text += fmt::format(" <{} times>", same - i);
      i = same;
    } else {
      ++i;
    }
    ++shown;
  }
  if (value.is_truncated) {
    text += ", ... (cut)";
  }
  return text + "}";
}

nlohmann::ordered_json value_json(const Evaluated& value, uint64_t limit) {
  const auto one = [](const Value& v) -> nlohmann::ordered_json {
    if (v.is_float()) {
      const double real = v.as_real();
      return std::isfinite(real) ? nlohmann::ordered_json(real)
                                 : nlohmann::ordered_json(to_string(v));
    }
    if (v.type == isa::Type::kPred) {
      return v.is_true();
    }
    return v.type == isa::Type::kU64 || v.type == isa::Type::kB64
               ? nlohmann::ordered_json(v.bits)
               : nlohmann::ordered_json(v.as_integer());
  };
  nlohmann::ordered_json out;
  out["type"] = isa::name(value.value.type);
  if (value.value.is_real) {
    out["type"] = "double";
  }
  if (!value.is_array) {
    out["value"] = one(value.value);
    return out;
  }
  out["value"] = nlohmann::ordered_json::array();
  for (size_t i = 0; i < value.array.size() && i < limit; ++i) {
    out["value"].push_back(one(value.array[i]));
  }
  out["count"] = value.array.size();
  return out;
}

std::string value_table(const std::vector<std::string>& values, uint64_t first, unsigned columns) {
  size_t width = 0;
  for (const std::string& value : values) {
    width = std::max(width, value.size());
  }
  const size_t index_width = fmt::format("{}", first + values.size()).size();
  std::string text;
  for (size_t i = 0; i < values.size(); ++i) {
    if (i % columns == 0) {
      text += fmt::format("{}{:>{}}: ", i == 0 ? "" : "\n", first + i, index_width + 2);
    }
    text += fmt::format("{}{:>{}}", i % columns == 0 ? "" : " ", values[i], width);
  }
  return values.empty() ? std::string() : text + "\n";
}

} // namespace pto::dbg
