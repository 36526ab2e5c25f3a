// SPDX-License-Identifier: Apache-2.0
// Any text is a valid `--arg`: it binds, or there is a message. Lines are separate arguments.
#include "simulator/argument.h"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace pto;
  static const isa::Function kernel = [] {
    isa::Function k;
    k.name = "k";
    k.is_kernel = true;
    k.params = {{"a", isa::Type::kU64, true, isa::Type::kNone},
                {"h", isa::Type::kU64, true, isa::Type::kF16},
                {"n", isa::Type::kU32, false, isa::Type::kNone},
                {"x", isa::Type::kF32, false, isa::Type::kNone},
                {"s", isa::Type::kS8, false, isa::Type::kNone}};
    return k;
  }();
  std::vector<std::string> texts(1);
  for (size_t i = 0; i < size; ++i) {
    if (data[i] == '\n') {
      texts.emplace_back();
    } else if (data[i] == '@') {
      return 0; // no reading of files by the fuzzer's invention
    } else {
      texts.back() += static_cast<char>(data[i]);
    }
  }
  isa::Diagnostics diags;
  const sim::BoundArguments bound = sim::bind_arguments(texts, kernel, diags, {1 << 16});
  const bool is_good = bound.status == sim::ArgumentStatus::kGood;
  if (is_good == diags.has_errors() || (is_good && bound.arguments.size() != 5)) {
    std::abort();
  }
  static_cast<void>(isa::render(diags));
  return 0;
}
