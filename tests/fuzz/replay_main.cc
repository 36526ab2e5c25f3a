// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target over given files and folders, for builds without libFuzzer.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

std::vector<std::filesystem::path> files_of(int argc, char** argv) {
  std::vector<std::filesystem::path> files;
  for (int i = 1; i < argc; ++i) {
    if (!std::filesystem::is_directory(argv[i])) {
      files.emplace_back(argv[i]);
      continue;
    }
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[i])) {
      if (entry.is_regular_file()) {
        files.push_back(entry.path());
      }
    }
  }
  return files;
}

} // namespace

int main(int argc, char** argv) {
  const std::vector<std::filesystem::path> files = files_of(argc, argv);
  if (files.empty()) {
    std::fprintf(stderr, "replay: no input files given or found; expected a corpus folder\n");
    return 2;
  }
  for (const std::filesystem::path& file : files) {
    std::ifstream in(file, std::ios::binary);
    if (!in) {
      std::fprintf(stderr, "replay: cannot open %s\n", file.c_str());
      return 1;
    }
    // A vector of exactly this size, so that the sanitizer sees a read past the end.
    const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
    // The last name printed is the culprit when the target stops the process.
    std::printf("%s (%zu bytes)\n", file.c_str(), bytes.size());
    std::fflush(stdout);
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  }
  std::printf("replayed %zu inputs\n", files.size());
  return 0;
}
