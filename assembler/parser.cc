// SPDX-License-Identifier: Apache-2.0
// Lines, labels and insns. Directives are in directives.cc.
#include "assembler/parser.h"

#include "assembler/large_pages.h"
#include "isa/manual.h"
#include "isa/print_format.h"
#include "isa/suggest.h"
#include "isa/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace pto::as {

using isa::Insn;
using isa::Operand;
using isa::OperandKind;
using isa::OperandList;
using isa::SourceRange;
using isa::Type;

namespace {

constexpr size_t kMostInsns = size_t{1} << 20; // of the object format

struct FormSize {
  unsigned least = 0;
  unsigned most = 0;
};

FormSize size_of(const OperandList& form) {
  FormSize size;
  for (const isa::OperandSpec& spec : form) {
    size.least += spec.optional || spec.variadic ? 0 : 1;
  }
  const bool is_variadic = !form.empty() && form[form.size() - 1].variadic;
  size.most = is_variadic ? isa::kMaxOperands : form.size();
  return size;
}

// What tells two forms apart that are spelt alike: "d: a predicate".
std::string difference(const OperandList& form, const OperandList& other) {
  for (unsigned i = 0; i < form.size() && i < other.size(); ++i) {
    if (form[i].accepts != other[i].accepts) {
      return fmt::format(" ({}: {})", form[i].name, isa::accepted_kinds(form[i]));
    }
  }
  return "";
}

std::string signature(const isa::InsnDesc& desc) {
  std::string out;
  const bool is_alike = desc.form_count() == 2 && isa::operand_signature(desc.form(0)) ==
                                                      isa::operand_signature(desc.form(1));
  for (unsigned f = 0; f < desc.form_count(); ++f) {
    const std::string operands = isa::operand_signature(desc.form(f));
    out += fmt::format("{}{}{}{}{}",
                       f == 0 ? "" : " or ",
                       desc.mnemonic,
                       operands.empty() ? "" : " ",
                       operands,
                       is_alike ? difference(desc.form(f), desc.form(1 - f)) : "");
  }
  return out;
}

// By memchr, which looks at many bytes at a time.
size_t count_lines(std::string_view text) {
  size_t lines = 1;
  for (size_t at = text.find('\n'); at != std::string_view::npos; at = text.find('\n', at + 1)) {
    ++lines;
  }
  return lines;
}

// True if a register of that file may stand at the operand's place in some type.
bool takes_register(const isa::OperandSpec& spec, OperandKind kind) {
  switch (kind) {
  case OperandKind::kPred:
    return (spec.accepts & isa::kAcceptPred) != 0;
  case OperandKind::kTile:
    return (spec.accepts & isa::kAcceptTile) != 0;
  case OperandKind::kEvent:
    return (spec.accepts & isa::kAcceptEvent) != 0;
  default:
    return (spec.accepts & isa::kAcceptReg) != 0;
  }
}

} // namespace

Parser::Parser(const isa::SourceFile& file,
               const PreprocessOptions& options,
               Program& program,
               isa::Diagnostics& diags)
    : program_(program), diags_(diags), main_(file),
      preprocessor_(file, options, constants_, diags), mnemonics_(diags),
      operands_(program, scope_, constants_, diags),
      is_macro_([this](std::string_view name) { return preprocessor_.is_macro(name); }) {}

ConstContext Parser::constants() {
  return {constants_, diags_};
}

void Parser::parse() {
  Line line;
  // Most lines are insns; moving the ones there are whenever the vectors grow costs more than
  // address space that is never touched.
  const size_t expected = std::min(count_lines(main_.text()), kMostInsns);
  reserve_large(program_.object.code, expected);
  program_.object.locs.reserve(expected);
  program_.insn_ranges.reserve(expected);
  while (!diags_.is_full() && preprocessor_.next(line)) {
    parse_line(line);
  }
  if (diags_.is_full()) {
    return;
  }
  if (preprocessor_.gave_up()) {
    return;
  }
  if (state_ == State::kInside) {
    const isa::Function& open = function();
    diags_
        .error(program_.function_sources.back().name_range,
               fmt::format(
                   "{} '{}' is never closed", open.is_kernel ? "kernel" : "function", open.name))
        .expect(".end before the end of the file");
    close_function(program_.function_sources.back().name_range);
  }
  if (program_.object.functions.empty() && !diags_.has_errors()) {
    const bool is_empty = main_.text().empty();
    diags_
        .error({&main_, 0, 0},
               is_empty ? "the file is empty" : "the program has neither a kernel nor a function")
        .expect(".kernel name(ptr a, u32 n) ... .end");
  }
  resolve_calls();
}

void Parser::parse_line(const Line& line) {
  TokenCursor cursor(*line.file, line.tokens);
  while (cursor.peek().kind == TokenKind::kWord && cursor.peek_next().is(Punct::kColon)) {
    parse_label(cursor);
  }
  if (cursor.at_end()) {
    return;
  }
  const Token& first = cursor.peek();
  if (first.kind == TokenKind::kWord && first.text[0] == '.') {
    parse_directive(cursor);
  } else {
    parse_insn(cursor, line);
  }
}

void Parser::parse_label(TokenCursor& cursor) {
  const Token& name = cursor.next();
  cursor.next();
  const SourceRange range = cursor.range(name);
  if (state_ != State::kInside) {
    if (state_ == State::kOutside) {
      diags_.error(range, fmt::format("label '{}' outside of a kernel", name.text))
          .expect(".kernel or .func before it");
    }
    return;
  }
  if (parse_register(name.text)) {
    diags_.error(range, fmt::format("label '{}' has the name of a register", name.text))
        .advise("choose another name");
    return;
  }
  const auto pc = static_cast<uint32_t>(program_.object.code.size());
  const auto [entry, is_new] = labels_.emplace(name.text, LabelEntry{pc, range});
  if (!is_new) {
    diags_
        .error(range,
               fmt::format("label '{}' is defined twice in '{}'", name.text, function().name))
        .advise("labels are local to their kernel or function; in a macro end them with \\@")
        .note(entry->second.range, "the first definition");
    return;
  }
  function().labels.push_back({std::string(name.text), pc});
}

// ---------------------------------------------------------------- insns

bool Parser::parse_guard(TokenCursor& cursor, Insn& insn) {
  if (!cursor.accept(Punct::kAt)) {
    return true;
  }
  const bool is_negated = cursor.accept(Punct::kNot);
  const Token& token = cursor.peek();
  const std::optional<RegisterName> reg = operands_.peek_register(cursor);
  if (!reg || reg->file->kind != OperandKind::kPred || !reg->in_range()) {
    diags_.error(cursor.range(token), fmt::format("predicate expected before {}", quote(token)))
        .expect("p0..p7, as in @p0 or @!p0");
    return false;
  }
  cursor.next();
  insn.guard = {true, is_negated, static_cast<uint8_t>(reg->index)};
  return true;
}

void Parser::parse_insn(TokenCursor& cursor, const Line& line) {
  if (state_ == State::kLost) {
    return;
  }
  Insn insn;
  const Token& first = cursor.peek();
  if (!parse_guard(cursor, insn)) {
    return;
  }
  const Token& token = cursor.peek();
  if (token.kind != TokenKind::kWord) {
    if (token.kind == TokenKind::kBad) {
      const LexFaultText text = describe_fault(token);
      diags_.error(cursor.range(token), text.message).advise(text.help);
      return;
    }
    diags_.error(cursor.range(token), fmt::format("instruction expected before {}", quote(token)))
        .expect("a label, a directive or an instruction");
    return;
  }
  if (state_ == State::kOutside) {
    // A directive without its dot looks like an instruction.
    const std::string dotted = fmt::format(".{}", token.text);
    const bool is_directive = find_directive(dotted) != nullptr;
    isa::Diagnostic& error = diags_.error(
        cursor.range(token),
        is_directive ? fmt::format("'{}' without its dot", token.text)
                     : fmt::format("instruction '{}' outside of a kernel", token.text));
    if (is_directive) {
      error.replace(error.range, dotted);
    } else {
      error.expect(".kernel name(...) or .func name before it");
    }
    state_ = State::kLost;
    return;
  }
  const Mnemonic& mnemonic = mnemonics_.read(token, cursor, is_macro_);
  if (mnemonic.desc == nullptr) {
    return;
  }
  cursor.next();
  insn.desc = mnemonic.desc;
  insn.type = mnemonic.type;
  insn.type2 = mnemonic.type2;
  insn.mods = mnemonic.mods;
  if (!parse_operands(cursor, insn)) {
    return;
  }
  const SourceRange range = cursor.range_from(first);
  if (!check_insn(insn, cursor.range_from(token))) {
    return;
  }
  if (program_.object.code.size() == kMostInsns) {
    diags_.error(range, fmt::format("the program has over {} instructions", kMostInsns))
        .advise("look for a macro that doubles with every level");
    preprocessor_.give_up();
    return;
  }
  program_.object.code.push_back(insn);
  program_.object.locs.push_back(loc_ ? *loc_ : locate(line, first.offset));
  program_.insn_ranges.push_back(range);
}

// The form with that many operands; where several have (VOTE into a predicate or a register), the
// first that takes every register written.
bool Parser::choose_form(const TokenCursor& cursor, Insn& insn) {
  const unsigned form_count = insn.desc->form_count();
  if (form_count == 1) {
    return true;
  }
  std::array<bool, 2> takes_all = {true, true};
  TokenCursor scan = cursor;
  unsigned count = scan.at_end() ? 0 : 1;
  bool is_start = true;
  int depth = 0;
  while (!scan.at_end()) {
    if (is_start) {
      is_start = false;
      const std::optional<RegisterName> reg = operands_.peek_register(scan);
      for (unsigned f = 0; reg && f < form_count; ++f) {
        const OperandList& form = insn.desc->form(f);
        takes_all[f] = takes_all[f] && count <= form.size() &&
                       takes_register(form[count - 1], reg->file->kind);
      }
    }
    const Token& token = scan.next();
    depth += token.is(Punct::kOpenBracket) || token.is(Punct::kOpenParen)     ? 1
             : token.is(Punct::kCloseBracket) || token.is(Punct::kCloseParen) ? -1
                                                                              : 0;
    if (depth == 0 && token.is(Punct::kComma)) {
      ++count;
      is_start = true;
    }
  }
  std::optional<unsigned> chosen;
  for (unsigned f = 0; f < form_count; ++f) {
    const FormSize size = size_of(insn.desc->form(f));
    const bool is_better = !chosen || (takes_all[f] && !takes_all[*chosen]);
    if (count >= size.least && count <= size.most && is_better) {
      chosen = f;
    }
  }
  if (chosen) {
    insn.form = static_cast<uint8_t>(*chosen);
    return true;
  }
  diags_
      .error(cursor.range(cursor.peek()),
             fmt::format("{} with {} operand{}", insn.desc->mnemonic, count, count == 1 ? "" : "s"))
      .expect(signature(*insn.desc));
  return false;
}

bool Parser::parse_operands(TokenCursor& cursor, Insn& insn) {
  if (!choose_form(cursor, insn)) {
    return false;
  }
  const OperandList& form = insn.desc->form(insn.form);
  const FormSize size = size_of(form);
  while (!cursor.at_end() || insn.operand_count < size.least) {
    if (insn.operand_count == size.most) {
      const Token& extra = cursor.peek();
      if (extra.kind == TokenKind::kBad) {
        const LexFaultText text = describe_fault(extra);
        diags_.error(cursor.range(extra), text.message).advise(text.help);
        return false;
      }
      const Token& shown = extra.is(Punct::kComma) ? cursor.peek_next() : extra;
      diags_
          .error(cursor.range(shown),
                 size.most == 0 ? fmt::format("{} takes no operands", insn.desc->mnemonic)
                                : fmt::format("too many operands: {} takes {}{}",
                                              insn.desc->mnemonic,
                                              size.least == size.most ? "" : "at most ",
                                              size.most))
          .expect(signature(*insn.desc));
      return false;
    }
    if (insn.operand_count > 0 && !cursor.accept(Punct::kComma) && !cursor.at_end()) {
      const Token& token = cursor.peek();
      if (token.kind == TokenKind::kBad) {
        const LexFaultText text = describe_fault(token);
        diags_.error(cursor.range(token), text.message).advise(text.help);
      } else {
        diags_.error(cursor.range(token), fmt::format("',' expected before {}", quote(token)))
            .expect("operands separated by commas");
      }
      return false;
    }
    const Token& first = cursor.peek();
    const std::optional<Operand> operand = operands_.read(cursor, insn, insn.operand_count);
    if (!operand) {
      return false;
    }
    operand_ranges_[insn.operand_count] = cursor.range_from(first);
    insn.operands[insn.operand_count++] = *operand;
  }
  return true;
}

bool Parser::check_insn(const Insn& insn, SourceRange range) {
  if (const std::string_view fault = isa::validate(insn); !fault.empty()) {
    diags_.error(range, std::string(fault)).expect(signature(*insn.desc));
    return false;
  }
  if (insn.desc->has(isa::kReturn) && function().is_kernel) {
    diags_.error(range, fmt::format("{} in a kernel", insn.desc->mnemonic))
        .expect("exit; only a .func returns");
    return false;
  }
  return check_const_address(insn) && check_format(insn);
}

// An address known now must be aligned to the access, or every run would fault.
bool Parser::check_const_address(const Insn& insn) {
  if (insn.desc->scope != isa::Scope::kLane) {
    return true;
  }
  for (unsigned i = 0; i < insn.operand_count; ++i) {
    if (insn.operands[i].kind != OperandKind::kMem) {
      continue;
    }
    const unsigned size = isa::size_bytes(insn.type) * isa::vector_count(insn);
    if (size <= 1) {
      return true;
    }
    const isa::MemRef ref = insn.operands[i].mem();
    const bool is_known = ref.index_reg == isa::kNoIndexReg &&
                          (ref.base == isa::BaseKind::kAbsolute ||
                           (ref.base == isa::BaseKind::kSymbol &&
                            program_.object.symbols[ref.base_index].align_bytes >= size));
    if (is_known && ref.offset % static_cast<int>(size) != 0) {
      diags_
          .error(operand_ranges_[i],
                 fmt::format("address offset {} is not aligned to the {} bytes that {} "
                             "accesses",
                             ref.offset,
                             size,
                             insn.desc->mnemonic))
          .expect(fmt::format("a multiple of {}", size));
      return false;
    }
  }
  return true;
}

// A string operand is the format of the values behind it.
bool Parser::check_format(const Insn& insn) {
  if (insn.operand_count == 0 || insn.operands[0].kind != OperandKind::kString) {
    return true;
  }
  const std::string& format = program_.object.strings[insn.operands[0].index];
  const auto fault = isa::check_print_format(insn, format, function().params);
  if (!fault) {
    return true;
  }
  diags_.error(operand_ranges_[fault->operand], fault->message).expect(fault->expected);
  return false;
}

// ---------------------------------------------------------------- places

uint32_t Parser::file_index(const isa::SourceFile& file) {
  if (&file == last_file_) {
    return last_file_index_;
  }
  const auto found = file_indices_.find(&file);
  uint32_t index = 0;
  if (found != file_indices_.end()) {
    index = found->second;
  } else {
    std::vector<std::string>& files = program_.object.files;
    const auto same = std::find(files.begin(), files.end(), file.name());
    index = static_cast<uint32_t>(same - files.begin());
    if (same == files.end()) {
      files.push_back(file.name());
    }
    file_indices_.emplace(&file, index);
  }
  last_file_ = &file;
  last_file_index_ = index;
  return index;
}

isa::SourceLoc Parser::locate(const Line& line, uint32_t offset) {
  isa::SourceLoc loc;
  loc.file = file_index(*line.site_file);
  loc.line = line.line;
  loc.column = 1;
  if (line.site_file == line.file) {
    const std::string_view before =
        line.file->text().substr(line.line_start, offset - line.line_start);
    for (const char c : before) {
      loc.column += (static_cast<unsigned char>(c) & 0xC0U) != 0x80U ? 1 : 0;
    }
  }
  return loc;
}

// ---------------------------------------------------------------- targets

void Parser::resolve_branches() {
  for (const TargetRef& ref : program_.branches) {
    const auto label = labels_.find(ref.name);
    if (label != labels_.end()) {
      program_.object.code[ref.pc].operands[ref.operand].bits = label->second.pc;
      continue;
    }
    std::vector<std::string_view> names;
    for (const auto& entry : labels_) {
      names.push_back(entry.first);
    }
    std::sort(names.begin(), names.end());
    const auto nearest = isa::nearest_name(ref.name, names);
    const auto callee = function_names_.find(ref.name);
    isa::Diagnostic& error =
        diags_.error(ref.range,
                     fmt::format("unknown label '{}' in '{}'{}",
                                 ref.name,
                                 function().name,
                                 nearest ? fmt::format("; did you mean '{}'?", *nearest) : ""));
    error.expect("a label of the same kernel or function");
    if (callee != function_names_.end()) {
      error.advise("it is a function: CALL it");
    } else if (nearest) {
      error.replace(ref.range, std::string(*nearest));
    }
  }
  program_.branches.clear();
}

void Parser::resolve_calls() {
  for (const TargetRef& ref : program_.calls) {
    const auto found = function_names_.find(ref.name);
    if (found != function_names_.end()) {
      const isa::Function& callee = program_.object.functions[found->second];
      if (!callee.is_kernel) {
        program_.object.code[ref.pc].operands[ref.operand].bits = callee.first_pc;
        continue;
      }
      diags_.error(ref.range, fmt::format("'{}' is a kernel and cannot be called", ref.name))
          .expect("a .func")
          .note(program_.function_sources[found->second].name_range, "declared here");
      continue;
    }
    std::vector<std::string_view> names;
    for (const isa::Function& function : program_.object.functions) {
      if (!function.is_kernel) {
        names.push_back(function.name);
      }
    }
    const auto nearest = isa::nearest_name(ref.name, names);
    isa::Diagnostic& error =
        diags_.error(ref.range,
                     fmt::format("unknown function '{}'{}",
                                 ref.name,
                                 nearest ? fmt::format("; did you mean '{}'?", *nearest) : ""));
    error.expect("the name of a .func");
    if (nearest) {
      error.replace(ref.range, std::string(*nearest));
    }
  }
}

} // namespace pto::as
