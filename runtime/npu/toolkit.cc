// SPDX-License-Identifier: Apache-2.0
#include "runtime/npu/toolkit.h"

#include "isa/file_io.h"
#include "isa/hash.h"
#include "runtime/errors.h"
#include "runtime/npu/ascendc_emitter.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ; // NOLINT: POSIX leaves its declaration to the program

namespace pto::rt {

namespace {

namespace fs = std::filesystem;

std::string first_of(const std::string& root, std::span<const std::string_view> names) {
  for (const std::string_view name : names) {
    std::error_code ignored;
    fs::path path = fs::path(root) / name;
    if (fs::exists(path, ignored)) {
      return path.string();
    }
  }
  return "";
}

constexpr std::string_view kCompilers[] = {"bin/bisheng",
                                           "compiler/ccec_compiler/bin/bisheng",
                                           "ccec_compiler/bin/bisheng",
                                           "tools/bisheng_compiler/bin/bisheng"};
constexpr std::string_view kLibraries[] = {"lib64/libascendcl.so",
                                           "runtime/lib64/libascendcl.so",
                                           "acllib/lib64/libascendcl.so",
                                           "aarch64-linux/lib64/libascendcl.so",
                                           "x86_64-linux/lib64/libascendcl.so"};

std::string read_all(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_all(const std::string& path, std::string_view text) {
  std::string error;
  if (!isa::write_file_atomically(path, std::as_bytes(std::span<const char>(text)), error)) {
    throw DeviceError(error);
  }
}

/// Exit status, or -1 where the program could not be started. Output of both streams goes to `log`.
int run(const std::vector<std::string>& command, const std::string& log) {
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& word : command) {
    arguments.push_back(const_cast<char*>(word.c_str())); // exec changes nothing
  }
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child = 0;
  const int failed =
      posix_spawn(&child, command[0].c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) {
    write_all(log, std::strerror(failed));
    return -1;
  }
  int status = 0;
  while (waitpid(child, &status, 0) == -1 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

} // namespace

ToolkitSearch find_toolkit() {
  struct Place {
    std::string root;
    std::string found_by;
  };
  std::vector<Place> places;
  ToolkitSearch search;
  for (const char* variable : {"ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"}) {
    const char* value = std::getenv(variable);
    if (value != nullptr && *value != '\0') {
      places.push_back({value, fmt::format("{}={}", variable, value)});
    } else {
      search.tried.push_back(fmt::format("{}: not set", variable));
    }
  }
  for (const char* root : {"/usr/local/Ascend/cann",
                           "/usr/local/Ascend/ascend-toolkit/latest",
                           "/usr/local/Ascend/latest",
                           "/opt/Ascend/cann"}) {
    places.push_back({root, root});
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0') {
    for (const char* below : {"Ascend/cann", "Ascend/ascend-toolkit/latest"}) {
      const std::string root = fmt::format("{}/{}", home, below);
      places.push_back({root, root});
    }
  }
  for (const Place& place : places) {
    std::error_code ignored;
    if (!fs::is_directory(place.root, ignored)) {
      search.tried.push_back(fmt::format("{}: no such folder", place.found_by));
      continue;
    }
    const std::string compiler = first_of(place.root, kCompilers);
    const std::string library = first_of(place.root, kLibraries);
    if (compiler.empty() || library.empty()) {
      search.tried.push_back(fmt::format(
          "{}: {}",
          place.found_by,
          compiler.empty() ? fmt::format("no compiler ({})", fmt::join(kCompilers, ", "))
                           : fmt::format("no libascendcl.so ({})", fmt::join(kLibraries, ", "))));
      continue;
    }
    search.tried.push_back(
        fmt::format("{}: compiler {}, library {}", place.found_by, compiler, library));
    search.toolkit = Toolkit{
        .root = place.root, .compiler = compiler, .library = library, .found_by = place.found_by};
    return search;
  }
  return search;
}

NpuCompiler::NpuCompiler(Toolkit toolkit) : toolkit_(std::move(toolkit)) {
  const char* cache = std::getenv("PTO_NPU_CACHE");
  if (cache != nullptr && *cache != '\0') {
    folder_ = cache;
    is_temporary_ = false;
    std::error_code failed;
    fs::create_directories(folder_, failed);
    if (failed) {
      throw DeviceError(fmt::format("PTO_NPU_CACHE={}: {}", folder_, failed.message()));
    }
  } else {
    std::string name = (fs::temp_directory_path() / "pto-npu-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) {
      throw DeviceError(
          fmt::format("no folder for compiled kernels at {}: {}", name, std::strerror(errno)));
    }
    folder_ = name;
  }
  for (const auto& [name, text] : ascendc_headers()) {
    write_all(fmt::format("{}/{}.h", folder_, name), text);
  }
}

NpuCompiler::~NpuCompiler() {
  if (is_temporary_) {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
}

std::string NpuCompiler::compile(const std::string& text, bool is_hybrid) {
  uint64_t key = isa::hash_of(text, isa::hash_of(toolkit_.compiler));
  for (const auto& [name, header] : ascendc_headers()) {
    key = isa::hash_of(header, key);
  }
  const std::string stem = fmt::format("{}/k{:016x}", folder_, key);
  const std::string library = stem + ".so";
  std::error_code ignored;
  if (fs::exists(library, ignored)) {
    return library;
  }
  const std::string source = stem + ".asc";
  const std::string made = fmt::format("{}.{}.so", stem, getpid()); // renamed when it is complete
  const std::string log = fmt::format("{}.{}.log", stem, getpid());
  write_all(source, text);
  std::vector<std::string> command = {
      toolkit_.compiler, "-shared", source, "-o", made, "-fPIC", "--npu-arch=dav-3510"};
  if (!is_hybrid) {
    command.emplace_back("--enable-simt");
  }
  for (const std::string& folder : {folder_, toolkit_.root + "/include"}) {
    command.emplace_back("-I");
    command.push_back(folder);
  }
  const int status = run(command, log);
  const std::string said = read_all(log);
  fs::remove(log, ignored);
  if (status != 0) {
    fs::remove(made, ignored);
    throw DeviceError(fmt::format("the toolkit's compiler ended with status {}:\n{}\n{}",
                                  status,
                                  fmt::join(command, " "),
                                  said));
  }
  std::error_code failed;
  fs::rename(made, library, failed);
  if (failed) {
    throw DeviceError(fmt::format("{}: {}", library, failed.message()));
  }
  return library;
}

} // namespace pto::rt
