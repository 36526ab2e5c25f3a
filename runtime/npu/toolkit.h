// SPDX-License-Identifier: Apache-2.0
// The CANN toolkit on this host: where it is, and its compiler.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace pto::rt {

struct Toolkit {
  std::string root;     // /usr/local/Ascend/cann
  std::string compiler; // .../bin/bisheng
  std::string library;  // .../lib64/libascendcl.so
  std::string found_by; // "ASCEND_HOME_PATH", or the place
};

struct ToolkitSearch {
  std::optional<Toolkit> toolkit;
  /// Every place that was looked at and what was found there, in order.
  std::vector<std::string> tried;
};

/// Looks at ASCEND_HOME_PATH, ASCEND_TOOLKIT_HOME, the usual places below /usr/local/Ascend and the
/// home directory. The first that holds both a compiler and libascendcl.so is taken.
[[nodiscard]] ToolkitSearch find_toolkit();

/// Compiles an emitted file to a shared object. Files go to a folder of their own, removed with
/// this object, or to $PTO_NPU_CACHE, where one compiled earlier from the same text is used again.
class NpuCompiler {
public:
  explicit NpuCompiler(Toolkit toolkit);
  ~NpuCompiler();
  NpuCompiler(const NpuCompiler&) = delete;
  NpuCompiler& operator=(const NpuCompiler&) = delete;

  /// Path of the shared object. Throws DeviceError with the command line and what the compiler
  /// said.
  [[nodiscard]] std::string compile(const std::string& text, bool is_hybrid);

private:
  Toolkit toolkit_;
  std::string folder_;
  bool is_temporary_ = true;
};

} // namespace pto::rt
