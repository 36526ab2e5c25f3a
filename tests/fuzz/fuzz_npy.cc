// SPDX-License-Identifier: Apache-2.0
// Any bytes are a valid input to the .npy reader; what it accepts survives a round trip.
#include "simulator/npy.h"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace pto::sim;
  std::string error;
  const std::optional<NpyArray> array =
      parse_npy({reinterpret_cast<const std::byte*>(data), size}, error);
  if (!array) {
    if (error.empty()) {
      std::abort();
    }
    return 0;
  }
  const std::optional<NpyArray> again =
      parse_npy(format_npy(array->type, array->shape, array->data), error);
  if (!again || again->type != array->type || again->shape != array->shape ||
      again->data != array->data) {
    std::abort();
  }
  return 0;
}
