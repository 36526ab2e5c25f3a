// SPDX-License-Identifier: Apache-2.0
// What is launched on which machine, its code, and what it has said so far.
#include "debugger/command.h"
#include "simulator/checks/finding.h"

#include <algorithm>

namespace pto::dbg {

namespace {

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

constexpr Command kRows[] = {
    info_row("info findings",
             "info checks",
             "info findings",
             "What the checks have found so far.",
             "info findings",
             info_findings),
    info_row("info prints",
             "info output",
             "info prints",
             "Lines that the kernel has printed.",
             "info prints",
             info_prints),
    info_row("info launch",
             "info program, info kernels",
             "info launch",
             "What is launched, and how far it is.",
             "info launch",
             info_launch),
    info_row("info machine",
             "",
             "info machine [KEY]",
             "The machine profile; with a key, its figures.",
             "info machine hbm",
             info_machine),
    info_row("info line",
             "",
             "info line [LOCATION]",
             "The insns at a place.",
             "info line 7",
             info_line,
             Completes::kLocation),
    info_row("info functions",
             "info labels",
             "info functions",
             "Kernels, functions and labels.",
             "info functions",
             info_functions),
};

} // namespace

std::span<const Command> launch_commands() {
  return kRows;
}

} // namespace pto::dbg
