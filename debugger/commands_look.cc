// SPDX-License-Identifier: Apache-2.0
// Looking at values, memory and code; changing them.
#include "debugger/command.h"
#include "isa/file_io.h"
#include "simulator/block.h"
#include "simulator/element.h"
#include "simulator/npy.h"
#include "simulator/number_text.h"

#include <algorithm>
#include <cctype>

namespace pto::dbg {

namespace {

/// "/16fw" in front of the rest.
std::string_view cut_format(std::string_view& text) {
  text = trim(text);
  if (!text.starts_with('/')) {
    return {};
  }
  size_t end = 1;
  while (end < text.size() && std::isspace(static_cast<unsigned char>(text[end])) == 0) {
    ++end;
  }
  const std::string_view format = text.substr(1, end - 1);
  text = trim(text.substr(end));
  return format;
}

constexpr std::string_view kFormats = "xzoutdcaf";

bool print(Debugger& debugger, std::string_view arguments) {
  const std::string_view format = cut_format(arguments);
  if (format.size() > 1 ||
      (!format.empty() && kFormats.find(format[0]) == std::string_view::npos)) {
    return debugger.fail("print knows the formats {}; '/{}' is none", "x z o u t d c a f", format);
  }
  Evaluated value;
  if (!debugger.evaluate(trim(arguments).empty() ? "$" : arguments, value)) {
    return false;
  }
  debugger.values().push_back(value);
  const char letter = format.empty() ? '\0' : format[0];
  debugger.print("${} = {}\n",
                 debugger.values().size(),
                 format_evaluated(value, letter, debugger.settings().elements));
  debugger.result().data = value_json(value, debugger.settings().elements);
  return true;
}

bool output(Debugger& debugger, std::string_view arguments) {
  const std::string_view format = cut_format(arguments);
  Evaluated value;
  if (!debugger.evaluate(arguments, value)) {
    return false;
  }
  debugger.print(
      "{}",
      format_evaluated(value, format.empty() ? '\0' : format[0], debugger.settings().elements));
  return true;
}

// ---------------------------------------------------------------- x

struct Examine {
  uint64_t count = 1;
  char format = 'x';
  unsigned size = 4;
};

bool read_examine(Debugger& debugger, std::string_view text, Examine& examine) {
  size_t at = 0;
  while (at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) != 0) {
    ++at;
  }
  if (at != 0) {
    std::string error;
    const auto count = sim::parse_count(text.substr(0, at), error);
    if (!count || *count > Evaluated::kMaxElements) {
      return debugger.fail("x shows at most {} elements", Evaluated::kMaxElements);
    }
    examine.count = *count;
  }
  for (; at < text.size(); ++at) {
    static constexpr std::string_view kSizes = "bhwg";
    const size_t size = kSizes.find(text[at]);
    if (size != std::string_view::npos) {
      examine.size = 1u << size;
    } else if (kFormats.find(text[at]) != std::string_view::npos || text[at] == 'i') {
      examine.format = text[at];
    } else {
      return debugger.fail("'{}' is no format of x; expected a count, one of x z o u t d c a f i, "
                           "and a size b h w g (1 2 4 8 bytes)",
                           text);
    }
  }
  return true;
}

bool disassemble_range(Debugger& debugger, uint32_t begin, uint32_t end) {
  debugger.print("{}", list_insns(*debugger.program(), begin, end, debugger.here()));
  return true;
}

bool examine_insns(Debugger& debugger, std::string_view arguments, uint64_t count) {
  std::string error;
  const auto pcs = find_location(*debugger.program(),
                                 trim(arguments) == "$pc" ? std::string_view() : trim(arguments),
                                 debugger.here(),
                                 error);
  if (!pcs) {
    return debugger.fail_text(error);
  }
  return disassemble_range(
      debugger,
      (*pcs)[0],
      static_cast<uint32_t>(std::min<uint64_t>((*pcs)[0] + count, UINT32_MAX)));
}

bool examine(Debugger& debugger, std::string_view arguments) {
  Session* session = debugger.need_session();
  if (session == nullptr) {
    return false;
  }
  const std::string_view format = cut_format(arguments);
  Examine wanted;
  (void)read_examine(debugger, debugger.examine_format, wanted);
  wanted.count = format.empty() ? wanted.count : 1;
  if (!read_examine(debugger, format, wanted)) {
    return false;
  }
  if (wanted.format == 'i') {
    return examine_insns(debugger, arguments, wanted.count);
  }
  debugger.examine_format = fmt::format("{}{}{}",
                                        wanted.count,
                                        wanted.format,
                                        "bhwg"[static_cast<unsigned>(__builtin_ctz(wanted.size))]);
  isa::Space space = debugger.examine_space;
  uint64_t address = debugger.examine_next;
  if (!trim(arguments).empty()) {
    Evaluated value;
    if (!debugger.evaluate(arguments, value)) {
      return false;
    }
    if (value.place.kind == Place::Kind::kMemory) {
      space = value.place.space;
      address = value.place.address;
    } else if (value.is_pointer) {
      space = value.space;
      address = value.value.bits;
    } else {
      return debugger.fail("'{}' is no address; expected such as l1:0, hbm:a+64, &a[3], buf",
                           trim(arguments));
    }
  }
  std::vector<uint8_t> bytes(wanted.count * wanted.size);
  std::string error;
  if (!session->read_memory(space, session->focus().block, address, bytes, error)) {
    return debugger.fail_text(error);
  }
  static constexpr isa::Type kInts[] = {
      isa::Type::kB8, isa::Type::kB16, isa::Type::kB32, isa::Type::kB64};
  std::vector<std::string> texts;
  for (uint64_t i = 0; i < wanted.count; ++i) {
    const Value value = Value::of_bytes(kInts[__builtin_ctz(wanted.size)],
                                        {bytes.data() + i * wanted.size, wanted.size});
    texts.push_back(format_value(value, wanted.format));
  }
  const unsigned columns = wanted.size == 1 ? 16 : wanted.size == 8 ? 4 : 8;
  size_t width = 0;
  for (const std::string& text : texts) {
    width = std::max(width, text.size());
  }
  std::vector<std::string> names;
  size_t name_width = 0;
  for (size_t i = 0; i < texts.size(); i += columns) {
    names.push_back(name_address(
        *session, session->focus().block, space, address + i * wanted.size, wanted.size));
    name_width = std::max(name_width, names.back().size());
  }
  for (size_t i = 0; i < texts.size(); ++i) {
    if (i % columns == 0) {
      debugger.print("{}{:<{}}", i == 0 ? "" : "\n", names[i / columns] + ":", name_width + 1);
    }
    debugger.print(" {:>{}}", texts[i], width);
  }
  debugger.print("{}", texts.empty() ? "" : "\n");
  debugger.result().data["values"] = texts;
  debugger.examine_space = space;
  debugger.examine_next = address + bytes.size();
  debugger.set_repeat("x");
  return true;
}

// ---------------------------------------------------------------- lanes

bool lanes(Debugger& debugger, std::string_view arguments) {
  const std::string_view format = cut_format(arguments);
  if (trim(arguments).empty()) {
    return debugger.fail("'lanes' needs an expression, such as $r1");
  }
  Evaluated value;
  if (debugger.need_block() == nullptr ||
      !debugger.evaluate(fmt::format("({})@*", trim(arguments)), value)) {
    return false;
  }
  std::vector<std::string> texts;
  for (const Value& one : value.array) {
    texts.push_back(format_value(one, format.empty() ? '\0' : format[0]));
  }
  debugger.print("{}", value_table(texts, 0, 8));
  debugger.result().data = value_json(value, UINT64_MAX);
  return true;
}

bool diff(Debugger& debugger, std::string_view arguments) {
  Session* session = debugger.need_session();
  const sim::BlockRun* run = session != nullptr ? debugger.need_block() : nullptr;
  if (run == nullptr) {
    return false;
  }
  std::vector<uint32_t> lanes;
  std::string_view rest = arguments;
  while (!trim(rest).empty()) {
    const std::string_view word = next_word(rest);
    if (word == "lane" || word == "lanes") {
      continue;
    }
    const auto lane = read_count(debugger, word, "lane");
    if (!lane) {
      return false;
    }
    if (*lane >= run->image().lanes) {
      return debugger.fail("there is no lane {}: the block has {} (0 to {})",
                           *lane,
                           run->image().lanes,
                           run->image().lanes - 1);
    }
    lanes.push_back(static_cast<uint32_t>(*lane));
  }
  if (lanes.size() != 2) {
    return debugger.fail("expected two lanes of the block, such as 'diff lane 0 lane 1'");
  }
  const sim::Program& program = session->program();
  uint64_t differences = 0;
  const auto compare = [&](RegisterRef reg) {
    std::string error;
    const auto a = session->read_register(reg, run->index(), lanes[0], 1, error);
    const auto b = session->read_register(reg, run->index(), lanes[1], 1, error);
    if (!a || !b || (*a)[0] == (*b)[0]) {
      return;
    }
    ++differences;
    Value left;
    Value right;
    left.type = register_type(program, reg, run->warp(lanes[0] / isa::kWarpLanes).pc);
    right.type = register_type(program, reg, run->warp(lanes[1] / isa::kWarpLanes).pc);
    left.bits = (*a)[0];
    right.bits = (*b)[0];
    debugger.print("{:<5} {:>20} {:>20}\n", to_string(reg), to_string(left), to_string(right));
  };
  debugger.print("{:<5} {:>20} {:>20}\n",
                 "",
                 fmt::format("lane {}", lanes[0]),
                 fmt::format("lane {}", lanes[1]));
  const uint32_t pcs[2] = {run->warp(lanes[0] / isa::kWarpLanes).pc,
                           run->warp(lanes[1] / isa::kWarpLanes).pc};
  if (pcs[0] != pcs[1]) {
    ++differences;
    debugger.print("{:<5} {:>20} {:>20}\n", "pc", pcs[0], pcs[1]);
  }
  for (const RegisterRef reg : shown_registers(program)) {
    compare(reg);
  }
  if (differences == 0) {
    debugger.print("no register differs\n");
  }
  return true;
}

// ---------------------------------------------------------------- code

bool list(Debugger& debugger, std::string_view arguments) {
  const sim::Program* program = debugger.need_program();
  if (program == nullptr) {
    return false;
  }
  const std::optional<uint32_t> here = debugger.here();
  const uint64_t count = debugger.settings().list_lines;
  std::string_view where = trim(arguments);
  if (!where.empty() || debugger.list_line == 0) {
    uint32_t pc = here.value_or(program->entry_pc());
    if (!where.empty()) {
      std::string error;
      const auto pcs = find_location(*program, where, std::optional<uint32_t>(pc), error);
      if (!pcs) {
        return debugger.fail_text(error);
      }
      pc = (*pcs)[0];
    }
    const isa::SourceLoc loc = program->loc(pc);
    if (loc.line == 0) {
      return disassemble_range(
          debugger, pc, static_cast<uint32_t>(std::min<uint64_t>(pc + count, UINT32_MAX)));
    }
    debugger.list_file = program->object().files[loc.file];
    debugger.list_line = loc.line > count / 2 ? static_cast<uint32_t>(loc.line - count / 2) : 1;
  }
  const std::vector<std::string>* lines = debugger.source_lines(debugger.list_file);
  if (lines == nullptr) {
    return debugger.fail("the source '{}' cannot be read; 'disassemble' shows the insns",
                         debugger.list_file);
  }
  const isa::SourceLoc now = here ? program->loc(*here) : isa::SourceLoc{};
  const uint64_t end = std::min<uint64_t>(debugger.list_line + count, lines->size() + 1);
  if (debugger.list_line >= end) {
    return debugger.fail("'{}' has only {} lines", debugger.list_file, lines->size());
  }
  for (uint64_t line = debugger.list_line; line < end; ++line) {
    const bool is_here =
        now.line == line && here && program->object().files[now.file] == debugger.list_file;
    debugger.print("{} {:>4}  {}\n", is_here ? "=>" : "  ", line, (*lines)[line - 1]);
  }
  debugger.list_line = static_cast<uint32_t>(end);
  debugger.set_repeat("list");
  return true;
}

bool disassemble(Debugger& debugger, std::string_view arguments) {
  const sim::Program* program = debugger.need_program();
  if (program == nullptr) {
    return false;
  }
  std::optional<uint32_t> pc = debugger.here();
  if (!trim(arguments).empty()) {
    std::string error;
    const auto pcs = find_location(*program, trim(arguments), std::nullopt, error);
    if (!pcs) {
      return debugger.fail_text(error);
    }
    pc = (*pcs)[0];
  }
  const isa::Function* function = pc ? program->object().function_at(*pc) : &program->kernel();
  function = function != nullptr ? function : &program->kernel();
  return disassemble_range(debugger, function->first_pc, function->first_pc + function->insn_count);
}

bool backtrace(Debugger& debugger, std::string_view /*arguments*/) {
  const sim::BlockRun* run = debugger.need_block();
  if (run == nullptr) {
    return false;
  }
  const Session& session = *debugger.session();
  const uint32_t warp = session.focus().warp;
  if (run->warp(warp).status == sim::WarpStatus::kDone) {
    return debugger.fail("the warp has ended");
  }
  debugger.print("{}", describe_frames(session.program(), *run, warp));
  return true;
}

// ---------------------------------------------------------------- display, set

bool display(Debugger& debugger, std::string_view arguments) {
  const std::string_view format = cut_format(arguments);
  const std::string_view text = trim(arguments);
  if (text.empty()) {
    for (const Debugger::Display& one : debugger.displays()) {
      debugger.print("{}: {}\n", one.id, one.text);
    }
    return true;
  }
  std::string error;
  if (debugger.need_program() == nullptr) {
    return false;
  }
  if (!Expression::parse(text, *debugger.program(), error)) {
    return debugger.fail_text(error);
  }
  const char letter = format.empty() ? '\0' : format[0];
  debugger.displays().push_back({debugger.next_display(), letter, std::string(text)});
  Evaluated value;
  if (debugger.session() != nullptr && debugger.session()->focused_block() != nullptr &&
      debugger.evaluate(text, value)) {
    debugger.print("{}: {} = {}\n",
                   debugger.displays().back().id,
                   text,
                   format_evaluated(value, letter, debugger.settings().elements));
  }
  return debugger.result().is_good;
}

bool undisplay(Debugger& debugger, std::string_view arguments) {
  const auto ids = read_ids(debugger, arguments, "display");
  if (!ids) {
    return false;
  }
  if (ids->empty()) {
    debugger.displays().clear();
  }
  for (const int id : *ids) {
    if (std::erase_if(debugger.displays(),
                      [&](const Debugger::Display& one) { return one.id == id; }) == 0) {
      return debugger.fail("there is no display {}; 'display' lists them", id);
    }
  }
  return true;
}

// ---------------------------------------------------------------- save

/// A whole allocation, or the elements of an expression, as raw bytes with a type.
bool bytes_to_save(Debugger& debugger,
                   std::string_view text,
                   std::vector<std::byte>& bytes,
                   sim::ElementType& type) {
  Evaluated value;
  if (!debugger.evaluate(text, value)) {
    return false;
  }
  const Session& session = *debugger.session();
  isa::Space space = value.place.space;
  uint64_t address = value.place.address;
  isa::Type element = value.place.type;
  uint64_t size =
      std::max(1u, isa::size_bytes(element)) * (value.is_array ? uint64_t{value.array.size()} : 1);
  if (value.is_pointer && value.space == isa::Space::kHbm) {
    space = value.space;
    address = value.value.bits;
    element = value.pointee == isa::Type::kNone ? isa::Type::kF32 : value.pointee;
    const sim::Allocation* held = session.machine().hbm.find(address);
    size = held != nullptr ? held->end() - address : 0;
  } else if (value.place.kind != Place::Kind::kMemory) {
    return debugger.fail(
        "'{}' names no memory; expected an array (a), elements (a[0]@8) or l1:0@64", trim(text));
  }
  type = sim::element_type(element).value_or(sim::ElementType{});
  bytes.resize(size);
  std::string error;
  return session.read_memory(space,
                             session.focus().block,
                             address,
                             {reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()},
                             error) ||
         debugger.fail_text(error);
}

bool save(Debugger& debugger, std::string_view arguments) {
  const std::optional<std::string> named = next_path(debugger, arguments, {".npy", ".bin"});
  if (!named || debugger.need_session() == nullptr) {
    return false;
  }
  const std::string& path = *named;
  if (trim(arguments).empty() || !(path.ends_with(".npy") || path.ends_with(".bin"))) {
    return debugger.fail(
        "expected a file (.npy or .bin) and what to write, such as 'save o.npy o'");
  }
  std::vector<std::byte> bytes;
  sim::ElementType type{};
  if (!bytes_to_save(debugger, arguments, bytes, type)) {
    return false;
  }
  std::string error;
  const uint64_t shape[1] = {bytes.size() / type.size_bytes};
  const bool is_written = path.ends_with(".npy")
                              ? sim::write_npy(path, sim::npy_type(type), shape, bytes, error)
                              : isa::write_file_atomically(path, bytes, error);
  if (!is_written) {
    return debugger.fail_text(error);
  }
  debugger.print("{}: {}[{}] written\n", path, sim::to_string(type), shape[0]);
  return true;
}

constexpr Command kRows[] = {
    {.name = "print",
     .aliases = "p, inspect",
     .group = CommandGroup::kLook,
     .usage = "print[/FORMAT] EXPRESSION",
     .summary = "Evaluates an expression in the focused lane.",
     .help = "$r0 $d1 $p0 %tid.x registers; n a parameters; a[5] buf[2] t[1][3] elements;\n"
             "hbm:a+64 l1:0 @l1(0x40) memory; a[0]@8 elements; $r0@* $r0@0-7 lanes of the block;\n"
             "(u32)$r1 ((f16*)a)[3] other types; $1 $ $$ earlier values; C's operators.\n"
             "Formats: x z (padded) o u t (binary) d c a f.\n",
     .example = "print/x $r0",
     .completes = Completes::kExpression,
     .run = print},
    {.name = "output",
     .group = CommandGroup::kLook,
     .usage = "output[/FORMAT] EXPRESSION",
     .summary = "As print, but the value alone, without $N and a line end.",
     .example = "output a[0]",
     .completes = Completes::kExpression,
     .run = output},
    {.name = "x",
     .aliases = "examine",
     .group = CommandGroup::kLook,
     .usage = "x[/COUNT FORMAT SIZE] [ADDRESS]",
     .summary = "Shows memory: hbm:a+64, l1:0, const:0, &a[3], buf.",
     .help =
         "Formats as print, and i for insns; sizes b h w g for 1, 2, 4, 8 bytes. l1 is on-chip\n"
         "memory as it lies there: scratchpad, then the lines of the data cache. Without an\n"
         "address it goes on behind the last one.\n",
     .example = "x/16fw l1:0",
     .completes = Completes::kExpression,
     .repeats = true,
     .run = examine},
    {.name = "lanes",
     .group = CommandGroup::kLook,
     .usage = "lanes[/FORMAT] EXPRESSION",
     .summary = "A table of an expression over all lanes of the block.",
     .example = "lanes $r1",
     .completes = Completes::kExpression,
     .run = lanes},
    {.name = "diff",
     .group = CommandGroup::kLook,
     .usage = "diff lane A lane B",
     .summary = "Registers that differ between two lanes of the block.",
     .example = "diff lane 0 lane 1",
     .run = diff},
    {.name = "list",
     .aliases = "l",
     .group = CommandGroup::kLook,
     .usage = "list [LOCATION]",
     .summary = "Shows the source around a place, then what follows.",
     .example = "list 7",
     .completes = Completes::kLocation,
     .repeats = true,
     .run = list},
    {.name = "disassemble",
     .aliases = "disas",
     .group = CommandGroup::kLook,
     .usage = "disassemble [LOCATION]",
     .summary = "Shows the insns of the function at a place.",
     .example = "disassemble",
     .completes = Completes::kLocation,
     .run = disassemble},
    {.name = "save",
     .aliases = "dump",
     .group = CommandGroup::kLook,
     .usage = "save FILE EXPRESSION",
     .summary = "Writes an array or elements to a .npy or .bin file, as they are now.",
     .help = "The file's name ends with .npy or .bin, and may have spaces or stand in quotes.\n",
     .example = "save o.npy o",
     .completes = Completes::kExpression,
     .run = save},
    {.name = "backtrace",
     .aliases = "bt, where",
     .group = CommandGroup::kLook,
     .usage = "backtrace",
     .summary = "Calls and waiting parts of the focused warp.",
     .example = "backtrace",
     .run = backtrace},
    {.name = "display",
     .group = CommandGroup::kLook,
     .usage = "display[/FORMAT] [EXPRESSION]",
     .summary = "Prints an expression at every stop; without one, lists them.",
     .example = "display $r3",
     .completes = Completes::kExpression,
     .run = display},
    {.name = "undisplay",
     .group = CommandGroup::kLook,
     .usage = "undisplay [N...]",
     .summary = "Ends displays; without numbers, all.",
     .example = "undisplay 1",
     .run = undisplay},
};

} // namespace

std::span<const Command> look_commands() {
  return kRows;
}

} // namespace pto::dbg
