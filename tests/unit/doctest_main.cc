// SPDX-License-Identifier: Apache-2.0
// The one main() of every unit test executable.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
