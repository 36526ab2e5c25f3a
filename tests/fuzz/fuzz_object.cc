// SPDX-License-Identifier: Apache-2.0
// Any bytes are a valid input to the object reader. What it accepts is consistent enough to be
// printed in every form and survives writing and reading.
#include "assembler/disassemble.h"
#include "isa/object.h"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace pto;
  std::string error;
  const std::optional<isa::Object> object = isa::read_object({data, size}, error);
  if (!object) {
    if (error.empty()) {
      std::abort();
    }
    return 0;
  }
  static_cast<void>(as::disassemble(*object));
  static_cast<void>(as::list_program(*object, {}));
  static_cast<void>(as::print_cfg(*object));
  static_cast<void>(as::object_to_json(*object));
  const std::optional<std::vector<uint8_t>> bytes = isa::write_object(*object, error);
  if (!bytes || isa::read_object(*bytes, error) != object) {
    std::abort();
  }
  return 0;
}
