// SPDX-License-Identifier: Apache-2.0
// The trace of a step: what each insn read before it ran, wrote and touched.
#include "debugger/session_impl.h"
#include "isa/insn_desc.h"

#include <algorithm>

namespace pto::dbg {

namespace {

/// Of an operand that is a register with a value in each lane.
std::optional<RegisterFile> register_file(isa::OperandKind kind) {
  switch (kind) {
  case isa::OperandKind::kReg32:
    return RegisterFile::kReg32;
  case isa::OperandKind::kReg64:
    return RegisterFile::kReg64;
  case isa::OperandKind::kPred:
    return RegisterFile::kPred;
  default:
    return std::nullopt;
  }
}

} // namespace

void Session::Impl::before_insn(const sim::EventSite& site, uint32_t active, uint32_t exec) {
  if (!is_tracing || site.block.index() != goal_block) {
    return;
  }
  if (trace.insns.size() >= options.trace_insns) {
    ++trace.dropped;
    open_trace.reset();
    return;
  }
  InsnTrace insn;
  insn.cycle = engine->model() != nullptr ? pending_cycle : site.block.warp(site.warp).issued;
  insn.block = site.block.index();
  insn.core = site.block.core();
  insn.warp = site.warp;
  insn.pc = site.pc;
  insn.active_mask = active;
  insn.exec_mask = exec;
  insn.l1_offsets.fill(InsnTrace::kNotCached);
  const isa::Insn& code = program->object().code[site.pc];
  for (unsigned i = 0; i < code.operand_count; ++i) {
    const isa::Operand& operand = code.operand(i);
    const isa::OperandSpec& spec = isa::spec_of(code, i);
    const std::optional<RegisterFile> file = register_file(operand.kind);
    if (!file) {
      continue;
    }
    const unsigned count = spec.vector ? isa::vector_count(code) : 1;
    for (unsigned element = 0; element < count; ++element) {
      OperandTrace traced;
      traced.operand = static_cast<uint8_t>(i);
      traced.element = static_cast<uint8_t>(element);
      traced.reg = {*file, operand.index + element};
      traced.type = isa::operand_type(code, i);
      for (const bool is_result : {false, true}) {
        if (is_result ? !isa::writes(spec.role) : !isa::reads(spec.role)) {
          continue;
        }
        traced.is_result = is_result;
        for (uint32_t l = 0; l < isa::kWarpLanes && !is_result; ++l) {
          const uint32_t lane = site.warp * isa::kWarpLanes + l;
          traced.values[l] = register_bits(site.block, traced.reg, lane);
        }
        insn.operands.push_back(traced);
      }
    }
  }
  open_trace = std::move(insn);
}

/// What the insn did, once it was executed.
void Session::Impl::close_trace(const sim::BlockRun& run, const sim::IssueRecord& record) {
  InsnTrace& insn = *open_trace;
  insn.outcome = record.outcome;
  insn.next_pc = record.next_pc;
  insn.passed_over = record.passed_over;
  insn.barrier_id = record.barrier_id;
  insn.releases_barrier = record.releases_barrier;
  insn.diverged = record.diverged;
  insn.taken_mask = record.taken_mask;
  insn.exited_mask = record.exited_mask;
  if (record.copy != nullptr) {
    insn.copy = *record.copy;
  }
  insn.l1.assign(record.l1.begin(), record.l1.begin() + record.l1_count);
  if (record.addresses != nullptr && record.exec_mask != 0) {
    insn.accesses_memory = true;
    insn.space = record.space;
    insn.access_bytes = record.access_bytes;
    insn.element_bytes = record.element_bytes;
    insn.reads_memory = record.reads_memory;
    insn.writes_memory = record.writes_memory;
    insn.is_atomic = record.is_atomic;
    std::copy_n(record.addresses, isa::kWarpLanes, insn.addresses.begin());
  }
  for (OperandTrace& operand : insn.operands) {
    if (operand.is_result) {
      for (uint32_t i = 0; i < isa::kWarpLanes; ++i) {
        const uint32_t lane = record.warp * isa::kWarpLanes + i;
        operand.values[i] = register_bits(run, operand.reg, lane);
      }
    }
  }
  trace.insns.push_back(std::move(insn));
  open_trace.reset();
}

void Session::Impl::print_line(const sim::EventSite& site,
                               unsigned /*lane*/,
                               std::string_view line) {
  if (is_tracing && open_trace && site.block.index() == goal_block) {
    open_trace->prints.emplace_back(line);
  }
}

/// Where in l1 the data cache keeps what was loaded: known only once the issue was booked.
void Session::Impl::finish_trace() {
  open_trace.reset();
  if (engine->model() == nullptr) {
    return;
  }
  const uint32_t line_bytes = machine.profile.l1.line_bytes;
  for (InsnTrace& insn : trace.insns) {
    const sim::CoreMemory* memory = engine->model()->core_memory(insn.core);
    if (memory == nullptr || !insn.accesses_memory || insn.space != isa::Space::kHbm ||
        line_bytes == 0) {
      continue;
    }
    for (uint32_t lane = 0; lane < isa::kWarpLanes; ++lane) {
      if ((insn.exec_mask >> lane & 1) != 0) {
        const std::optional<uint32_t> slot =
            memory->data_cache().find(insn.addresses[lane] / line_bytes);
        if (slot) {
          insn.l1_offsets[lane] = memory->cache_begin_bytes() + *slot * line_bytes +
                                  static_cast<uint32_t>(insn.addresses[lane] % line_bytes);
        }
      }
    }
  }
}

} // namespace pto::dbg
