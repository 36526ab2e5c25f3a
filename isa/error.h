// SPDX-License-Identifier: Apache-2.0
// Misuse of the library (typed exceptions) and broken invariants of our own (PTO_CHECK).
#pragma once

#include <stdexcept>
#include <string>

namespace pto {

/// Base of every exception that the libraries throw: the caller used the API wrongly.
class Error : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// A broken invariant: our bug, not the user's. Programs report it and exit with status 3.
class InternalError : public std::logic_error {
public:
  using std::logic_error::logic_error;
};

[[noreturn]] void fail_check(const char* expression, const char* file, int line);

} // namespace pto

/// Stays on in release builds.
#define PTO_CHECK(expression)                                                                      \
  ((expression) ? static_cast<void>(0) : ::pto::fail_check(#expression, __FILE__, __LINE__))
