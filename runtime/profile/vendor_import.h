// SPDX-License-Identifier: Apache-2.0
// Reading what the vendor's profiler (msopprof, Ascend 950 series) writes, on a board and from its
// simulator, into profiles. The formats are described in docs/calibration.md.
//
// Total: any bytes in any file give figures or a sentence that says where they stop making sense. A
// file that is not known is listed, not guessed at.
#pragma once

#include "isa/machine.h"
#include "runtime/profile/profile.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pto::rt {

struct VendorImport {
  Profile profile;
  std::vector<std::string> read;    // "OpBasicInfo.csv: 1 row"
  std::vector<std::string> skipped; // "visualize_data.bin: binary, no published layout"
};

/// One line a format: name pattern and what is taken from it.
struct VendorFormat {
  std::string_view name;
  std::string_view meaning;
};
[[nodiscard]] const std::vector<VendorFormat>& vendor_formats();

/// Everything below a folder (an OPPROF_* folder or one of its parts), or one file. Nothing, with
/// issues, if it cannot be read, holds none of the formats, or one of them is damaged.
[[nodiscard]] std::optional<VendorImport> import_vendor(const std::string& path,
                                                        isa::ProfileIssues& issues);

/// The same from texts in memory: names as in a folder.
struct VendorFile {
  std::string name; // path below the folder
  std::string bytes;
};
[[nodiscard]] std::optional<VendorImport> import_vendor_files(const std::vector<VendorFile>& files,
                                                              std::string_view source,
                                                              isa::ProfileIssues& issues);

/// "LOAD.hbm.b32" for "SIMT_LDG_B32"; the name itself where PTO has no such insn.
[[nodiscard]] std::string pto_key_of(std::string_view vendor_insn);

} // namespace pto::rt
