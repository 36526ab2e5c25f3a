// SPDX-License-Identifier: Apache-2.0
// Working out, once a kernel, what the engine would otherwise work out once an execution.
#include "simulator/program.h"

#include "isa/error.h"
#include "isa/print.h"
#include "isa/suggest.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

namespace pto::sim {

namespace {

void add_register(ResourceSet& set, const isa::Operand& operand, unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    if (operand.kind == isa::OperandKind::kReg32) {
      set.add_reg32(operand.index + i);
    } else if (operand.kind == isa::OperandKind::kReg64) {
      set.add_reg64(operand.index + i);
    }
  }
}

unsigned register_count(const isa::Insn& insn, const isa::OperandSpec& spec) {
  return spec.vector ? isa::vector_count(insn) : 1;
}

/// The registers that an address is made of.
void add_address(ResourceSet& set, const isa::MemRef& mem) {
  if (mem.index_reg != isa::kNoIndexReg) {
    set.add_reg32(mem.index_reg);
  }
  if (mem.base == isa::BaseKind::kReg) {
    if (mem.space == isa::Space::kHbm) {
      set.add_reg64(mem.base_index);
    } else {
      set.add_reg32(mem.base_index);
    }
  }
}

void add_operand(ProgramInsn& decoded, unsigned i) {
  const isa::Insn& insn = decoded.insn;
  const isa::Operand& operand = insn.operand(i);
  const isa::OperandSpec& spec = isa::spec_of(insn, i);
  const unsigned count = register_count(insn, spec);
  if (isa::reads(spec.role)) {
    add_register(decoded.reads, operand, count);
  }
  if (isa::writes(spec.role)) {
    add_register(decoded.writes, operand, count);
  }
  const auto add = [&](auto&& apply) {
    if (isa::reads(spec.role)) {
      apply(decoded.reads);
    }
    if (isa::writes(spec.role)) {
      apply(decoded.writes);
    }
  };
  if (operand.kind == isa::OperandKind::kPred) {
    add([&](ResourceSet& set) { set.preds |= 1u << operand.index; });
  } else if (operand.kind == isa::OperandKind::kTile) {
    add([&](ResourceSet& set) { set.tiles |= static_cast<uint16_t>(1u << operand.index); });
  } else if (operand.kind == isa::OperandKind::kEvent) {
    // A copy makes its event, a wait needs it.
    ResourceSet& set = insn.desc->has(isa::kAsync) ? decoded.writes : decoded.reads;
    set.events |= static_cast<uint8_t>(1u << operand.index);
  } else if (operand.kind == isa::OperandKind::kMem) {
    const isa::MemRef mem = operand.mem();
    add_address(decoded.reads, mem);
    if (mem.base == isa::BaseKind::kTile) {
      add([&](ResourceSet& set) { set.tiles |= static_cast<uint16_t>(1u << mem.base_index); });
    }
    if (mem.space == isa::Space::kHbm && insn.desc->has(isa::kWritesMem) &&
        (isa::writes(spec.role) || !insn.desc->has(isa::kAsync))) {
      decoded.writes_hbm = true;
    }
  }
}

bool is_pure(const isa::Insn& insn) {
  const isa::InsnDesc& row = *insn.desc;
  constexpr isa::Flags kHarmless = isa::kDivides | isa::kSelects | isa::kTypesFirst;
  if (row.scope != isa::Scope::kLane || (row.flags & ~kHarmless) != 0 ||
      (row.unit != isa::Unit::kV && row.unit != isa::Unit::kX) || insn.operand_count < 2) {
    return false;
  }
  for (unsigned i = 0; i < insn.operand_count; ++i) {
    const isa::OperandKind kind = insn.operand(i).kind;
    const bool is_register = kind == isa::OperandKind::kReg32 || kind == isa::OperandKind::kReg64;
    const bool is_constant = kind == isa::OperandKind::kImm || kind == isa::OperandKind::kParam ||
                             kind == isa::OperandKind::kSymbol;
    const bool is_destination = isa::writes(isa::spec_of(insn, i).role);
    if (is_destination != (i == 0) ||
        !(is_register || (i == 0 ? kind == isa::OperandKind::kPred : is_constant))) {
      return false;
    }
  }
  return true;
}

bool is_store(const isa::InsnDesc& row) {
  return row.flags == isa::kWritesMem && row.scope == isa::Scope::kLane;
}

bool feeds_store(const ProgramInsn& decoded, const ProgramInsn& next) {
  if (!decoded.is_pure || decoded.is_guarded || next.is_guarded || !is_store(*next.insn.desc) ||
      isa::vector_count(next.insn) != 1) {
    return false;
  }
  const isa::Operand& result = decoded.insn.operand(0);
  const isa::Operand& stored = next.insn.operand(1);
  const bool is_whole = result.kind == isa::OperandKind::kReg32
                            ? isa::size_bytes(next.insn.type) == sizeof(uint32_t)
                            : result.kind == isa::OperandKind::kReg64;
  ResourceSet address;
  add_address(address, next.insn.operand(0).mem());
  return is_whole && stored.kind == result.kind && stored.index == result.index &&
         !decoded.writes.intersects(address);
}

bool keeps_memory(const isa::Insn& insn) {
  constexpr isa::Flags kHarmless = isa::kReadsMem | isa::kBranch | isa::kEndsLane | isa::kTraps |
                                   isa::kWarpBarrier | isa::kCrossLane | isa::kShuffles |
                                   isa::kTypesFirst | isa::kSelects | isa::kDivides;
  const isa::InsnDesc& row = *insn.desc;
  return is_store(row) || (row.scope != isa::Scope::kBlock && (row.flags & ~kHarmless) == 0);
}

} // namespace

bool names_clock(const isa::Insn& insn) {
  return std::any_of(insn.operands.begin(),
                     insn.operands.begin() + insn.operand_count,
                     [](const isa::Operand& operand) {
                       return operand.kind == isa::OperandKind::kSpecial &&
                              static_cast<isa::Special>(operand.index) == isa::Special::kClock;
                     });
}

Program::Program(std::shared_ptr<const isa::Object> object, uint32_t kernel)
    : object_(std::move(object)), kernel_(kernel) {
  PTO_CHECK(kernel_ < object_->functions.size() && object_->functions[kernel_].is_kernel);
  insns_.resize(object_->code.size());
  for (uint32_t pc = 0; pc < insns_.size(); ++pc) {
    decode(pc);
  }
  for (const isa::Function& function : object_->functions) {
    for (const isa::Reconvergence& point : function.reconvergence) {
      insns_[point.branch_pc].join_pc = point.join_pc;
    }
  }
  for (const isa::Function& function : object_->functions) {
    for (uint32_t pc = function.first_pc; pc + 1 < function.first_pc + function.insn_count; ++pc) {
      insns_[pc].feeds_store = feeds_store(insns_[pc], insns_[pc + 1]);
    }
  }
  survey();
}

std::shared_ptr<const Program> Program::find(std::shared_ptr<const isa::Object> object,
                                             std::string_view kernel,
                                             std::string& error) {
  std::vector<std::string> kernels;
  std::optional<uint32_t> found;
  for (uint32_t i = 0; i < object->functions.size(); ++i) {
    const isa::Function& function = object->functions[i];
    if (function.is_kernel) {
      kernels.push_back(function.name);
      if (function.name == kernel || (kernel.empty() && !found)) {
        found = i;
      }
    }
  }
  if (kernels.empty()) {
    error = "the program has no kernel; expected a `.kernel name(...)` ... `.end`";
    return nullptr;
  }
  if (kernel.empty() && kernels.size() > 1) {
    error = fmt::format(
        "the program has {} kernels ({}); say which", kernels.size(), fmt::join(kernels, ", "));
    return nullptr;
  }
  if (!found) {
    error = fmt::format("no kernel '{}'; the program has {}", kernel, fmt::join(kernels, ", "));
    if (const auto near = isa::nearest_name(kernel, kernels)) {
      error += fmt::format("; did you mean '{}'?", *near);
    }
    return nullptr;
  }
  return std::make_shared<const Program>(std::move(object), *found);
}

void Program::decode(uint32_t pc) {
  ProgramInsn& decoded = insns_[pc];
  decoded.insn = object_->code[pc];
  isa::Insn& insn = decoded.insn;
  decoded.exec = insn.desc->exec;
  decoded.is_guarded = insn.guard.present;
  decoded.is_block_scoped = insn.desc->scope == isa::Scope::kBlock;
  decoded.slots.fill(kNoBroadcast);
  if (insn.guard.present) {
    decoded.reads.preds |= 1u << insn.guard.pred;
  }
  decoded.is_pure = is_pure(insn);
  decoded.keeps_memory = keeps_memory(insn);
  decoded.may_be_linear = decoded.is_pure || insn.desc->linear.of_span != nullptr;
  for (unsigned i = 0; i < insn.operand_count; ++i) {
    add_operand(decoded, i);
    if (insn.desc->unit == isa::Unit::kC) {
      const size_t letter = std::string_view("mnk").find(isa::spec_of(insn, i).name);
      if (letter < decoded.mnk.size()) {
        decoded.mnk[letter] = static_cast<int8_t>(i);
      }
    }
    isa::Operand& operand = insn.operands[i];
    const isa::Type type = isa::operand_type(insn, i);
    if (operand.kind == isa::OperandKind::kImm) {
      // Predicate immediates are read from the bits.
      operand.index = type == isa::Type::kNone || type == isa::Type::kPred
                          ? kNoBroadcast
                          : slot_for(operand.kind, operand.bits, isa::is_wide(type));
    } else if (operand.kind == isa::OperandKind::kParam ||
               operand.kind == isa::OperandKind::kSymbol) {
      if (type != isa::Type::kNone) {
        decoded.slots[i] = slot_for(operand.kind, operand.index, isa::is_wide(type));
      }
    }
  }
  find_lane_reads(decoded);
}

void Program::find_lane_reads(ProgramInsn& decoded) {
  decoded.lane_reads = decoded.reads;
  if (decoded.is_block_scoped) {
    return;
  }
  ResourceSet addresses;
  ResourceSet values;
  const isa::Insn& insn = decoded.insn;
  for (unsigned i = 0; i < insn.operand_count; ++i) {
    const isa::Operand& operand = insn.operand(i);
    const isa::OperandSpec& spec = isa::spec_of(insn, i);
    if (operand.kind == isa::OperandKind::kMem) {
      add_address(addresses, operand.mem());
    } else if (isa::reads(spec.role)) {
      add_register(values, operand, register_count(insn, spec));
    }
  }
  const auto kept = [](uint64_t reads, uint64_t address, uint64_t value, uint64_t writes) {
    return reads & ~(address & ~value & ~writes);
  };
  const ResourceSet& writes = decoded.writes;
  ResourceSet& set = decoded.lane_reads;
  for (unsigned half = 0; half < 2; ++half) {
    set.reg32[half] =
        kept(set.reg32[half], addresses.reg32[half], values.reg32[half], writes.reg32[half]);
  }
  set.reg64 = kept(set.reg64, addresses.reg64, values.reg64, writes.reg64);
}

uint32_t Program::slot_for(isa::OperandKind kind, uint64_t value, bool wide) {
  // Programs have few distinct constants, and nothing here runs more than once a program.
  const size_t searched = std::min<size_t>(slots_.size(), kMaxBroadcastSlots);
  for (uint32_t i = 0; i < searched; ++i) {
    if (slots_[i].kind == kind && slots_[i].value == value && slots_[i].wide == wide) {
      return i;
    }
  }
  if (slots_.size() == kMaxBroadcastSlots) {
    return kNoBroadcast;
  }
  slots_.push_back({.kind = kind, .value = value, .wide = wide});
  return static_cast<uint32_t>(slots_.size() - 1);
}

void Program::survey() {
  std::vector<bool> reached(object_->functions.size(), false);
  std::vector<uint32_t> work = {kernel_};
  reached[kernel_] = true;
  while (!work.empty()) {
    const isa::Function& function = object_->functions[work.back()];
    work.pop_back();
    for (uint32_t pc = function.first_pc; pc < function.first_pc + function.insn_count; ++pc) {
      ProgramInsn& decoded = insns_[pc];
      decoded.is_reached = true;
      flags_ |= decoded.insn.desc->flags;
      reads_clock_ = reads_clock_ || names_clock(decoded.insn);
      for (const ResourceSet* set : {&decoded.reads, &decoded.writes}) {
        used_preds_ |= set->preds;
        for (uint32_t i = reg32_limit_; i < isa::kReg32Count; ++i) {
          reg32_limit_ = set->has_reg32(i) ? i + 1 : reg32_limit_;
        }
        for (uint32_t i = reg64_limit_; i < isa::kReg64Count; ++i) {
          reg64_limit_ = set->has_reg64(i) ? i + 1 : reg64_limit_;
        }
      }
      for (unsigned i = 0; i < decoded.insn.operand_count; ++i) {
        const isa::Operand& operand = decoded.insn.operand(i);
        if (operand.kind != isa::OperandKind::kLabel || !decoded.insn.desc->has(isa::kCall)) {
          continue;
        }
        for (uint32_t f = 0; f < reached.size(); ++f) {
          if (!reached[f] && object_->functions[f].contains(static_cast<uint32_t>(operand.bits))) {
            reached[f] = true;
            work.push_back(f);
          }
        }
      }
    }
  }
}

isa::SourceLoc Program::loc(uint32_t pc) const {
  return pc < object_->locs.size() ? object_->locs[pc] : isa::SourceLoc{};
}

std::string Program::place(uint32_t pc) const {
  const isa::SourceLoc where = loc(pc);
  if (where.line == 0 || where.file >= object_->files.size()) {
    return fmt::format("pc {}", pc);
  }
  return fmt::format("{}:{}", object_->files[where.file], where.line);
}

std::string Program::text(uint32_t pc) const {
  const isa::Function* function = object_->function_at(pc);
  return isa::print_insn(object_->code[pc], *object_, function != nullptr ? *function : kernel());
}

} // namespace pto::sim
