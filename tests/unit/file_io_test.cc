// SPDX-License-Identifier: Apache-2.0
// Files as the programs read and write them: modes, owners, links, and what has no end.
#include "isa/file_io.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace pto::isa {
namespace {

namespace fs = std::filesystem;

/// A folder that is gone when the test is over.
class Folder {
public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "pto_file_io_XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  [[nodiscard]] std::string file(const char* name) const { return (path_ / name).string(); }
  [[nodiscard]] size_t count() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(path_), {}));
  }

private:
  fs::path path_;
};

/// Without the rights of a superuser, to whom every file is writable.
class OrdinaryUser {
public:
  OrdinaryUser() {
    if (::geteuid() == 0) {
      REQUIRE(::seteuid(kNobody) == 0);
    }
  }
  ~OrdinaryUser() {
    if (::getuid() == 0) {
      static_cast<void>(::seteuid(0) == 0);
    }
  }
  OrdinaryUser(const OrdinaryUser&) = delete;
  OrdinaryUser& operator=(const OrdinaryUser&) = delete;

private:
  static constexpr uid_t kNobody = 65534;
};

void put(const std::string& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}
std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
unsigned mode_of(const std::string& path) {
  struct stat info = {};
  REQUIRE(::stat(path.c_str(), &info) == 0);
  return info.st_mode & 07777;
}
bool write(const std::string& path, std::string_view text, std::string& error) {
  return write_file_atomically(path, std::as_bytes(std::span(text)), error);
}

TEST_CASE("a file that is replaced keeps its mode") {
  const Folder folder;
  const std::string path = folder.file("o.bin");
  for (const mode_t mode : {0600, 0640, 0755, 0666}) {
    put(path, "old");
    REQUIRE(::chmod(path.c_str(), mode) == 0);
    std::string error;
    REQUIRE(write(path, "new", error));
    CHECK(text_of(path) == "new");
    CHECK(mode_of(path) == mode);
  }
  CHECK(folder.count() == 1);
}

TEST_CASE("a new file has the mode that the user's mask leaves") {
  const Folder folder;
  const mode_t before = ::umask(027);
  std::string error;
  CHECK(write(folder.file("new"), "x", error));
  ::umask(before);
  CHECK(mode_of(folder.file("new")) == 0640);
}

TEST_CASE("a file that the user may not write stays") {
  const Folder folder;
  const std::string path = folder.file("kept");
  put(path, "old");
  REQUIRE(::chmod(path.c_str(), 0444) == 0);
  fs::permissions(fs::path(path).parent_path(), fs::perms::all);
  std::string error;
  {
    const OrdinaryUser user;
    CHECK(!write(path, "new", error));
  }
  CHECK(error == "cannot write '" + path + "': Permission denied");
  CHECK(text_of(path) == "old");
  CHECK(folder.count() == 1);
}

TEST_CASE("a link stays a link, and what it leads to is replaced") {
  const Folder folder;
  put(folder.file("target"), "old");
  fs::create_symlink("target", folder.file("link"));
  std::string error;
  REQUIRE(write(folder.file("link"), "new", error));
  CHECK(fs::is_symlink(folder.file("link")));
  CHECK(text_of(folder.file("target")) == "new");
}

TEST_CASE("what has no end is read up to the limit") {
  std::string error;
  CHECK(!read_file("/dev/zero", error, 1 << 20));
  CHECK(error == "cannot read '/dev/zero': it is no file and gave over 1048576 bytes, which may "
                 "have no end; save what it gives to a file");
  CHECK(read_file("/dev/null", error)->empty());
}

TEST_CASE("a pipe is read to its end, a file over the limit is not") {
  const Folder folder;
  const std::string pipe = folder.file("pipe");
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const std::string text(300'000, 'x');
  std::thread writer([&] { put(pipe, text); });
  std::string error;
  const auto bytes = read_file(pipe, error, text.size());
  writer.join();
  REQUIRE(bytes);
  CHECK(bytes->size() == text.size());

  put(folder.file("large"), "12345");
  CHECK(!read_file(folder.file("large"), error, 4));
  CHECK(error.find("it has 5 bytes, the largest accepted file has 4") != std::string::npos);
  CHECK(read_file(folder.file("large"), error, 5)->size() == 5);
}

TEST_CASE("a folder is no file") {
  std::string error;
  CHECK(!read_file("/", error));
  CHECK(error == "cannot read '/': it is a directory, a file was expected");
}

} // namespace
} // namespace pto::isa
