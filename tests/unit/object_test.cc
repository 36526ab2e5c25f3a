// SPDX-License-Identifier: Apache-2.0
// The reader of object files on whole, truncated, altered and made-up bytes.
#include "isa/insn_desc.h"
#include "isa/object.h"
#include "isa/print.h"
#include "isa/table.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace pto::isa {
namespace {

using Bytes = std::vector<uint8_t>;

constexpr size_t kHeaderBytes = 24;

Insn make(std::string_view mnemonic,
          Type type,
          std::initializer_list<Operand> operands,
          std::array<uint8_t, kMaxModGroups> mods = {}) {
  Insn insn{.desc = find_insn(mnemonic), .type = type};
  insn.mods = mods;
  insn.operand_count = static_cast<uint8_t>(operands.size());
  std::copy(operands.begin(), operands.end(), insn.operands.begin());
  REQUIRE(validate(insn) == "");
  return insn;
}

Operand r(unsigned index) {
  return {.kind = OperandKind::kReg32, .index = index};
}
Operand label(uint64_t pc) {
  return {.kind = OperandKind::kLabel, .bits = pc};
}

// A function `twice` at 0, a kernel `work` at 2 with every section in use: parameters, labels, a
// branch that rejoins, a call, symbols, a constant, a string, a pool of immediates and addresses.
Object sample() {
  Object object;
  object.machine = "reference";
  const Operand shared{.kind = OperandKind::kSymbol, .index = 0};
  const Operand string{.kind = OperandKind::kString, .index = 0};
  const Operand e1{.kind = OperandKind::kEvent, .index = 1};
  MemRef table{.index_reg = 3};
  table.space = Space::kConst;
  table.base = BaseKind::kSymbol;
  table.base_index = 1;
  table.scale_log2 = 1;
  MemRef a{.offset = -8};
  a.base = BaseKind::kParam;
  Insn branch = make("bra", Type::kNone, {label(9)});
  branch.guard = {.present = true, .negated = true, .pred = 3};
  object.code = {
      make("add", Type::kF32, {r(1), r(1), r(1)}),
      make("ret", Type::kNone, {}),
      make("mov", Type::kU32, {r(3), {.kind = OperandKind::kSpecial, .index = 0}}),
      make("load", Type::kU16, {r(2), Operand::memory(table)}),
      make("load", Type::kF32, {r(1), Operand::memory(a)}, {2, 0}),
      make("add", Type::kU32, {r(4), r(3), Operand::immediate(0xdeadbeef)}),
      branch,
      make("call", Type::kNone, {label(0)}),
      make("mov", Type::kU32, {r(5), shared}),
      make("async_load", Type::kNone, {shared, Operand::memory(a), Operand::immediate(64), e1}),
      make("print",
           Type::kNone,
           {string, r(1), r(2), r(3), r(4), {.kind = OperandKind::kParam, .index = 1}}),
      make("exit", Type::kNone, {}),
  };
  object.functions.push_back({.name = "twice", .first_pc = 0, .insn_count = 2, .reg32_count = 1});
  Function kernel{.name = "work",
                  .is_kernel = true,
                  .first_pc = 2,
                  .insn_count = 10,
                  .reg32_count = 5,
                  .l1_bytes = 64,
                  .max_lanes = 256};
  kernel.params = {{.name = "a", .type = Type::kU64, .is_pointer = true, .element = Type::kF32},
                   {.name = "n", .type = Type::kU32}};
  kernel.labels = {{.name = "done", .pc = 9}, {.name = "also", .pc = 9}};
  kernel.reconvergence = {{.branch_pc = 6, .join_pc = 9}};
  object.functions.push_back(kernel);
  object.symbols = {{.name = "buffer",
                     .kind = SymbolKind::kTile,
                     .type = Type::kF32,
                     .rows = 4,
                     .cols = 4,
                     .size_bytes = 64,
                     .align_bytes = 32,
                     .owner = 1},
                    {.name = "table",
                     .kind = SymbolKind::kConst,
                     .type = Type::kU16,
                     .cols = 2,
                     .size_bytes = 4,
                     .align_bytes = 2,
                     .owner = 1}};
  object.const_data = {1, 0, 2, 0};
  object.strings = {"%f %d %d %u %u\n"};
  object.files = {"twice.inc", "work.pto"};
  for (uint32_t pc = 0; pc < object.code.size(); ++pc) {
    object.locs.push_back({.file = pc < 2 ? 0u : 1u, .line = pc + 1, .column = 5});
  }
  return object;
}

Bytes written(const Object& object) {
  std::string error;
  auto bytes = write_object(object, error);
  REQUIRE_MESSAGE(bytes, error);
  return *bytes;
}

void put(Bytes& bytes, size_t at, uint64_t value, unsigned size) {
  for (unsigned i = 0; i < size; ++i) {
    bytes[at + i] = static_cast<uint8_t>(value >> (8 * i));
  }
}

// Makes size and checksum of the header right, so that the reader looks inside.
void seal(Bytes& bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (size_t i = kHeaderBytes; i < bytes.size(); ++i) {
    hash = (hash ^ bytes[i]) * 0x100000001b3;
  }
  put(bytes, 12, bytes.size() - kHeaderBytes, 4);
  put(bytes, 16, hash, 8);
}

std::string error_of(const Bytes& bytes) {
  std::string error;
  const auto object = read_object(bytes, error);
  return object ? "" : error;
}

// What an error about the inside must tell: an offset, an insn, or the name of a thing.
bool says_where(std::string_view error) {
  for (const char* place : {"offset ",
                            "insn ",
                            "function '",
                            "symbol '",
                            "parameter '",
                            "label '",
                            "machine '",
                            "its pool",
                            "line entries",
                            "belongs to no function"}) {
    if (error.find(place) != std::string_view::npos) {
      return error.starts_with("corrupt object file: ");
    }
  }
  return false;
}

// Whatever the reader accepts is canonical and can be printed; whatever it refuses it explains.
// Counts the accepted ones.
struct Survey {
  unsigned accepted = 0;
  unsigned wrong = 0;

  void look_at(const Bytes& bytes, std::string_view what, size_t at) {
    std::string error;
    const auto object = read_object(bytes, error);
    bool good = true;
    if (object) {
      ++accepted;
      good = written(*object) == bytes;
      for (const Function& function : object->functions) {
        for (uint32_t pc = function.first_pc; pc < function.first_pc + function.insn_count; ++pc) {
          good = good && !print_insn(object->code[pc], *object, function).empty();
        }
      }
    } else {
      good = says_where(error);
    }
    if (!good && ++wrong < 5) {
      FAIL_CHECK(what, " at ", at, ": ", error);
    }
  }
};

TEST_CASE("an object survives its file form") {
  const Object object = sample();
  const Bytes bytes = written(object);
  std::string error;
  const auto back = read_object(bytes, error);
  REQUIRE_MESSAGE(back, error);
  CHECK(*back == object);
  CHECK(looks_like_object(bytes));
  CHECK(back->find_function("work") == &back->functions[1]);
  CHECK(back->find_function("works") == nullptr);
  CHECK(back->function_at(1) == &back->functions[0]);
  CHECK(back->function_at(2) == &back->functions[1]);
  CHECK(back->function_at(12) == nullptr);
  CHECK(back->functions[1].register_use() == 5);
}

TEST_CASE("the empty object") {
  const Bytes bytes = written({});
  std::string error;
  const auto back = read_object(bytes, error);
  REQUIRE_MESSAGE(back, error);
  CHECK(*back == Object{});
  CHECK(back->function_at(0) == nullptr);
}

TEST_CASE("what is no object file is called that") {
  const auto error = [](std::string_view text) {
    return error_of(Bytes(text.begin(), text.end()));
  };
  for (const char* text : {"",
                           "P",
                           "PTO",
                           ".pto 1\n.kernel a()\n",
                           "ptob",
                           "\x7f"
                           "ELF"}) {
    CHECK(error(text) == "not a PTO object file: it does not begin with 'PTOB'");
    CHECK(!looks_like_object(Bytes(text, text + std::string_view(text).size())));
  }
  CHECK(error("PTOB") == "truncated object file: 4 bytes, the header alone has 24");
}

TEST_CASE("truncation at every length") {
  const Bytes whole = written(sample());
  Survey survey;
  for (size_t length = 0; length < whole.size(); ++length) {
    Bytes bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
    const std::string error = error_of(bytes);
    CHECK(error != "");
    if (length >= kHeaderBytes) {
      CHECK(error == fmt::format("truncated or extended object file: {} bytes after the header but "
                                 "the header says {}",
                                 length - kHeaderBytes,
                                 whole.size() - kHeaderBytes));
      seal(bytes); // a header that agrees leaves it to the sections
      survey.look_at(bytes, "truncation", length);
    }
  }
  CHECK(survey.accepted == 0);
  CHECK(survey.wrong == 0);
}

TEST_CASE("every single bit") {
  const Bytes whole = written(sample());
  Survey survey;
  for (size_t at = 0; at < whole.size(); ++at) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      Bytes bytes = whole;
      bytes[at] ^= static_cast<uint8_t>(1u << bit);
      if (error_of(bytes).empty()) { // the checksum, or the header, tells
        FAIL_CHECK("bit ", bit, " of byte ", at, " goes unnoticed");
      }
      if (at >= kHeaderBytes) {
        seal(bytes);
        survey.look_at(bytes, "bit flip", at);
      }
    }
  }
  CHECK(survey.wrong == 0);
  CHECK(survey.accepted > 100); // other registers, lines, names: as good as the original
}

TEST_CASE("extreme numbers at every place") {
  const Bytes whole = written(sample());
  Survey survey;
  for (size_t at = kHeaderBytes; at + 4 <= whole.size(); ++at) {
    for (const uint64_t value :
         {0x0u, 0x1u, 0x7fffffffu, 0x80000000u, 0xfffffff0u, 0xfffffffeu, 0xffffffffu}) {
      Bytes bytes = whole;
      put(bytes, at, value, 4);
      seal(bytes);
      survey.look_at(bytes, "number", at);
    }
  }
  CHECK(survey.wrong == 0);
}

TEST_CASE("bytes inserted, removed and doubled") {
  const Bytes whole = written(sample());
  Survey survey;
  for (size_t at = kHeaderBytes; at < whole.size(); ++at) {
    const auto here = static_cast<std::ptrdiff_t>(at);
    Bytes more = whole;
    more.insert(more.begin() + here, whole[at]);
    seal(more);
    survey.look_at(more, "a further byte", at);
    Bytes less = whole;
    less.erase(less.begin() + here);
    seal(less);
    survey.look_at(less, "a byte less", at);
  }
  Bytes twice = whole;
  twice.insert(twice.end(), whole.begin() + kHeaderBytes, whole.end());
  seal(twice);
  survey.look_at(twice, "sections twice", 0);
  CHECK(survey.wrong == 0);
  CHECK(survey.accepted == 0);
}

TEST_CASE("versions of the format and of the instruction set") {
  Bytes bytes = written(sample());
  put(bytes, 4, 2, 4);
  CHECK(error_of(bytes) == "object format version 2 but this program reads version 1; assemble the "
                           "source again or use a matching program");
  put(bytes, 4, 1, 4);
  put(bytes, 8, 7, 4);
  CHECK(error_of(bytes) == "made for version 7 of the instruction set but this program knows "
                           "version 1; assemble the source again");
  put(bytes, 8, 1, 4);
  CHECK(error_of(bytes) == "");
  bytes.push_back(0);
  CHECK(error_of(bytes).starts_with("truncated or extended object file"));
  bytes.pop_back();
  bytes.back() ^= 1;
  CHECK(error_of(bytes) == "corrupt object file: its checksum does not match its contents");
}

// The sample, changed, as the reader finds it.
std::string error_after(const std::function<void(Object&)>& change) {
  Object object = sample();
  change(object);
  const Bytes bytes = written(object);
  const std::string error = error_of(bytes);
  CHECK((error.empty() || says_where(error)));
  return error;
}

TEST_CASE("contradictions inside an object are found and named") {
  using std::string;
  const auto found = [](const string& error, std::string_view part) {
    const bool holds = error.find(part) != string::npos;
    CHECK_MESSAGE(holds, "'", error, "' lacks '", string(part), "'");
  };
  found(error_after([](Object& o) { o.functions[0].insn_count = 3; }), "function 'work'");
  found(error_after([](Object& o) { o.functions[1].insn_count = 9; }), "belongs to no function");
  found(error_after([](Object& o) { o.functions[1].insn_count = 11; }), "function 'work'");
  found(error_after([](Object& o) { o.functions[1].reg32_count = 128; }), "function 'work'");
  found(error_after([](Object& o) { o.functions[1].l1_bytes = 63; }), "reaches symbols up to 64");
  found(error_after([](Object& o) { o.functions[1].name = "twice"; }), "function 'twice'");
  found(error_after([](Object& o) { o.functions[1].name = "a b"; }), "function 'a b'");
  found(error_after([](Object& o) { o.functions[1].name = ""; }), "function ''");
  found(error_after([](Object& o) { o.functions[1].params[1].name = "a"; }), "parameter 'a'");
  found(error_after([](Object& o) {
          o.functions[1].params[1].type = Type::kU64;
          o.strings[0] = "%f %d %d %u %f";
        }),
        "insn 10: print: '%f' shows an f32, but value 5 is a 64-bit parameter");
  found(error_after([](Object& o) { o.functions[1].params[0].is_pointer = false; }), "'work'");
  found(error_after([](Object& o) { o.functions[0].params = o.functions[1].params; }), "'twice'");
  found(error_after([](Object& o) { o.functions[1].labels[0].pc = 1; }), "a label outside");
  found(error_after([](Object& o) { o.functions[1].labels[1].pc = 8; }), "out of order");
  found(error_after([](Object& o) { o.functions[1].labels[1].name = "done"; }), "label 'done'");
  found(error_after([](Object& o) { o.functions[1].reconvergence[0].branch_pc = 5; }),
        "reconvergence");
  found(error_after([](Object& o) { o.functions[1].reconvergence[0].join_pc = 12; }),
        "reconvergence");
  found(error_after([](Object& o) { o.symbols[0].size_bytes = 60; }), "symbol 'buffer'");
  found(error_after([](Object& o) { o.symbols[0].offset = 16; }), "symbol 'buffer'");
  found(error_after([](Object& o) { o.symbols[0].align_bytes = 0; }), "symbol 'buffer'");
  found(error_after([](Object& o) { o.symbols[0].align_bytes = 24; }), "symbol 'buffer'");
  found(error_after([](Object& o) { o.symbols[0].rows = 0; }), "symbol 'buffer'");
  found(error_after([](Object& o) { o.symbols[0].owner = 2; }), "symbol 'buffer'");
  found(error_after([](Object& o) { o.symbols[0].owner = 0; }), "of another function");
  found(error_after([](Object& o) { o.symbols[0].name = "r\n"; }), "symbol 'r.'");
  found(error_after([](Object& o) { o.symbols[1].offset = 2; }), "symbol 'table'");
  found(error_after([](Object& o) { o.const_data.pop_back(); }), "symbol 'table'");
  found(error_after([](Object& o) { std::swap(o.symbols[0].kind, o.symbols[1].kind); }), "symbol");
  found(error_after([](Object& o) { o.strings.clear(); }), "insn 10: print: a string");
  found(error_after([](Object& o) { o.strings[0] = "%d %d %d %d"; }), "the format shows 4 values");
  found(error_after([](Object& o) { o.strings[0] = "%q"; }), "unknown conversion '%q'");
  found(error_after([](Object& o) { o.files.pop_back(); }), "insn 2: a source file");
  found(error_after([](Object& o) { o.machine = "a/b"; }), "machine 'a/b'");
  found(error_after([](Object& o) { o.code[6].operands[0].bits = 1; }), "a branch out of");
  found(error_after([](Object& o) { o.code[6].operands[0].bits = 12; }), "outside the code");
  found(error_after([](Object& o) { o.code[7].operands[0].bits = 1; }), "a call of something");
  found(error_after([](Object& o) { o.code[7].operands[0].bits = 2; }), "a call of something");
  found(error_after([](Object& o) { o.code[0].operands[1] = {.kind = OperandKind::kParam}; }),
        "insn 0: add: a parameter");
  found(error_after([](Object& o) { o.code[11] = o.code[0]; }), "control runs past its last insn");
  found(error_after([](Object& o) { o.code[11].guard = {.present = true}; }), "control runs past");
  found(error_after([](Object& o) { o.code[11] = o.code[1]; }), "ret in a kernel");
  found(error_after([](Object& o) { o.code[1] = o.code[0]; }), "function 'twice': control runs");
  // What .maxlanes cannot say could not be assembled again.
  found(error_after([](Object& o) { o.functions[1].max_lanes = 2049; }), "'work': more lanes than");
  found(error_after([](Object& o) { o.functions[1].max_lanes = UINT32_MAX; }),
        "'work': more lanes");
  found(error_after([](Object& o) { o.functions[0].max_lanes = 7; }), "'twice': more lanes than");
}

// Each names one thing that declarations and code determine, so a file that states something else
// is none that the assembler has written.
TEST_CASE("what the code determines is stated as it is") {
  using std::string;
  const auto refused = [](const std::function<void(Object&)>& change, std::string_view error) {
    CHECK(error_after(change) == "corrupt object file: " + string(error));
  };
  refused([](Object& o) { o.functions[1].reg32_count = 4; },
          "function 'work': 4 r and 0 d registers, but its code uses 5 and 0");
  refused([](Object& o) { o.functions[1].reg32_count = 6; },
          "function 'work': 6 r and 0 d registers, but its code uses 5 and 0");
  refused([](Object& o) { o.functions[0].reg64_count = 1; },
          "function 'twice': 1 r and 1 d registers, but its code uses 1 and 0");
  refused([](Object& o) { o.functions[1].l1_bytes = 96; },
          "function 'work': 96 bytes of scratchpad, but its symbols take 64");
  refused([](Object& o) { o.functions[0].l1_bytes = 1197820945; },
          "function 'twice': 1197820945 bytes of scratchpad, but its symbols take 0");
  refused(
      [](Object& o) {
        o.symbols[0].offset = 32;
        o.functions[1].l1_bytes = 96;
      },
      "symbol 'buffer' at offset 32 of the scratchpad, where 0 is next");
  refused([](Object& o) { o.symbols[1].owner = kFileScope; },
          "symbol 'table' stands behind those of a later function");
  refused([](Object& o) { o.const_data.push_back(0); },
          "const data ends at offset 5, but its last symbol at offset 4");
  refused(
      [](Object& o) {
        o.const_data.insert(o.const_data.begin(), {0, 0});
        o.symbols[1].offset = 2;
      },
      "symbol 'table' at offset 2 of const, where 0 is next");
  refused([](Object& o) { o.functions[1].reconvergence.clear(); },
          "function 'work': reconvergence points that are not those of its branches");
  refused([](Object& o) { o.functions[1].reconvergence[0].join_pc = kNoReconvergence; },
          "function 'work': reconvergence points that are not those of its branches");
  refused([](Object& o) { o.functions[1].reconvergence[0].join_pc = 10; },
          "function 'work': reconvergence points that are not those of its branches");
  refused([](Object& o) { o.locs[3] = {.file = 0, .line = 0, .column = 5}; },
          "insn 3: a source position that is neither whole nor unknown");
  refused([](Object& o) { o.locs[3].column = 0; },
          "insn 3: a source position that is neither whole nor unknown");
  refused([](Object& o) { std::swap(o.locs[0].file, o.locs[2].file); },
          "insn 0: source file 1, where 0 is next");
  refused([](Object& o) { o.files.push_back("more.inc"); },
          "insn by insn 2 source files and 1 strings are named, but 3 and 1 listed");
  refused([](Object& o) { o.files[1] = o.files[0]; },
          "insn by insn, source file 1 is listed twice");
  refused([](Object& o) { o.strings.push_back(string("\0\n\xff", 3)); },
          "insn by insn 2 source files and 1 strings are named, but 2 and 2 listed");
  refused(
      [](Object& o) {
        o.strings.insert(o.strings.begin(), "x");
        o.code[10].operands[0].index = 1;
      },
      "insn 10: string 1, where 0 is next");
}

TEST_CASE("harmless variations are accepted") {
  CHECK(error_after([](Object& o) { o.machine.clear(); }) == "");
  CHECK(error_after([](Object& o) { o.functions[1].labels.clear(); }) == "");
  CHECK(error_after([](Object& o) { o.symbols[0].owner = kFileScope; }) == "");
  CHECK(error_after([](Object& o) { o.locs[3] = {}; }) == "");
  CHECK(error_after([](Object& o) { o.functions[1].max_lanes = 2048; }) == "");
  CHECK(error_after([](Object& o) { // an endless loop needs no exit, code after it no end
          o.code[10] = make("bra", Type::kNone, {label(2)});
          o.code[11] = o.code[0];
          o.strings.clear();
        }) == "");
}

TEST_CASE("pools that the writer would not have made are refused") {
  // Swap the first two pool entries: every reference is then to the other value, or out of order.
  Bytes bytes = written(sample());
  const std::string_view tag = "POOL";
  const auto pool = std::search(bytes.begin(), bytes.end(), tag.begin(), tag.end());
  REQUIRE(pool != bytes.end());
  std::swap_ranges(pool + 12, pool + 20, pool + 20);
  seal(bytes);
  CHECK(says_where(error_of(bytes)));
}

} // namespace
} // namespace pto::isa
