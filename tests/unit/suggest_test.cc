// SPDX-License-Identifier: Apache-2.0
// Edit distance and "did you mean".
#include "isa/suggest.h"

#include <doctest/doctest.h>

using namespace pto::isa;

TEST_CASE("edit distance counts inserts, deletes, replacements and swaps") {
  CHECK(edit_distance("load", "load", 5) == 0);
  CHECK(edit_distance("LOAD", "load", 5) == 0);
  CHECK(edit_distance("lod", "load", 5) == 1);
  CHECK(edit_distance("laod", "load", 5) == 1);
  CHECK(edit_distance("", "abc", 5) == 3);
  CHECK(edit_distance("kitten", "sitting", 5) == 3);
  CHECK(edit_distance("ca", "abc", 5) == 3); // optimal string alignment, not unrestricted
}

TEST_CASE("edit distance stops past the limit") {
  CHECK(edit_distance("kitten", "sitting", 2) == 3);
  CHECK(edit_distance("a", "abcdefgh", 2) == 3);
  CHECK(edit_distance(std::string(100, 'a'), std::string(100, 'a'), 2) == 3);
}

TEST_CASE("the nearest name is found and unlikely ones are not offered") {
  const std::vector<std::string_view> names = {"add", "load", "store", "barrier", "barrier_block"};
  CHECK(nearest_name("lod", names) == "load");
  CHECK(nearest_name("STOER", names) == "store");
  CHECK(nearest_name("barier", names) == "barrier");
  CHECK(nearest_name("zzzz", names) == std::nullopt);
  CHECK(nearest_name("x", names) == std::nullopt);
  CHECK(nearest_name("", names) == std::nullopt);
  CHECK(did_you_mean("lod", names) == "; did you mean 'load'?");
  CHECK(did_you_mean("quux", names).empty());
  CHECK(nearest_name("inptu", std::vector<std::string>{"output", "input"}) == "input");
}
