// SPDX-License-Identifier: Apache-2.0
#include "simulator/pointer_origins.h"

namespace pto::sim {

namespace {

constexpr size_t kMostPlaces = 1 << 12; // looked at for one address

} // namespace

PointerOrigins::PointerOrigins(const Program& program)
    : program_(program), kernel_(program.kernel()) {
  for (uint32_t pc = kernel_.first_pc; pc < kernel_.first_pc + kernel_.insn_count; ++pc) {
    const isa::Insn& insn = program.at(pc).insn;
    if (insn.desc->has(isa::kBranch)) {
      jumps_.emplace(isa::target_pc(insn), pc);
    }
  }
}

std::optional<std::vector<uint32_t>> PointerOrigins::of(uint32_t pc, unsigned index) {
  if ((program_.flags() & isa::kCall) != 0 || !kernel_.contains(pc)) {
    return std::nullopt;
  }
  seen_.clear();
  places_.clear();
  origins_.clear();
  look_before({pc, index});
  while (!places_.empty()) {
    const Place place = places_.back();
    places_.pop_back();
    const ProgramInsn& decoded = program_.at(place.first);
    const bool makes_it = decoded.writes.has_reg64(place.second);
    if (!makes_it || decoded.is_guarded) { // where the guard does not hold it stays as it was
      look_before(place);
    }
    if ((makes_it && !add_sources(place)) || seen_.size() > kMostPlaces) {
      return std::nullopt;
    }
  }
  return std::vector<uint32_t>(origins_.begin(), origins_.end());
}

/// The insns after which the one at the place may be next. Before the first one registers are zero.
void PointerOrigins::look_before(const Place& place) {
  const auto [pc, reg] = place;
  const auto add = [&, reg = reg](uint32_t before) {
    if (seen_.emplace(before, reg).second) {
      places_.emplace_back(before, reg);
    }
  };
  if (pc > kernel_.first_pc) {
    const ProgramInsn& previous = program_.at(pc - 1);
    constexpr isa::Flags kLeaves = isa::kBranch | isa::kEndsLane;
    if (previous.is_guarded || (previous.insn.desc->flags & kLeaves) == 0) {
      add(pc - 1);
    }
  }
  const auto [first, last] = jumps_.equal_range(pc);
  for (auto jump = first; jump != last; ++jump) {
    add(jump->second);
  }
}

bool PointerOrigins::add_sources(const Place& place) {
  const ProgramInsn& decoded = program_.at(place.first);
  if (!decoded.is_pure && !decoded.insn.desc->has(isa::kSelects)) {
    return false;
  }
  for (unsigned i = 1; i < decoded.insn.operand_count; ++i) {
    const isa::Operand& operand = decoded.insn.operand(i);
    if (operand.kind == isa::OperandKind::kParam) {
      origins_.insert(operand.index);
    } else if (operand.kind == isa::OperandKind::kReg64) {
      look_before({place.first, operand.index});
    }
  }
  return true;
}

} // namespace pto::sim
