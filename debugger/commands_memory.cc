// SPDX-License-Identifier: Apache-2.0
// Tables about memory, and about copies and barriers that order it.
#include "debugger/command.h"
#include "simulator/block.h"

#include <algorithm>

namespace pto::dbg {

namespace {

bool info_l1(Debugger& debugger, std::string_view /*arguments*/) {
  const sim::BlockRun* run = debugger.need_block();
  if (run == nullptr) {
    return false;
  }
  const Session& session = *debugger.session();
  const sim::Scratchpad& pad = run->scratchpad();
  debugger.print("core {}: l1 has {} bytes, the block may use {} as scratchpad and holds {}\n",
                 run->core(),
                 session.machine().profile.l1.size_bytes,
                 pad.capacity_bytes(),
                 pad.used_bytes());
  const std::string map = pad.map();
  for (size_t begin = 0; begin < map.size();) {
    const size_t end = std::min(map.find('\n', begin), map.size());
    debugger.print("  {}\n", std::string_view(map).substr(begin, end - begin));
    begin = end + 1;
  }
  const size_t lines = session.cache_lines(run->core()).size();
  if (session.mode() == RunMode::kTimed) {
    debugger.print("  {} lines of the data cache hold hbm (info cache)\n", lines);
  }
  return true;
}

bool info_tiles(Debugger& debugger, std::string_view /*arguments*/) {
  const sim::BlockRun* run = debugger.need_block();
  if (run == nullptr) {
    return false;
  }
  bool has_any = false;
  for (size_t t = 0; t < run->tiles().size(); ++t) {
    const sim::TileState& tile = run->tiles()[t];
    if (tile.is_live) {
      has_any = true;
      debugger.print("t{:<3} l1:{}  {} bytes\n", t, tile.offset, tile.size_bytes);
    }
  }
  if (!has_any) {
    debugger.print("No tile register holds a tile.\n");
  }
  return true;
}

bool info_cache(Debugger& debugger, std::string_view arguments) {
  Session* session = debugger.need_session();
  if (session == nullptr) {
    return false;
  }
  const auto asked = session->core_of(session->focus().block);
  const auto core = read_amount(debugger, arguments, asked.value_or(0), "core");
  if (!core) {
    return false;
  }
  if (*core >= session->machine().profile.cores) {
    return debugger.fail(
        "there is no core {}: the machine has {}", *core, session->machine().profile.cores);
  }
  const std::vector<CacheLine> lines = session->cache_lines(static_cast<uint32_t>(*core));
  debugger.print("core {}: {} lines of {} bytes hold hbm\n",
                 *core,
                 lines.size(),
                 session->machine().profile.l1.line_bytes);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i < kRowsShown) {
      debugger.print(
          "  l1:{:<7} {:#x}  {}{}\n",
          lines[i].l1_offset,
          lines[i].hbm_address,
          session->machine().hbm.label(lines[i].hbm_address),
          lines[i].is_arriving ? fmt::format("  (arrives at cycle {})", lines[i].ready_cycle) : "");
    }
    debugger.result().data["lines"].push_back(
        {{"l1_offset", lines[i].l1_offset}, {"hbm_address", lines[i].hbm_address}});
  }
  if (lines.size() > kRowsShown) {
    debugger.print("  ... {} more\n", lines.size() - kRowsShown);
  }
  return true;
}

bool info_events(Debugger& debugger, std::string_view /*arguments*/) {
  const sim::BlockRun* run = debugger.need_block();
  if (run == nullptr) {
    return false;
  }
  const std::vector<sim::CopyRecord>& copies = run->pending_copies();
  if (copies.empty()) {
    debugger.print("No copy is under way.\n");
  }
  for (const sim::CopyRecord& copy : copies) {
    const bool is_in = copy.direction == isa::CopyDirection::kHbmToL1;
    const std::string hbm = debugger.session()->machine().hbm.label(copy.hbm_address);
    const std::string l1 = fmt::format("l1:{}", copy.l1_offset);
    debugger.print("{}  {} bytes, {} -> {}, started at {}\n",
                   copy.event >= 0 ? fmt::format("e{}", copy.event) : "--",
                   copy.bytes(),
                   is_in ? hbm : l1,
                   is_in ? l1 : hbm,
                   describe_insn(debugger.session()->program(), copy.pc));
  }
  return true;
}

bool info_barriers(Debugger& debugger, std::string_view /*arguments*/) {
  const sim::BlockRun* run = debugger.need_block();
  if (run == nullptr) {
    return false;
  }
  bool has_any = false;
  for (uint32_t id = 0; id < isa::kBarrierCount; ++id) {
    std::vector<uint32_t> here;
    std::vector<uint32_t> missing;
    for (uint32_t w = 0; w < run->warp_count(); ++w) {
      const sim::WarpState& warp = run->warp(w);
      if (warp.status == sim::WarpStatus::kAtBlockBarrier && warp.barrier_id == id) {
        here.push_back(w);
      } else if (warp.status != sim::WarpStatus::kDone) {
        missing.push_back(w);
      }
    }
    if (!here.empty()) {
      has_any = true;
      debugger.print("barrier {}: warps {} wait, warps {} are missing\n",
                     id,
                     fmt::join(here, ","),
                     fmt::join(missing, ","));
    }
  }
  if (!has_any) {
    debugger.print("No warp waits at a barrier; {} barriers have been passed.\n",
                   run->state().barriers_passed);
  }
  return true;
}

bool info_allocations(Debugger& debugger, std::string_view /*arguments*/) {
  Session* session = debugger.need_session();
  if (session == nullptr) {
    return false;
  }
  for (const sim::Allocation& allocation : session->machine().hbm.live()) {
    debugger.print("{:#x}  {:>10} bytes  {}{}\n",
                   allocation.base,
                   allocation.size_bytes,
                   allocation.name.empty() ? fmt::format("#{}", allocation.id) : allocation.name,
                   allocation.made_by.empty() ? "" : "  by " + allocation.made_by);
  }
  return true;
}

constexpr Command kRows[] = {
    info_row("info l1",
             "info scratchpad",
             "info l1",
             "Who holds which bytes of the block's scratchpad.",
             "info l1",
             info_l1),
    info_row("info tiles",
             "",
             "info tiles",
             "Tile registers that hold a tile.",
             "info tiles",
             info_tiles),
    info_row("info cache",
             "",
             "info cache [CORE]",
             "Lines of a core's data cache: place in l1 and address in hbm.",
             "info cache",
             info_cache),
    info_row("info events",
             "info copies",
             "info events",
             "Copies of the block that are under way.",
             "info events",
             info_events),
    info_row("info barriers",
             "",
             "info barriers",
             "Who waits at which barrier, and who is missing.",
             "info barriers",
             info_barriers),
    info_row("info allocations",
             "info memory",
             "info allocations",
             "Arrays in hbm.",
             "info allocations",
             info_allocations),
};

} // namespace

std::span<const Command> memory_commands() {
  return kRows;
}

} // namespace pto::dbg
