// SPDX-License-Identifier: Apache-2.0
// Which paths lead to one file, and what a command line would write over.
#include "isa/output_files.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace pto::isa {
namespace {

namespace fs = std::filesystem;

/// A folder with a file `a`, links to it, and the current folder as long as it lives.
class Folder {
public:
  Folder() : before_(fs::current_path()) {
    std::string name = (fs::temp_directory_path() / "pto_output_files_XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
    fs::current_path(path_);
    std::ofstream("a") << "a";
    std::ofstream("b") << "b";
    fs::create_directory("sub");
    fs::create_hard_link("a", "hard");
    fs::create_symlink("a", "soft");
    fs::create_symlink("sub", "folder");
    fs::create_symlink("nothing", "dangling");
  }
  ~Folder() {
    fs::current_path(before_);
    fs::remove_all(path_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  [[nodiscard]] std::string file(const char* name) const { return (path_ / name).string(); }

private:
  fs::path before_;
  fs::path path_;
};

TEST_CASE("one file has many names") {
  const Folder folder;
  for (const std::string& other : {std::string("a"),
                                   std::string("./a"),
                                   std::string("sub/../a"),
                                   folder.file("a"),
                                   std::string("hard"),
                                   std::string("soft")}) {
    CAPTURE(other);
    CHECK(is_same_file("a", other));
    CHECK(is_same_file(other, "a"));
    CHECK(!is_same_file("b", other));
  }
  CHECK(!is_same_file("a", "gone"));
}

TEST_CASE("so has one that is not there yet") {
  const Folder folder;
  CHECK(is_same_file("new", "./new"));
  CHECK(is_same_file("new", folder.file("new")));
  CHECK(is_same_file("sub/new", "folder/new"));
  // A link that leads nowhere is replaced when something is written.
  CHECK(!is_same_file("nothing", "dangling"));
  CHECK(!is_same_file("new", "newer"));
  CHECK(!is_same_file("new", "sub/new"));
}

TEST_CASE("devices, folders and no name at all are never the same") {
  const Folder folder;
  CHECK(!is_same_file("/dev/null", "/dev/null"));
  CHECK(!is_same_file("sub", "sub"));
  CHECK(!is_same_file("-", "-"));
  CHECK(!is_same_file("", ""));
}

TEST_CASE("a sentence names both options") {
  const Folder folder;
  const std::vector<OptionFile> inputs = {{"the input", "a"}, {"--base", "b"}, {"--none", ""}};
  CHECK(
      find_overwritten_file(inputs, std::vector<OptionFile>{{"-o", "c"}, {"--html", "d"}}).empty());
  CHECK(
      find_overwritten_file(inputs, std::vector<OptionFile>{{"-o", ""}, {"--html", "-"}}).empty());
  CHECK(find_overwritten_file(inputs, std::vector<OptionFile>{{"-o", "c"}, {"--html", "./b"}}) ==
        "--html './b' would replace --base 'b', which is the same file; give another file");
  CHECK(find_overwritten_file(inputs, std::vector<OptionFile>{{"-o", "c"}, {"--html", "./c"}}) ==
        "-o 'c' and --html './c' would write the same file; give each a file of its own");
}

} // namespace
} // namespace pto::isa
