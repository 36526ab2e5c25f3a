// SPDX-License-Identifier: Apache-2.0
// The assembler as a library: every row's example, layout, register use, round trips.
#include "assembler/assemble.h"
#include "assembler/disassemble.h"
#include "isa/table.h"

#include <doctest/doctest.h>

using namespace pto;

namespace {

std::optional<isa::Object> assemble(const std::string& text, std::string* messages = nullptr) {
  isa::Diagnostics diags({.no_warnings = true});
  auto object = as::assemble_text("t.pto", text, {}, diags);
  if (messages != nullptr) {
    *messages = isa::render(diags);
  }
  return object;
}

isa::Object must_assemble(const std::string& text) {
  std::string messages;
  auto object = assemble(text, &messages);
  INFO(text);
  INFO(messages);
  REQUIRE(object);
  return *object;
}

std::vector<uint8_t> bytes_of(const isa::Object& object) {
  std::string error;
  auto bytes = isa::write_object(object, error);
  REQUIRE_MESSAGE(bytes, error);
  return *bytes;
}

} // namespace

TEST_CASE("every row's example assembles and survives text -> object -> text -> object") {
  for (const isa::InsnDesc* row : isa::all_insns()) {
    const bool is_return = row->has(isa::kReturn);
    const std::string body = "    " + std::string(row->example) + "\n";
    const std::string text = ".kernel k(ptr a, u32 n)\n" + (is_return ? std::string() : body) +
                             "    exit\n.end\n.func helper\n" + (is_return ? body : "    ret\n") +
                             ".end\n";
    const isa::Object object = must_assemble(text);
    const isa::Object again = must_assemble(as::disassemble(object));
    CHECK(bytes_of(again) == bytes_of(object));
    CHECK(as::disassemble(again) == as::disassemble(object));
  }
}

TEST_CASE("scratchpad of the file comes first where a kernel can reach a use of it") {
  const isa::Object object =
      must_assemble(".func f\n.shared s, u8[40]\n mov.u32 r0, s\n ret\n.end\n"
                    ".kernel uses()\n.tile t, f32[2][4]\n mov.u32 r1, t\n"
                    " call f\n exit\n.end\n"
                    ".kernel lone()\n.align 64\n.shared u, u8[4]\n"
                    " mov.u32 r1, u\n exit\n.end\n");
  REQUIRE(object.symbols.size() == 3);
  CHECK(object.symbols[0].name == "s");
  CHECK(object.symbols[0].owner == isa::kFileScope);
  CHECK(object.symbols[1].offset == 64); // 40 rounded up to 32
  CHECK(object.symbols[2].offset == 0);
  CHECK(object.find_function("uses")->l1_bytes == 96);
  CHECK(object.find_function("lone")->l1_bytes == 4);
}

TEST_CASE("register use counts d registers twice and follows calls") {
  const isa::Object object = must_assemble(".func f\n mov.u64 d5, 1\n mov.u32 r9, 1\n ret\n.end\n"
                                           ".kernel k(ptr a)\n load.f32.x4 r0, hbm[d1 + r20*4]\n"
                                           " call f\n exit\n.end\n");
  const isa::Function& kernel = *object.find_function("k");
  CHECK(kernel.reg32_count == 6); // r0..r3 r20 r9
  CHECK(kernel.reg64_count == 2); // d1 d5
  CHECK(kernel.register_use() == 10);
}

TEST_CASE("constants of the const space keep their bits") {
  const isa::Object object =
      must_assemble(".const b, u8 {1}\n.const f, f32 {1.0, -0.0, 0f7FC12345}\n"
                    ".const h, f16 {0.1, 0h3C00}\n.kernel k()\n exit\n.end\n");
  const std::vector<uint8_t> expected = {1, 0,    0,    0,    0,    0,    0x80, 0x3F, 0,    0,
                                         0, 0x80, 0x45, 0x23, 0xC1, 0x7F, 0x66, 0x2E, 0x00, 0x3C};
  CHECK(object.const_data == expected);
}

TEST_CASE("float literals are rounded once to their type") {
  const auto bits = [](const std::string& operands) {
    return must_assemble(".kernel k()\n mov." + operands + "\n exit\n.end\n")
        .code[0]
        .operands[1]
        .bits;
  };
  CHECK(bits("f32 r0, 0.1") == 0x3DCCCCCD);
  CHECK(bits("f32 r0, -0.1") == 0xBDCCCCCD);
  CHECK(bits("f16 r0, 0.1") == 0x2E66);
  CHECK(bits("bf16 r0, 0.1") == 0x3DCD);
  CHECK(bits("f16 r0, 65519.99") == 0x7BFF);
  CHECK(bits("f32 r0, 1e-46") == 0);
  // Just above a tie of f32 that double cannot tell from it.
  CHECK(bits("f32 r0, 1.00000005960464477539062500000001") == 0x3F800001);
  CHECK(bits("s32 r0, -1") == 0xFFFFFFFF);
  CHECK(bits("u64 d0, -1") == ~uint64_t{0});
}

TEST_CASE("includes are read through the caller's reader") {
  as::AssembleOptions options;
  options.preprocess.include_dirs = {"lib"};
  options.preprocess.read_file = [](const std::string& path, std::string& error) {
    error = "no " + path;
    return path == "lib/x.inc" ? std::optional<std::string>(".equ kX, 7\n") : std::nullopt;
  };
  isa::Diagnostics diags;
  const auto object = as::assemble_text(
      "dir/t.pto", ".include \"x.inc\"\n.kernel k()\n nop kX\n exit\n.end\n", options, diags);
  REQUIRE(object);
  CHECK(object->code[0].operands[0].bits == 7);
}

TEST_CASE("any text ends in an object or in a message") {
  for (const char* text : {"",
                           "\n",
                           ":",
                           "@",
                           ".",
                           "a:",
                           ".kernel",
                           ".kernel k(",
                           ".macro",
                           ".if",
                           "\"",
                           "/*",
                           ".equ",
                           ".const x, f32 {",
                           "%",
                           "\\",
                           ".end",
                           "\xFF"}) {
    std::string messages;
    CHECK(!assemble(text, &messages));
    CHECK(!messages.empty());
  }
}
