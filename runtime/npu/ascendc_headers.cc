// SPDX-License-Identifier: Apache-2.0
// The device headers, kept in the library so that a program finds them wherever it is installed.
#include "runtime/npu/ascendc_emitter.h"

#include <array>

namespace pto::rt {

namespace detail {
std::span<const std::pair<std::string_view, std::string_view>> embedded_headers();
}

std::span<const std::pair<std::string_view, std::string_view>> ascendc_headers() {
  static const auto kHeaders = [] {
    std::array<std::pair<std::string_view, std::string_view>, 2> headers;
    for (const auto& [stem, text] : detail::embedded_headers()) {
      const bool is_board = stem == "pto_board";
      headers[is_board ? 1 : 0] = {is_board ? "pto_board.h" : "pto_simt.h", text};
    }
    return headers;
  }();
  return kHeaders;
}

} // namespace pto::rt
