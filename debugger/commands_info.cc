// SPDX-License-Identifier: Apache-2.0
// Tables about blocks, warps, lanes, registers and memory.
#include "debugger/command.h"
#include "isa/insn_desc.h"
#include "simulator/block.h"
#include "simulator/checks/finding.h"
#include "simulator/lane_ranges.h"

#include <algorithm>
#include <bit>

namespace pto::dbg {

namespace {

constexpr size_t kRowsShown = 64;

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
  debugger.print("{} blocks: {} done, {} resident, {} waiting\n",
                 launch.block_count(),
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
                   mask == 0 ? "false in every lane"
                             : "true in lanes " + sim::lane_ranges(mask, ","));
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

// ---------------------------------------------------------------- memory

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

bool info_findings(Debugger& debugger, std::string_view /*arguments*/) {
  Session* session = debugger.need_session();
  if (session == nullptr) {
    return false;
  }
  if (session->findings().empty()) {
    debugger.print("The checks have found nothing{}.\n",
                   session->options().checks.empty() ? " (set checks all turns them on)" : "");
  }
  for (const sim::Finding& finding : session->findings()) {
    debugger.print("{}", sim::format_finding(finding, session->program()));
    debugger.result().data["findings"].push_back(
        nlohmann::ordered_json::parse(sim::finding_json(finding, session->program())));
  }
  return true;
}

bool info_prints(Debugger& debugger, std::string_view /*arguments*/) {
  Session* session = debugger.need_session();
  if (session == nullptr) {
    return false;
  }
  for (const sim::PrintLine& line : session->prints()) {
    debugger.print("{}\n", line.text);
  }
  return true;
}

// ---------------------------------------------------------------- launch, machine, code

bool info_launch(Debugger& debugger, std::string_view /*arguments*/) {
  const sim::Program* program = debugger.need_program();
  if (program == nullptr) {
    return false;
  }
  const TargetOptions& target = debugger.target();
  debugger.print("kernel {} of {}, grid {}, block {}\n",
                 program->kernel().name,
                 target.file,
                 sim::to_string(target.grid),
                 sim::to_string(target.block));
  for (const std::string& argument : target.args) {
    debugger.print("  {}\n", argument);
  }
  if (const Session* session = debugger.session()) {
    debugger.print("{} on {}, cycle {}, {} warp insns, {} of {} blocks done\n",
                   session->is_finished() ? "finished"
                   : session->is_over()   ? "stopped for good"
                                          : "under way",
                   session->machine().profile.name,
                   session->cycle(),
                   session->position(),
                   session->launch().blocks_done(),
                   session->launch().block_count());
  } else {
    debugger.print("not launched\n");
  }
  return true;
}

bool info_machine(Debugger& debugger, std::string_view arguments) {
  Session* session = debugger.need_session();
  if (session == nullptr) {
    return false;
  }
  const isa::MachineProfile& profile = session->machine().profile;
  const std::string_view prefix = trim(arguments);
  if (prefix.empty()) {
    debugger.print("{}: {} cores at {} MHz, {} warp schedulers a core, l1 {} KB, L2 {} MB\n"
                   "'info machine latency' and the like show its figures\n",
                   profile.name,
                   profile.cores,
                   profile.clock_mhz,
                   profile.warp_schedulers,
                   profile.l1.size_bytes >> 10,
                   profile.l2.size_bytes >> 20);
    return true;
  }
  uint64_t shown = 0;
  for (const isa::ProfileFigure& figure : isa::list_figures(profile)) {
    if (std::string_view(figure.key_path).starts_with(prefix)) {
      ++shown;
      debugger.print("{} = {} {}\n", figure.key_path, figure.value, figure.unit);
    }
  }
  return shown != 0 || debugger.fail("no figure of the profile begins with '{}'", prefix);
}

bool info_line(Debugger& debugger, std::string_view arguments) {
  const sim::Program* program = debugger.need_program();
  if (program == nullptr) {
    return false;
  }
  std::string error;
  const auto pcs = find_location(*program, trim(arguments), debugger.here(), error);
  if (!pcs) {
    return debugger.fail_text(error);
  }
  for (const uint32_t pc : *pcs) {
    debugger.print("pc {}: {}\n", pc, describe_insn(*program, pc));
  }
  return true;
}

bool info_functions(Debugger& debugger, std::string_view /*arguments*/) {
  const sim::Program* program = debugger.need_program();
  if (program == nullptr) {
    return false;
  }
  for (const isa::Function& function : program->object().functions) {
    std::vector<std::string> params;
    for (const isa::Param& param : function.params) {
      params.push_back(sim::to_string(param));
    }
    debugger.print("{} {}{}  pc {} to {}\n",
                   function.is_kernel ? ".kernel" : ".func",
                   function.name,
                   function.is_kernel ? fmt::format("({})", fmt::join(params, ", ")) : "",
                   function.first_pc,
                   function.first_pc + std::max(1u, function.insn_count) - 1);
    for (const isa::Label& label : function.labels) {
      debugger.print("  {}  pc {}\n", label.name, label.pc);
    }
  }
  return true;
}

constexpr Command row(std::string_view name,
                      std::string_view aliases,
                      std::string_view usage,
                      std::string_view summary,
                      std::string_view example,
                      bool (*run)(Debugger&, std::string_view),
                      Completes completes = Completes::kNothing) {
  return {.name = name,
          .aliases = aliases,
          .group = CommandGroup::kInfo,
          .usage = usage,
          .summary = summary,
          .example = example,
          .completes = completes,
          .run = run};
}

constexpr Command kRows[] = {
    row("info blocks",
        "",
        "info blocks",
        "Resident blocks with core and pc, and how many wait.",
        "info blocks",
        info_blocks),
    row("info warps",
        "info threads",
        "info warps",
        "Warps of the focused block: pc, active lanes, what they wait for.",
        "info warps",
        info_warps),
    row("info lanes",
        "",
        "info lanes",
        "Lanes of the focused warp: coordinate and state.",
        "info lanes",
        info_lanes),
    row("info cores",
        "",
        "info cores",
        "Cores with the blocks that are resident on them.",
        "info cores",
        info_cores),
    row("info registers",
        "info all-registers",
        "info registers [NAME...]",
        "Registers of the focused lane.",
        "info registers r0 p0",
        info_registers),
    row("info predicates",
        "",
        "info predicates",
        "Predicates of the focused warp as masks.",
        "info predicates",
        info_predicates),
    row("info locals",
        "info args, info symbols",
        "info locals",
        "Parameters of the kernel, and its tiles, shared and constant data.",
        "info locals",
        info_locals),
    row("info l1",
        "info scratchpad",
        "info l1",
        "Who holds which bytes of the block's scratchpad.",
        "info l1",
        info_l1),
    row("info tiles",
        "",
        "info tiles",
        "Tile registers that hold a tile.",
        "info tiles",
        info_tiles),
    row("info cache",
        "",
        "info cache [CORE]",
        "Lines of a core's data cache: place in l1 and address in hbm.",
        "info cache",
        info_cache),
    row("info events",
        "info copies",
        "info events",
        "Copies of the block that are under way.",
        "info events",
        info_events),
    row("info barriers",
        "",
        "info barriers",
        "Who waits at which barrier, and who is missing.",
        "info barriers",
        info_barriers),
    row("info allocations",
        "info memory",
        "info allocations",
        "Arrays in hbm.",
        "info allocations",
        info_allocations),
    row("info findings",
        "info checks",
        "info findings",
        "What the checks have found so far.",
        "info findings",
        info_findings),
    row("info prints",
        "info output",
        "info prints",
        "Lines that the kernel has printed.",
        "info prints",
        info_prints),
    row("info launch",
        "info program, info kernels",
        "info launch",
        "What is launched, and how far it is.",
        "info launch",
        info_launch),
    row("info machine",
        "",
        "info machine [KEY]",
        "The machine profile; with a key, its figures.",
        "info machine hbm",
        info_machine),
    row("info line",
        "",
        "info line [LOCATION]",
        "The insns at a place.",
        "info line 7",
        info_line,
        Completes::kLocation),
    row("info functions",
        "info labels",
        "info functions",
        "Kernels, functions and labels.",
        "info functions",
        info_functions),
};

} // namespace

std::span<const Command> info_commands() {
  return kRows;
}

} // namespace pto::dbg
