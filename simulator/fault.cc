// SPDX-License-Identifier: Apache-2.0
// Faults as text.
#include "simulator/fault.h"

#include "simulator/program.h"

#include <fmt/format.h>

namespace pto::sim {

std::string_view name(FaultKind kind) {
  static constexpr std::string_view kNames[] = {"out of bounds",
                                                "use after free",
                                                "misaligned access",
                                                "write to const",
                                                "out of scratchpad",
                                                "tile",
                                                "call depth",
                                                "trap",
                                                "operand",
                                                "deadlock"};
  return kNames[static_cast<unsigned>(kind)];
}

std::string format_fault(const Fault& fault, const Program& program) {
  std::string text = fmt::format("{}: {} in kernel {}: {}\n",
                                 program.place(fault.pc),
                                 name(fault.kind),
                                 program.kernel().name,
                                 fault.message);
  text += fmt::format("  insn:  {}\n", program.text(fault.pc));
  text += fmt::format("  where: block {}, warp {}", fault.block, fault.warp);
  if (fault.lane != kNoLane) {
    text += fmt::format(", lane {}", fault.lane);
  }
  text += fmt::format(" (core {})\n", fault.core);
  if (!fault.allocation.empty()) {
    text += fmt::format("  at:    {}\n", fault.allocation);
  }
  size_t begin = 0;
  while (begin < fault.details.size()) {
    size_t end = fault.details.find('\n', begin);
    end = end == std::string::npos ? fault.details.size() : end;
    text += fmt::format("  {}\n", std::string_view(fault.details).substr(begin, end - begin));
    begin = end + 1;
  }
  return text;
}

} // namespace pto::sim
