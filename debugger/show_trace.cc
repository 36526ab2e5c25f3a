// SPDX-License-Identifier: Apache-2.0
// What a step did: insns grouped by cycle and pc, one line a lane, values with their names.
#include "debugger/command.h"
#include "isa/insn_desc.h"
#include "isa/print.h"
#include "simulator/block.h"
#include "simulator/lane_ranges.h"

#include <algorithm>
#include <bit>
#include <cctype>

namespace pto::dbg {

std::string name_address(const Session& session,
                         uint64_t block,
                         isa::Space space,
                         uint64_t address,
                         uint32_t element_bytes) {
  const uint32_t unit = std::max(1u, element_bytes);
  const auto element = [&](std::string_view name, uint64_t offset) {
    return offset % unit == 0 ? fmt::format("{}[{}]", name, offset / unit)
                              : fmt::format("{} + {} bytes", name, offset);
  };
  if (space == isa::Space::kHbm) {
    // By the parameter that points into the same allocation, as near below as can be.
    const sim::Allocation* held = session.machine().hbm.find(address);
    if (held == nullptr) {
      return fmt::format("hbm:{:#x}", address);
    }
    const std::vector<isa::Param>& params = session.program().kernel().params;
    const std::vector<uint64_t>& values = session.launch().image().params;
    size_t best = params.size();
    for (size_t i = 0; i < params.size(); ++i) {
      if (params[i].is_pointer && values[i] >= held->base && values[i] <= address &&
          (best == params.size() || values[i] > values[best])) {
        best = i;
      }
    }
    return best != params.size() ? element(params[best].name, address - values[best])
                                 : "hbm:" + session.machine().hbm.label(address);
  }
  for (const isa::Symbol& symbol : session.program().object().symbols) {
    const bool is_const = symbol.kind == isa::SymbolKind::kConst;
    const bool is_visible =
        symbol.owner == session.program().kernel_index() || symbol.owner == isa::kFileScope;
    if (is_const == (space == isa::Space::kConst) && is_visible && address >= symbol.offset &&
        address - symbol.offset < symbol.size_bytes) {
      return element(symbol.name, address - symbol.offset);
    }
  }
  if (space == isa::Space::kL1) {
    if (const sim::BlockRun* run = session.block(block)) {
      const sim::ScratchpadSegment* segment = run->scratchpad().find(address);
      if (segment != nullptr && segment->tile >= 0) {
        return element(fmt::format("t{}", segment->tile), address - segment->offset);
      }
    }
  }
  return fmt::format("{}:{}", isa::name(space), address);
}

std::string upper_mnemonic(const isa::Insn& insn) {
  std::string text(insn.desc->mnemonic);
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) {
    return static_cast<char>(std::toupper(c));
  });
  return text;
}

namespace {

class TraceText {
public:
  TraceText(const Session& session, uint64_t lanes_shown)
      : session_(session), program_(session.program()), lanes_shown_(lanes_shown) {}

  std::string text(const Trace& trace) {
    for (size_t i = 0; i < trace.insns.size();) {
      size_t end = i + 1;
      while (end < trace.insns.size() && trace.insns[end].pc == trace.insns[i].pc &&
             trace.insns[end].cycle == trace.insns[i].cycle) {
        ++end;
      }
      group({trace.insns.data() + i, end - i});
      i = end;
    }
    if (trace.dropped != 0) {
      out_ += fmt::format("... {} more warp insns are not shown\n", trace.dropped);
    }
    return std::move(out_);
  }

private:
  void line(std::string_view text) { out_ += fmt::format("  {}\n", text); }

  void group(std::span<const InsnTrace> insns) {
    const InsnTrace& first = insns.front();
    const isa::Insn& insn = program_.object().code[first.pc];
    out_ += fmt::format(
        "cycle {}  {}  {}", first.cycle, program_.place(first.pc), upper_mnemonic(insn));
    const sim::LaunchImage& image = session_.launch().image();
    if (insns.size() < image.warps) {
      std::vector<std::string> warps;
      for (const InsnTrace& one : insns) {
        warps.push_back(std::to_string(one.warp));
      }
      out_ += fmt::format("  ({} {})", warps.size() == 1 ? "warp" : "warps", fmt::join(warps, ","));
    }
    out_ += "\n";
    uint64_t shown = 0;
    uint64_t hidden = 0;
    uint64_t idle = 0;
    const bool is_block = insn.desc->scope == isa::Scope::kBlock;
    for (const InsnTrace& one : insns) {
      if (is_block || one.operands.empty()) {
        whole(one, insn);
        continue;
      }
      for (uint32_t lane = 0; lane < isa::kWarpLanes; ++lane) {
        if ((one.exec_mask >> lane & 1) == 0) {
          idle += (one.active_mask >> lane & 1) != 0 ? 1 : 0;
          continue;
        }
        if (shown == lanes_shown_) {
          ++hidden;
          continue;
        }
        ++shown;
        line(fmt::format(
            "[Lane {}] {}", one.warp * isa::kWarpLanes + lane, lane_text(one, insn, lane)));
      }
      control(one, insn);
    }
    if (hidden != 0) {
      line(fmt::format("... {} more (set lanes-shown N)", hidden));
    }
    if (idle != 0) {
      line(fmt::format("{} lanes do nothing: guard {}{} is false",
                       idle,
                       insn.guard.negated ? "!p" : "p",
                       insn.guard.pred));
    }
    for (const InsnTrace& one : insns) {
      for (const std::string& print : one.prints) {
        line(fmt::format("prints: {}", print));
      }
      for (const sim::CopyRecord& copy : one.moved) {
        line(fmt::format("the copy of pc {} is complete: {}", copy.pc, copy_text(one, copy)));
      }
    }
  }

  std::string copy_text(const InsnTrace& one, const sim::CopyRecord& copy) {
    const std::string hbm =
        name_address(session_, one.block, isa::Space::kHbm, copy.hbm_address, 1);
    const std::string l1 = name_address(session_, one.block, isa::Space::kL1, copy.l1_offset, 1);
    const bool is_in = copy.direction == isa::CopyDirection::kHbmToL1;
    return fmt::format("{} bytes, {} -> {}", copy.bytes(), is_in ? hbm : l1, is_in ? l1 : hbm);
  }

  /// What the warp or block does as one.
  void whole(const InsnTrace& one, const isa::Insn& insn) {
    if (one.passed_over) {
      return;
    }
    if (one.exec_mask == 0) {
      line(fmt::format("warp {}: nothing, the guard is false", one.warp));
      return;
    }
    if (one.copy) {
      line(fmt::format("starts copy of {}{}",
                       copy_text(one, *one.copy),
                       one.copy->event >= 0 ? fmt::format(", event e{}", one.copy->event) : ""));
    }
    for (const sim::L1Record& range : one.l1) {
      if (range.size_bytes != 0) {
        line(fmt::format("{} {}, {} bytes",
                         range.writes ? (range.reads ? "reads and writes" : "writes") : "reads",
                         name_address(session_, one.block, isa::Space::kL1, range.offset, 1),
                         range.size_bytes));
      }
    }
    control(one, insn);
  }

  void control(const InsnTrace& one, const isa::Insn& insn) {
    if (one.diverged) {
      line(fmt::format("warp {}: lanes {} jump, lanes {} go on",
                       one.warp,
                       sim::lane_ranges(one.taken_mask, ","),
                       sim::lane_ranges(one.active_mask & ~one.taken_mask, ",")));
    } else if (insn.desc->has(isa::kBranch) && one.exec_mask != 0) {
      line(fmt::format("warp {}: jumps to {}", one.warp, describe_location(program_, one.next_pc)));
    } else if (insn.desc->has(isa::kCall | isa::kReturn) && one.exec_mask != 0) {
      line(fmt::format(
          "warp {}: goes on at {}", one.warp, describe_location(program_, one.next_pc)));
    }
    if (one.exited_mask != 0) {
      line(fmt::format("warp {}: lanes {} end", one.warp, sim::lane_ranges(one.exited_mask, ",")));
    }
    if (one.barrier_id >= 0) {
      line(fmt::format("warp {}: {} barrier {}",
                       one.warp,
                       one.releases_barrier ? "arrives last and opens" : "waits at",
                       one.barrier_id));
    } else if (one.outcome == isa::Outcome::kBlocked) {
      line(fmt::format("warp {}: waits", one.warp));
    }
  }

  static std::string value_text(const OperandTrace& operand, uint32_t lane) {
    Value value;
    value.type = operand.reg.file == RegisterFile::kPred ? isa::Type::kPred : operand.type;
    value.bits = operand.values[lane];
    return to_string(value);
  }

  std::string lane_text(const InsnTrace& one, const isa::Insn& insn, uint32_t lane) {
    const std::string mnemonic = upper_mnemonic(insn);
    std::vector<std::string> sources;
    std::vector<std::string> results;
    std::vector<std::string> result_names;
    std::vector<std::string> result_values;
    for (unsigned i = 0; i < insn.operand_count; ++i) {
      const isa::Operand& operand = insn.operand(i);
      const isa::OperandSpec& spec = isa::spec_of(insn, i);
      if (operand.kind == isa::OperandKind::kReg32 || operand.kind == isa::OperandKind::kReg64 ||
          operand.kind == isa::OperandKind::kPred) {
        for (const OperandTrace& traced : one.operands) {
          if (traced.operand != i) {
            continue;
          }
          const std::string text = value_text(traced, lane);
          if (traced.is_result) {
            result_names.push_back(to_string(traced.reg));
            result_values.push_back(text);
          } else {
            sources.push_back(fmt::format("{} = {}", to_string(traced.reg), text));
          }
        }
        continue;
      }
      if (operand.kind == isa::OperandKind::kMem && one.accesses_memory) {
        sources.push_back(
            name_address(session_, one.block, one.space, one.addresses[lane], one.element_bytes));
        continue;
      }
      if (operand.kind != isa::OperandKind::kDiscard && isa::reads(spec.role)) {
        sources.push_back(isa::print_operand(insn, i, program_.object(), program_.kernel()));
      }
    }
    if (one.accesses_memory && !one.is_atomic && one.reads_memory && !result_names.empty()) {
      // LOAD a[0] -> r1, L1[0] (4 bytes) = 0.123
      std::string place;
      if (one.l1_offsets[lane] != InsnTrace::kNotCached) {
        const uint32_t unit = std::max<uint32_t>(1, one.element_bytes);
        place = one.l1_offsets[lane] % unit == 0
                    ? fmt::format(", L1[{}]", one.l1_offsets[lane] / unit)
                    : fmt::format(", l1:{}", one.l1_offsets[lane]);
      }
      return fmt::format("{} {} -> {}{} ({} bytes) = {}",
                         mnemonic,
                         sources.empty() ? std::string() : sources[0],
                         fmt::join(result_names, ","),
                         place,
                         one.access_bytes,
                         fmt::join(result_values, ", "));
    }
    if (one.accesses_memory && one.writes_memory && !one.is_atomic && !sources.empty()) {
      // STORE r3 = 0.579 -> o[0] (4 bytes)
      const std::string address = sources[0];
      return fmt::format("{} {} -> {} ({} bytes)",
                         mnemonic,
                         fmt::join(sources.begin() + 1, sources.end(), ", "),
                         address,
                         one.access_bytes);
    }
    std::string text = mnemonic;
    if (!sources.empty()) {
      text += fmt::format(" {}", fmt::join(sources, ", "));
    }
    for (size_t i = 0; i < result_names.size(); ++i) {
      text += fmt::format("{}{} = {}", i == 0 ? " -> " : ", ", result_names[i], result_values[i]);
    }
    return text;
  }

  const Session& session_;
  const sim::Program& program_;
  uint64_t lanes_shown_;
  std::string out_;
};

} // namespace

std::string describe_trace(const Session& session, uint64_t lanes_shown) {
  return TraceText(session, lanes_shown).text(session.trace());
}

} // namespace pto::dbg
