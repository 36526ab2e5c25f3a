// SPDX-License-Identifier: Apache-2.0
// Insns and calls as text.
#include "debugger/command.h"
#include "simulator/block.h"
#include "simulator/lane_ranges.h"

namespace pto::dbg {

std::string list_insns(const sim::Program& program,
                       uint32_t begin,
                       uint32_t end,
                       std::optional<uint32_t> here) {
  std::string text;
  for (uint32_t pc = begin; pc < end && pc < program.insns().size(); ++pc) {
    const isa::Function* function = program.object().function_at(pc);
    if (function != nullptr) {
      if (function->first_pc == pc) {
        text += fmt::format("{} {}:\n", function->is_kernel ? ".kernel" : ".func", function->name);
      }
      for (const isa::Label& label : function->labels) {
        if (label.pc == pc) {
          text += fmt::format("{}:\n", label.name);
        }
      }
    }
    text += fmt::format("{} {:>4}  {}\n", pc == here ? "=>" : "  ", pc, program.text(pc));
  }
  return text;
}

std::string
describe_frames(const sim::Program& program, const sim::BlockRun& block, uint32_t warp_index) {
  const sim::WarpState& warp = block.warp(warp_index);
  std::string text = fmt::format("#0  {}  (lanes {})\n",
                                 describe_location(program, warp.pc),
                                 sim::lane_ranges(block.active_mask(warp_index), ","));
  uint32_t frame = 1;
  bool is_base = warp.is_call_base;
  for (size_t i = warp.stack.size(); i-- > 0;) {
    const sim::StackEntry& part = warp.stack[i];
    if (is_base) {
      text += fmt::format("#{}  {}  (lanes {})\n",
                          frame++,
                          describe_location(program, part.pc),
                          sim::lane_ranges(part.mask, ","));
    } else {
      text += fmt::format("    lanes {} wait at {}\n",
                          sim::lane_ranges(part.mask, ","),
                          describe_location(program, part.pc));
    }
    is_base = part.is_call_base;
  }
  return text;
}

} // namespace pto::dbg
