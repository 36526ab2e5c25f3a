// SPDX-License-Identifier: Apache-2.0
// Identity of files by device and inode, of those that do not exist yet by their resolved path.
#include "isa/output_files.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

namespace pto::isa {
namespace {

namespace fs = std::filesystem;

bool names_file(const std::string& path) {
  return !path.empty() && path != "-";
}

} // namespace

bool is_same_file(const std::string& first, const std::string& second) {
  if (!names_file(first) || !names_file(second)) {
    return false;
  }
  std::error_code code;
  const fs::file_status first_status = fs::status(first, code);
  const fs::file_status second_status = fs::status(second, code);
  if (fs::exists(first_status) && fs::exists(second_status)) {
    return fs::is_regular_file(first_status) && fs::equivalent(first, second, code) && !code;
  }
  if (fs::exists(first_status) || fs::exists(second_status)) {
    return false;
  }
  const fs::path first_path = fs::weakly_canonical(fs::absolute(first, code), code);
  if (code) {
    return first == second;
  }
  const fs::path second_path = fs::weakly_canonical(fs::absolute(second, code), code);
  return code ? first == second : first_path == second_path;
}

std::string find_overwritten_file(std::span<const OptionFile> inputs,
                                  std::span<const OptionFile> outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const OptionFile& output = outputs[i];
    for (const OptionFile& input : inputs) {
      if (is_same_file(output.path, input.path)) {
        return fmt::format(
            "{} '{}' would replace {} '{}', which is the same file; give another file",
            output.option,
            output.path,
            input.option,
            input.path);
      }
    }
    for (size_t k = 0; k < i; ++k) {
      if (is_same_file(output.path, outputs[k].path)) {
        return fmt::format("{} '{}' and {} '{}' would write the same file; give each a file of its "
                           "own",
                           outputs[k].option,
                           outputs[k].path,
                           output.option,
                           output.path);
      }
    }
  }
  return {};
}

} // namespace pto::isa
