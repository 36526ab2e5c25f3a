// SPDX-License-Identifier: Apache-2.0
// Any bytes are valid contents of the vendor profiler's files; what is imported can be written and
// read. The first byte picks the file.
#include "runtime/profile/vendor_import.h"

#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace pto;
  constexpr const char* kNames[] = {"OpBasicInfo.csv",
                                    "op_basic_info.txt",
                                    "PipeUtilization.csv",
                                    "L2Cache.csv",
                                    "core0_instr_exe.csv",
                                    "core0_code_exe.csv",
                                    "trace.json",
                                    "core0.instr_popped_log.dump",
                                    "core0.instr_log.dump",
                                    "core0.icache.dump",
                                    "pc_sampling.bin"};
  if (size == 0) {
    return 0;
  }
  const size_t which = (data[0] - size_t{'a'}) % std::size(kNames);
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  std::vector<rt::VendorFile> files = {{kNames[which], bytes}};
  if (which == 8) { // both logs make instructions
    files.push_back({kNames[7], bytes});
  }
  isa::ProfileIssues issues;
  const auto imported = rt::import_vendor_files(files, "fuzz", issues);
  if (imported.has_value() != issues.empty()) {
    std::abort();
  }
  if (imported && !rt::read_profile(rt::to_json_text(imported->profile), "again", issues)) {
    std::abort();
  }
  return 0;
}
