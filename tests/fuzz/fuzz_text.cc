// SPDX-License-Identifier: Apache-2.0
// Any bytes are a valid input to the assembler: an object or an error comes out, and an object's
// disassembly assembles to the same bytes.
#include "assembler/assemble.h"
#include "assembler/disassemble.h"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

std::optional<std::vector<uint8_t>> bytes_of_text(std::string text, pto::isa::Diagnostics& diags) {
  pto::as::AssembleOptions options;
  // No reading of files by the fuzzer's invention, no macros that expand for minutes.
  options.preprocess.read_file = [](const std::string&, std::string& error) {
    error = "there are no files here";
    return std::optional<std::string>();
  };
  options.preprocess.max_bytes = 1 << 18;
  const auto object = pto::as::assemble_text("input.pto", std::move(text), options, diags);
  if (!object) {
    return std::nullopt;
  }
  std::string error;
  auto bytes = pto::isa::write_object(*object, error);
  if (!bytes || pto::isa::read_object(*bytes, error) != object) {
    std::abort();
  }
  return bytes;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace pto;
  isa::Diagnostics diags;
  const auto bytes = bytes_of_text({reinterpret_cast<const char*>(data), size}, diags);
  static_cast<void>(isa::render(diags));
  if (bytes.has_value() == diags.has_errors()) {
    std::abort();
  }
  if (bytes) {
    std::string error;
    isa::Diagnostics again;
    if (bytes_of_text(as::disassemble(*isa::read_object(*bytes, error)), again) != bytes) {
      std::abort();
    }
  }
  return 0;
}
