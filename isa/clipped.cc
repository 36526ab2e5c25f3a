// SPDX-License-Identifier: Apache-2.0
// Bounded text, whatever a word of the input is.
#include "isa/clipped.h"

#include <algorithm>

namespace pto::isa {

std::string clipped(std::string_view text) {
  constexpr size_t kLongestWord = 300;
  constexpr size_t kWordStart = 200;
  constexpr size_t kWordEnd = 40;
  constexpr size_t kLongest = 4000;
  const auto is_inside_letter = [&](size_t at) { // of UTF-8
    return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;
  };
  std::string out;
  size_t at = 0;
  while (at < text.size() && out.size() < kLongest) {
    const size_t end = std::min(text.find_first_of(" \n", at), text.size());
    size_t from = at;
    if (end - at > kLongestWord) {
      size_t stop = at + kWordStart;
      while (stop > at && is_inside_letter(stop)) {
        --stop;
      }
      out += text.substr(at, stop - at);
      out += "...";
      from = end - kWordEnd;
      while (from < end && is_inside_letter(from)) {
        ++from;
      }
    }
    at = std::min(end + 1, text.size());
    out += text.substr(from, at - from);
  }
  if (at < text.size()) {
    out += "...";
  }
  std::replace_if(
      out.begin(),
      out.end(),
      [](char c) { return (c >= 0 && c < 0x20 && c != '\n' && c != '\t') || c == 0x7F; },
      '?');
  return out;
}

} // namespace pto::isa
