// SPDX-License-Identifier: Apache-2.0
#include "runtime/npu/body_emitter.h"

#include "isa/insn_desc.h"
#include "isa/print.h"

#include <fmt/format.h>

#include <optional>

namespace pto::rt {

namespace {

using isa::Function;
using isa::Insn;
using Kind = Statement::Kind;

constexpr size_t kCommentColumn = 68;

} // namespace

void append_line(std::string& out, unsigned depth, std::string_view text) {
  out.append(size_t{depth} * 2, ' ');
  out += text;
  out += '\n';
}

std::string BodyEmitter::place(uint32_t pc) const {
  const isa::SourceLoc& loc = object_.locs[pc];
  return loc.line != 0 && loc.file < object_.files.size()
             ? fmt::format("{}:{}: ", object_.files[loc.file], loc.line)
             : fmt::format("instruction {}: ", pc);
}

void BodyEmitter::statement(unsigned depth, const std::string& text, uint32_t pc) {
  std::string out(size_t{depth} * 2, ' ');
  out += text;
  if (options_.comments) {
    out.append(out.size() < kCommentColumn ? kCommentColumn - out.size() : 1, ' ');
    const isa::SourceLoc& loc = object_.locs[pc];
    std::string source = isa::print_insn(object_.code[pc], object_, *current_);
    for (char& c : source) { // a backslash at the end would swallow the next line
      c = c == '\\' || c == '\n' ? ' ' : c;
    }
    out +=
        loc.line != 0 ? fmt::format("// {}: {}", loc.line, source) : fmt::format("// {}", source);
  }
  out_ += out + "\n";
}

void BodyEmitter::write(const BodyStyle& style) {
  style_ = style;
  current_ = style_.names.function;
  const Function& function = *current_;
  const isa::Cfg cfg(object_, function);
  cfg_ = &cfg;
  const Structure structure = find_structure(cfg, object_, function);
  if (structure.why_not.empty()) {
    statements(structure.statements, 1);
  } else {
    warn(fmt::format("{}: it becomes a loop around a switch instead of if and while",
                     structure.why_not));
    pc_switch(structure.why_not);
  }
  cfg_ = nullptr;
}

std::string BodyEmitter::label_of(uint32_t block, bool is_continue) const {
  const uint32_t pc = cfg_->blocks()[block].first_pc;
  std::string name = fmt::format("L{}", pc - current_->first_pc);
  for (const isa::Label& label : current_->labels) {
    if (label.pc == pc) {
      name = fmt::format("L_{}", cpp_name(label.name));
      break;
    }
  }
  return is_continue ? name + "_next" : name;
}

void BodyEmitter::statements(const std::vector<Statement>& list, unsigned depth) {
  for (const Statement& statement : list) {
    one(statement, depth);
  }
}

void BodyEmitter::one(const Statement& s, unsigned depth) {
  switch (s.kind) {
  case Kind::kBlock:
    insns(s.block, depth);
    break;
  case Kind::kIf: {
    const uint32_t pc = cfg_->blocks()[s.block].end_pc - 1;
    const isa::Guard guard = object_.code[pc].guard;
    const std::string condition =
        predicate_text(style_.names, guard.pred, guard.negated != s.negated);
    if (s.body.size() == 1 && s.otherwise.empty() && !jump_text(s.body[0]).empty()) {
      statement(depth, fmt::format("if ({}) {{ {} }}", condition, jump_text(s.body[0])), pc);
      break;
    }
    statement(depth, fmt::format("if ({}) {{", condition), pc);
    statements(s.body, depth + 1);
    if (!s.otherwise.empty()) {
      line(depth, "} else {");
      statements(s.otherwise, depth + 1);
    }
    line(depth, "}");
    break;
  }
  case Kind::kLoop:
    line(depth,
         fmt::format("for (pto::Loop loop; loop.next();) {{ // {}", label_of(s.block, false)));
    statements(s.body, depth + 1);
    line(depth, "}");
    break;
  case Kind::kLabel:
    line(depth - 1, fmt::format("{}:;", label_of(s.block, s.is_continue)));
    break;
  default:
    line(depth, jump_text(s));
    break;
  }
}

/// Of a break, continue or goto; empty for other statements.
std::string BodyEmitter::jump_text(const Statement& s) const {
  return s.kind == Kind::kBreak      ? "break;"
         : s.kind == Kind::kContinue ? "continue;"
         : s.kind == Kind::kGoto     ? fmt::format("goto {};", label_of(s.block, s.is_continue))
                                     : "";
}

void BodyEmitter::insns(uint32_t block, unsigned depth) {
  const isa::BasicBlock& bounds = cfg_->blocks()[block];
  is_clock_fresh_ = false;
  for (uint32_t pc = bounds.first_pc; pc < bounds.end_pc; ++pc) {
    open_region(pc, depth);
    insn(pc, depth);
    close_region(pc, depth);
  }
}

void BodyEmitter::set_regions(const std::vector<ProbeRegion>& regions) {
  for (size_t i = 0; i < regions.size(); ++i) {
    regions_[regions[i].first_pc] = {regions[i], 1 + i};
  }
}

// What ran since the last clock read is not to count for the region that begins.
void BodyEmitter::open_region(uint32_t pc, unsigned depth) {
  const auto found = regions_.find(pc);
  if (found == regions_.end()) {
    return;
  }
  open_ = &found->second;
  if (!is_clock_fresh_) {
    line(depth, fmt::format("pto::restart({});", style_.probe));
  }
}

void BodyEmitter::close_region(uint32_t pc, unsigned depth) {
  is_clock_fresh_ = false;
  if (open_ != nullptr && pc + 1 == open_->pcs.end_pc) {
    line(depth, fmt::format("pto::mark({}, {});", style_.probe, open_->entry));
    open_ = nullptr;
    is_clock_fresh_ = true;
  }
}

// The statements of one insn; branches are the structure's.
void BodyEmitter::insn(uint32_t pc, unsigned depth) {
  const Insn& insn = object_.code[pc];
  const isa::InsnDesc& row = *insn.desc;
  if (row.has(isa::kBranch)) {
    return;
  }
  std::vector<std::string> text;
  if (row.has(isa::kCall)) {
    const Function* callee = object_.function_at(isa::target_pc(insn));
    text = {fmt::format("if (PTO_CALL(fn_{}(lane))) {{", cpp_name(callee->name)),
            "  " + style_.end_of_lane,
            "}"};
  } else if (row.has(isa::kReturn)) {
    text = {style_.end_of_call};
  } else if (row.has(isa::kEndsLane) && !row.has(isa::kTraps)) {
    text = {style_.end_of_lane};
  } else {
    std::string why;
    const std::optional<std::string> lowered = lower_insn(insn, style_.names, why);
    if (!lowered) {
      has_error_ = true;
      diags_.error({}, fmt::format("{}{} {}", place(pc), isa::print_mnemonic(insn), why));
      return;
    }
    text = {*lowered};
    if (row.has(isa::kEndsLane)) {
      text.push_back(style_.end_of_lane);
    }
    if (row.unit == isa::Unit::kC && !warned_of_mma_) {
      warned_of_mma_ = true;
      warn(fmt::format("{}{} runs as a loop over the lanes of warp 0: a vector kernel has no "
                       "published way to the cube core",
                       place(pc),
                       isa::print_mnemonic(insn)));
    }
  }
  if (insn.guard.present) {
    const std::string condition = predicate_text(style_.names, insn.guard.pred, insn.guard.negated);
    if (text.size() == 1) {
      statement(depth, fmt::format("if ({}) {{ {} }}", condition, text[0]), pc);
    } else {
      statement(depth, fmt::format("if ({}) {{", condition), pc);
      for (const std::string& one_line : text) {
        line(depth + 1, one_line);
      }
      line(depth, "}");
    }
  } else {
    statement(depth, text[0], pc);
    for (size_t i = 1; i < text.size(); ++i) {
      line(depth, text[i]);
    }
  }
}

// For graphs without structure: the number of the next block, and a case for each.
void BodyEmitter::pc_switch(const std::string& why) {
  line(1, fmt::format("// No structured form: {}.", why));
  line(1, "uint32_t next = 0;");
  line(1, "for (pto::Loop loop; loop.next();) {");
  line(2, "switch (next) {");
  for (uint32_t b = 0; b < cfg_->blocks().size(); ++b) {
    const isa::BasicBlock& bounds = cfg_->blocks()[b];
    if (!bounds.is_reachable) {
      continue;
    }
    line(2, fmt::format("case {}: // {}", b, label_of(b, false)));
    insns(b, 3);
    const uint32_t last = bounds.end_pc - 1;
    if (bounds.successor_count == 2) {
      const isa::Guard guard = object_.code[last].guard;
      statement(3,
                fmt::format("next = {} ? {} : {};",
                            predicate_text(style_.names, guard.pred, guard.negated),
                            bounds.successors[0],
                            bounds.successors[1]),
                last);
      line(3, "break;");
    } else if (bounds.successor_count == 1) {
      line(3, fmt::format("next = {};", bounds.successors[0]));
      line(3, "break;");
    }
  }
  line(2, "default:");
  line(3, style_.end_of_lane);
  line(2, "}");
  line(1, "}");
}

} // namespace pto::rt
