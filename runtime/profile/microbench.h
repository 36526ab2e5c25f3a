// SPDX-License-Identifier: Apache-2.0
// Microbenchmarks: small kernels, generated from the instruction table, whose running times tell
// the figures of a machine one by one.
//
// Every figure is the slope over the number of repeats of a pattern, so that the cost of the
// launch, of setting registers up and of the last results falls out. Patterns follow the roles of
// operands: a destination that becomes the next insn's source is a chain (latency), destinations
// that nobody reads are a stream (interval). Between the links of a chain stands a nop, so that
// firmware which joins neighbours has none to join; the same chain without nops, and pairs of
// different insns, then show what it joins. A chain whose result is of another register class than
// its source is closed by a second insn (`MicroTag::second`) that has a chain of its own.
#pragma once

#include "isa/diag.h"
#include "isa/machine.h"
#include "runtime/device.h"
#include "runtime/profile/measure.h"
#include "runtime/profile/profile.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace pto::rt {

struct Microbench {
  std::string name; // of the kernel, too: an identifier
  MicroTag tag;
  std::string text; // a whole PTO program with this one kernel `NAME(ptr a, ptr o, u32 n)`
  uint32_t grid = 1;
  uint32_t lanes = 32;
  uint64_t a_bytes = 4096; // zeros; `o` takes what the lanes store
  bool is_cold = false;    // the caches must not hold `a`
};

struct MicrobenchOptions {
  std::vector<std::string> roles; // empty: all of microbench_roles()
  /// Of each entry of the machine's latency table only so many types; 0: all.
  uint32_t types_per_entry = 0;
  /// Second round: for the pairs that this profile of a first round shows to be joined, which
  /// operand must connect them and whether the first result stays visible.
  const Profile* follow_up = nullptr;
  std::vector<std::string> keys; // only patterns of these, "FMA" or "LOAD.l1"; empty: all
};

struct MicrobenchRole {
  std::string_view name;
  std::string_view meaning;
};
[[nodiscard]] const std::vector<MicrobenchRole>& microbench_roles();

/// The set for a machine like `machine`, whose limits (lanes, registers, scratchpad) and latency
/// keys it uses. The same for equal arguments.
[[nodiscard]] std::vector<Microbench> make_microbenches(const isa::MachineProfile& machine,
                                                        const MicrobenchOptions& options = {});

/// Assembled; may be measured on any number of devices.
struct AssembledMicrobench {
  Microbench bench;
  std::shared_ptr<const sim::Program> program;
};
/// Throws InternalError if a generated text does not assemble.
[[nodiscard]] std::vector<AssembledMicrobench> assemble_microbenches(std::vector<Microbench> set);

/// Measures each of them on an emulated device whose hidden profile is `device`. Adds to
/// `profile.kernels`. Throws MeasureError and LaunchError.
void measure_microbenches(const std::vector<AssembledMicrobench>& set,
                          const isa::MachineProfile& device,
                          const MeasureOptions& options,
                          Profile& profile);

/// How a set is run on a device of the runtime.
struct MicrobenchRuns {
  uint32_t runs = 16;
  uint32_t warm_ups = 2;
  /// Called before each kernel with its number.
  std::function<void(size_t done)> on_kernel;
};

/// Measures each of them on a device of the runtime: by clock reads at begin and end where the
/// device has them (the role `launch` by its events). Adds to `profile.kernels`. A kernel for which
/// the runtime throws is named in `profile.notes`; after eight of them in a row, or when the wait
/// is given up, it throws on. Throws MeasureError if the device tells no time.
void measure_microbenches(const std::vector<AssembledMicrobench>& set,
                          Device& device,
                          const MicrobenchRuns& how,
                          Profile& profile);

} // namespace pto::rt
