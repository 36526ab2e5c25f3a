// SPDX-License-Identifier: Apache-2.0
// An object as one Ascend C file for the SIMT mode of the Ascend 950 (dav-3510): a kernel each, and
// for each a function that launches it. docs/npu.md says what becomes of what.
//
// A file is pure SIMT, or hybrid where any kernel of it reaches a block-scoped insn or a WAIT: then
// every kernel is a vector kernel whose lanes run as a SIMT vector function. Control flow is
// structured (structure.h); a function without structure becomes a loop around a switch, with a
// warning.
#pragma once

#include "isa/diag.h"
#include "isa/object.h"
#include "runtime/npu/probe.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pto::rt {

struct EmitOptions {
  std::string kernel;                        // this one only; empty: all
  Instrument instrument = Instrument::kNone; // where clocks are read
  uint32_t max_lanes = 0;                    // of a block; 0: .maxlanes, else what registers allow
  bool comments = true;                      // the PTO source line behind each statement
};

/// What the launch function of a kernel takes besides grid, block and parameters.
struct EmittedKernel {
  std::string name;           // of the PTO kernel
  std::string launch_symbol;  // extern "C", see LaunchFn
  uint32_t max_lanes = 0;     // launch bound
  uint32_t scratch_bytes = 0; // to be given at launch at least: 0 in pure SIMT files
  bool allocates = false;     // ALLOC_LOCAL: give as much scratchpad as there is
  uint32_t probe_entries = 0; // instrumented: entries a warp, 16 bytes each
  uint32_t first_pc = 0;      // of its insns in the object
};

struct AscendC {
  std::string text;
  bool is_hybrid = false;
  std::vector<EmittedKernel> kernels;
  /// Instrumented: what the probe entries of a warp are of. An entry is two words: the cycles spent
  /// in the region and how often. Entry 0 is an empty pair of clock reads, what has to be
  /// subtracted; entry 1 + i is of regions[i]. With Instrument::kKernel the only entry holds the
  /// clocks when the warp's first lane began and when its last lane ended.
  std::vector<ProbeRegion> regions;
};

/// Signature of the launch functions. `arguments[i]` points to parameter i as 8 bytes of bits (a
/// pointer: its device address); `constants` is the device address of Object::const_data, or null
/// where that is empty; `profile` that of the probe entries, zeroed, of all warps of the grid.
/// Returns 0 or the runtime's error code of the launch.
using LaunchFn = int32_t (*)(const uint32_t grid[3],
                             const uint32_t block[3],
                             uint64_t scratch_bytes,
                             const uint64_t* arguments,
                             void* constants,
                             void* profile,
                             void* stream);

/// The file. Errors (an insn without a lowering, an unknown kernel) and warnings go to `diags`;
/// nullopt after an error. Source positions are those of the object's line table.
[[nodiscard]] std::optional<AscendC>
emit_ascendc(const isa::Object& object, const EmitOptions& options, isa::Diagnostics& diags);

/// A host program that launches one kernel of the file on arrays in files, to read and change.
[[nodiscard]] std::optional<std::string>
emit_host(const isa::Object& object, const EmitOptions& options, isa::Diagnostics& diags);

/// The headers that the file includes, by name without the `.h`, as they are to lie beside it; kept
/// in the library so that a program finds them wherever it is installed.
[[nodiscard]] std::span<const std::pair<std::string_view, std::string_view>> ascendc_headers();

} // namespace pto::rt
