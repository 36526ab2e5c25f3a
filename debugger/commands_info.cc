// SPDX-License-Identifier: Apache-2.0
// Tables about blocks, warps, lanes and registers.
#include "debugger/command.h"
#include "simulator/block.h"
#include "simulator/checks/finding.h"
#include "simulator/lane_ranges.h"
#include "simulator/report/text_table.h"

namespace pto::dbg {

namespace {

std::string warp_state(const Session& session, const sim::BlockRun& run, uint32_t w) {
  const sim::WarpState& warp = run.warp(w);
  if (warp.status == sim::WarpStatus::kDone) {
    return "ended";
  }
  if (warp.status == sim::WarpStatus::kAtBlockBarrier) {
    return fmt::format("waits at barrier {}", warp.barrier_id);
  }
  if (warp.status == sim::WarpStatus::kWaitingEvent) {
    return fmt::format("waits for event e{}", warp.wait_event);
  }
  if (warp.status == sim::WarpStatus::kWaitingAll) {
    return "waits for all copies";
  }
  const auto status = session.warp_status(run.index(), w);
  if (!status || status->ready_cycle <= session.cycle()) {
    return "ready";
  }
  if (status->has_issued && status->reason == sim::StallReason::kIssueSlot) {
    return fmt::format("has issued, ready at cycle {}", status->ready_cycle);
  }
  return status->ready_cycle == UINT64_MAX
             ? fmt::format("stalled: {}", sim::info(status->reason).name)
             : fmt::format(
                   "ready at cycle {}: {}", status->ready_cycle, sim::info(status->reason).name);
}

bool info_blocks(Debugger& debugger, std::string_view /*arguments*/) {
  Session* session = debugger.need_session();
  if (session == nullptr) {
    return false;
  }
  const sim::Launch& launch = session->launch();
  debugger.print("{}: {} done, {} resident, {} waiting\n",
                 sim::counted(launch.block_count(), "block"),
                 launch.blocks_done(),
                 session->resident_blocks().size(),
                 launch.block_count() - launch.blocks_started());
  const std::vector<uint64_t> blocks = session->resident_blocks();
  size_t shown = 0;
  for (const uint64_t index : blocks) {
    const sim::BlockRun& run = *session->block(index);
    uint32_t live = 0;
    for (uint32_t w = 0; w < run.warp_count(); ++w) {
      live += run.warp(w).status != sim::WarpStatus::kDone ? 1 : 0;
    }
    if (++shown > kRowsShown) {
      continue;
    }
    const uint32_t pc = session->pc(index, 0);
    debugger.print("{} block {:<6} ({},{},{})  core {:<3} {} of {} warps live  {}\n",
                   index == session->focus().block ? "*" : " ",
                   index,
                   run.state().ctaid.x,
                   run.state().ctaid.y,
                   run.state().ctaid.z,
                   run.core(),
                   live,
                   run.warp_count(),
                   pc == kNoPc ? "" : "warp 0 at " + describe_insn(session->program(), pc));
  }
  if (shown > kRowsShown) {
    debugger.print("  ... {} more\n", shown - kRowsShown);
  }
  debugger.result().data["resident"] = blocks;
  return true;
}

bool info_warps(Debugger& debugger, std::string_view /*arguments*/) {
  const sim::BlockRun* run = debugger.need_block();
  if (run == nullptr) {
    return false;
  }
  const Session& session = *debugger.session();
  debugger.print("  warp   pc  lanes         state\n");
  for (uint32_t w = 0; w < run->warp_count(); ++w) {
    const bool is_done = run->warp(w).status == sim::WarpStatus::kDone;
    const std::string lanes = sim::lane_ranges(run->active_mask(w), ",");
    debugger.print("{} {:>4} {:>4}  {:<12}  {}{}\n",
                   w == session.focus().warp ? "*" : " ",
                   w,
                   is_done ? "-" : std::to_string(run->warp(w).pc),
                   is_done ? "-" : lanes,
                   warp_state(session, *run, w),
                   is_done ? "" : "  " + describe_insn(session.program(), run->warp(w).pc));
    debugger.result().data["warps"].push_back({{"warp", w},
                                               {"pc", is_done ? -1 : int64_t{run->warp(w).pc}},
                                               {"active_mask", run->active_mask(w)},
                                               {"state", warp_state(session, *run, w)}});
  }
  return true;
}

bool info_lanes(Debugger& debugger, std::string_view /*arguments*/) {
  const sim::BlockRun* run = debugger.need_block();
  if (run == nullptr) {
    return false;
  }
  const Session& session = *debugger.session();
  const uint32_t w = session.focus().warp;
  const sim::WarpState& warp = run->warp(w);
  const uint32_t exists = run->image().warp_masks[w];
  debugger.print("  lane  tid         state\n");
  for (uint32_t lane = 0; lane < isa::kWarpLanes; ++lane) {
    if ((exists >> lane & 1) == 0) {
      continue;
    }
    const uint32_t in_block = w * isa::kWarpLanes + lane;
    std::string state = "ended";
    if ((run->active_mask(w) >> lane & 1) != 0) {
      state = fmt::format("active at {}", describe_location(session.program(), warp.pc));
    } else if ((run->live_mask(w) >> lane & 1) != 0) {
      state = "waits";
      for (size_t i = warp.stack.size(); i-- > 0;) {
        if ((warp.stack[i].mask >> lane & 1) != 0) {
          state =
              fmt::format("waits at {}", describe_location(session.program(), warp.stack[i].pc));
          break;
        }
      }
    }
    debugger.print("{} {:>4}  {:<10}  {}\n",
                   lane == session.focus().lane ? "*" : " ",
                   lane,
                   fmt::format("({},{},{})",
                               run->image().tid[0][in_block],
                               run->image().tid[1][in_block],
                               run->image().tid[2][in_block]),
                   state);
  }
  return true;
}

bool info_cores(Debugger& debugger, std::string_view /*arguments*/) {
  Session* session = debugger.need_session();
  if (session == nullptr) {
    return false;
  }
  const uint32_t cores = session->machine().profile.cores;
  uint32_t idle = 0;
  for (uint32_t core = 0; core < cores; ++core) {
    bool has_block = false;
    for (const uint64_t index : session->resident_blocks()) {
      const sim::BlockRun& run = *session->block(index);
      if (run.core() == core) {
        has_block = true;
        const uint32_t pc = session->pc(index, 0);
        debugger.print("{} core {:<3} block {:<6} {}\n",
                       index == session->focus().block ? "*" : " ",
                       core,
                       index,
                       pc == kNoPc ? "" : "warp 0 at " + describe_insn(session->program(), pc));
      }
    }
    idle += has_block ? 0 : 1;
  }
  debugger.print("{} of {} cores have no block\n", idle, cores);
  return true;
}

// ---------------------------------------------------------------- registers

bool info_registers(Debugger& debugger, std::string_view arguments) {
  const sim::BlockRun* run = debugger.need_block();
  if (run == nullptr) {
    return false;
  }
  const Session& session = *debugger.session();
  const sim::Program& program = session.program();
  const uint32_t lane = session.focus().block_lane();
  const uint32_t pc = run->warp(session.focus().warp).pc;
  std::vector<RegisterRef> wanted;
  std::string_view rest = trim(arguments);
  const bool is_all = rest.empty() || rest == "-a";
  while (!is_all && !rest.empty()) {
    std::string_view word = next_word(rest);
    if (word.starts_with('$')) {
      word.remove_prefix(1);
    }
    if (word == "pc") {
      debugger.print("{:<5} {}  {}\n", "pc", pc, describe_insn(program, pc));
      continue;
    }
    const auto reg = find_register(word);
    if (!reg) {
      return debugger.fail(
          "there is no register '{}'; they are r0 to r126, d0 to d62, p0 to p7, t0 to t15", word);
    }
    wanted.push_back(*reg);
  }
  if (is_all) {
    wanted = shown_registers(program);
    debugger.print("{:<5} {}  {}\n", "pc", pc, describe_insn(program, pc));
  }
  for (const RegisterRef reg : wanted) {
    std::string error;
    const auto bits = session.read_register(reg, run->index(), lane, 1, error);
    if (!bits) {
      return debugger.fail_text(error);
    }
    Value value;
    value.type = register_type(program, reg, pc);
    value.bits = (*bits)[0];
    debugger.print("{:<5} {:<18}  {}  ({})\n",
                   to_string(reg),
                   reg.file == RegisterFile::kReg64   ? fmt::format("{:#018x}", value.bits)
                   : reg.file == RegisterFile::kReg32 ? fmt::format("{:#010x}", value.bits)
                                                      : fmt::format("{}", value.bits),
                   to_string(value),
                   isa::name(value.type));
    debugger.result().data["registers"][to_string(reg)] = value.bits;
  }
  return true;
}

bool info_predicates(Debugger& debugger, std::string_view /*arguments*/) {
  const sim::BlockRun* run = debugger.need_block();
  if (run == nullptr) {
    return false;
  }
  const uint32_t warp = debugger.session()->focus().warp;
  for (uint32_t p = 0; p < isa::kPredCount; ++p) {
    uint32_t mask = 0;
    for (uint32_t lane = 0; lane < isa::kWarpLanes; ++lane) {
      mask |= run->pred(p, warp * isa::kWarpLanes + lane) ? 1u << lane : 0;
    }
    debugger.print("p{}  {:#010x}  {}\n",
                   p,
                   mask,
                   mask == 0 ? "false in every lane" : "true in " + sim::format_lanes(mask));
  }
  return true;
}

bool info_locals(Debugger& debugger, std::string_view /*arguments*/) {
  Session* session = debugger.need_session();
  if (session == nullptr) {
    return false;
  }
  const sim::Program& program = session->program();
  for (size_t i = 0; i < program.kernel().params.size(); ++i) {
    const isa::Param& param = program.kernel().params[i];
    const uint64_t bits = session->launch().image().params[i];
    Value value{param.type, false, bits, 0};
    debugger.print("{} = {}\n",
                   sim::to_string(param),
                   param.is_pointer
                       ? fmt::format("{:#x}  ({})", bits, session->machine().hbm.describe(bits))
                       : to_string(value));
  }
  for (const isa::Symbol& symbol : program.object().symbols) {
    if (symbol.owner != program.kernel_index() && symbol.owner != isa::kFileScope) {
      continue;
    }
    static constexpr std::string_view kKinds[] = {".tile", ".shared", ".const"};
    debugger.print("{} {} {}[{}] at {}:{}, {} bytes\n",
                   kKinds[static_cast<unsigned>(symbol.kind)],
                   symbol.name,
                   isa::name(symbol.type),
                   symbol.rows > 1 ? fmt::format("{}][{}", symbol.rows, symbol.cols)
                                   : std::to_string(symbol.cols),
                   symbol.kind == isa::SymbolKind::kConst ? "const" : "l1",
                   symbol.offset,
                   symbol.size_bytes);
  }
  return true;
}

constexpr Command kRows[] = {
    info_row("info blocks",
             "",
             "info blocks",
             "Resident blocks with core and pc, and how many wait.",
             "info blocks",
             info_blocks),
    info_row("info warps",
             "info threads",
             "info warps",
             "Warps of the focused block: pc, active lanes, what they wait for.",
             "info warps",
             info_warps),
    info_row("info lanes",
             "",
             "info lanes",
             "Lanes of the focused warp: coordinate and state.",
             "info lanes",
             info_lanes),
    info_row("info cores",
             "",
             "info cores",
             "Cores with the blocks that are resident on them.",
             "info cores",
             info_cores),
    info_row("info registers",
             "info all-registers, info r",
             "info registers [NAME...]",
             "Registers of the focused lane.",
             "info registers r0 p0",
             info_registers),
    info_row("info predicates",
             "",
             "info predicates",
             "Predicates of the focused warp as masks.",
             "info predicates",
             info_predicates),
    info_row("info locals",
             "info args, info symbols",
             "info locals",
             "Parameters of the kernel, and its tiles, shared and constant data.",
             "info locals",
             info_locals),
};

} // namespace

std::span<const Command> info_commands() {
  return kRows;
}

} // namespace pto::dbg
