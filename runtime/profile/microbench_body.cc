// SPDX-License-Identifier: Apache-2.0
// The text of one kernel.
#include "runtime/profile/microbench_set.h"

#include <fmt/format.h>

namespace pto::rt::detail {

using isa::Insn;

void Body::add(const Insn& insn) {
  for (unsigned i = 0; i < insn.operand_count; ++i) {
    const isa::Operand& operand = insn.operand(i);
    if (operand.kind == isa::OperandKind::kReg32) {
      reg32_.insert(operand.index);
    } else if (operand.kind == isa::OperandKind::kReg64) {
      reg64_.insert(operand.index);
    } else if (operand.kind == isa::OperandKind::kPred) {
      preds_.insert(operand.index);
    } else if (operand.kind == isa::OperandKind::kMem) {
      const isa::MemRef ref = operand.mem();
      reg32_.insert(ref.index_reg);
      uses_shared_ = uses_shared_ || ref.space == isa::Space::kL1;
      uses_const_ = uses_const_ || ref.space == isa::Space::kConst;
    }
  }
  line(text_of(insn));
}

void Body::function(const std::string& name, const std::string& text) {
  functions_ += fmt::format(".func {}\n{}.end\n", name, text);
}

std::string Body::text(const std::string& name) const {
  std::string out = fmt::format(".pto 1\n.kernel {}(ptr a, ptr o, u32 n)\n", name);
  if (uses_shared_) {
    out += ".shared s, b32[4096]\n";
  }
  if (uses_const_) {
    out += ".const c, b32 {0, 0, 0, 0}\n";
  }
  out += declarations_;
  out += prologue();
  out += setup_;
  for (const std::string& line : lines_) {
    out += line;
    out += '\n';
  }
  out += epilogue();
  // Functions stand behind the kernel: code is fetched ahead of its use, never backwards.
  return out + "    exit\n.end\n" + functions_;
}

std::string Body::prologue() const {
  std::string out = "    mov.b32 r3, 0\n    mov.u32 r30, %gid.x\n";
  const std::pair<unsigned, const char*> starts[] = {{kChain, "mov.b32 r0, 0"},
                                                     {kConstant, "mov.b32 r1, 0x3f803f80"},
                                                     {kMiddle, "mov.b32 r2, 0"},
                                                     {kLocalReg, "mov.u32 r29, %tid.x"}};
  for (const auto& [reg, text] : starts) {
    if (has(reg)) {
      out += fmt::format("    {}\n", text);
    }
  }
  for (const unsigned reg : {kChain, kConstant, kMiddle, kZero}) {
    if (reg64_.count(reg) != 0) {
      out += fmt::format("    mov.b64 d{}, {}\n", reg, reg == kConstant ? 3 : 0);
    }
  }
  for (const unsigned reg : {kChain, kConstant, kMiddle}) {
    if (preds_.count(reg) != 0) {
      out += fmt::format("    cmp.eq.u32 p{}, r3, r3\n", reg);
    }
  }
  return out;
}

std::string Body::epilogue() const {
  std::string out;
  for (const unsigned reg : reg32_) {
    if (reg >= kFirstStream && reg < kLocalReg) {
      out += fmt::format("    xor.b32 r3, r3, r{}\n", reg);
    }
  }
  if (preds_.count(kChain) != 0) {
    out += "    sel.b32 r3, r3, r30, p0\n";
  }
  out += fmt::format("    store.b32 hbm[o + r30*4], {}\n", has(kChain) ? "r0" : "r3");
  if (reg64_.count(kChain) != 0) {
    out += "    store.b64 hbm[o + r30*8], d0\n";
  }
  return out;
}

} // namespace pto::rt::detail
