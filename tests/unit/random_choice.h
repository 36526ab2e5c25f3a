// SPDX-License-Identifier: Apache-2.0
// Numbers and words at random, the same in every run, for tests that make kernels or inputs.
#pragma once

#include <initializer_list>
#include <random>
#include <string>

namespace pto {

class RandomChoice {
public:
  explicit RandomChoice(std::mt19937& random) : random_(random) {}

  unsigned below(unsigned end) { return static_cast<unsigned>(random_() % end); }
  /// Both ends are possible.
  int between(int low, int high) {
    return low + static_cast<int>(below(static_cast<unsigned>(high - low + 1)));
  }
  std::string pick(std::initializer_list<const char*> words) {
    return *(words.begin() + below(static_cast<unsigned>(words.size())));
  }

private:
  std::mt19937& random_;
};

} // namespace pto
