// SPDX-License-Identifier: Apache-2.0
#include "simulator/written_allocations.h"

#include "simulator/launch.h"
#include "simulator/pointer_origins.h"

#include <optional>
#include <span>

namespace pto::sim {

namespace {

/// The parameters whose allocations an insn that writes to hbm may mean; nullopt: any of them.
std::optional<std::vector<uint32_t>>
written_params(const isa::Insn& insn, uint32_t pc, PointerOrigins& pointers) {
  std::vector<uint32_t> params;
  for (unsigned i = 0; i < insn.operand_count; ++i) {
    if (insn.operand(i).kind != isa::OperandKind::kMem) {
      continue;
    }
    const isa::MemRef mem = insn.operand(i).mem();
    if (mem.space != isa::Space::kHbm) {
      continue;
    }
    if (mem.base == isa::BaseKind::kParam) {
      params.push_back(mem.base_index);
      continue;
    }
    const auto origins = pointers.of(pc, mem.base_index);
    if (!origins) {
      return std::nullopt;
    }
    params.insert(params.end(), origins->begin(), origins->end());
  }
  return params;
}

} // namespace

std::vector<bool> written_allocations(const Launch& launch) {
  const std::span<const Allocation> live = launch.machine().hbm.live();
  std::vector<bool> written(live.size(), false);
  const Program& program = launch.program();
  PointerOrigins pointers(program);
  for (uint32_t pc = 0; pc < program.insns().size(); ++pc) {
    if (!program.at(pc).is_reached || !program.at(pc).writes_hbm) {
      continue;
    }
    const auto params = written_params(program.at(pc).insn, pc, pointers);
    bool is_found = false;
    for (const uint32_t param : params.value_or(std::vector<uint32_t>())) {
      const Allocation* allocation = launch.image().param_allocation[param];
      if (allocation != nullptr) { // else a number: an offset
        written[static_cast<size_t>(allocation - live.data())] = true;
        is_found = true;
      }
    }
    if (!is_found) {
      return std::vector<bool>(live.size(), true);
    }
  }
  return written;
}

} // namespace pto::sim
