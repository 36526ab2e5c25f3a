// SPDX-License-Identifier: Apache-2.0
// Arguments of a kernel from `--arg` texts: checked against its parameters, generated or read.
#pragma once

#include "isa/diag.h"
#include "isa/object.h"
#include "simulator/argument_spec.h"
#include "simulator/element.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace pto::sim {

/// A scalar's bits, or the initial contents of the memory that a pointer points to.
struct Argument {
  isa::Param param;
  uint64_t bits = 0; // scalars; sign-extended for signed types
  HostArray array;   // pointers
};

/// Worst kind of error met: as programs report it (exit status 0, 1 and 2).
enum class ArgumentStatus : uint8_t {
  kGood,
  kBadInput, // a file that cannot be read or does not fit
  kUsage,    // what was written is wrong, or does not fit the kernel
};

struct ArgumentLimits {
  uint64_t max_array_bytes = uint64_t{1} << 34; // of one array
};

struct BoundArguments {
  ArgumentStatus status = ArgumentStatus::kGood;
  std::vector<Argument> arguments; // in the order of the parameters; complete if kGood
};

/// Parses every text, matches names with the kernel's parameters, reads files and runs generators.
/// Everything wrong is reported to `diags`: unknown and missing names, wrong types, sizes, files.
[[nodiscard]] BoundArguments bind_arguments(std::span<const std::string> texts,
                                            const isa::Function& kernel,
                                            isa::Diagnostics& diags,
                                            const ArgumentLimits& limits = {});

/// "ptr a", "ptr.f32 a", "u32 n".
[[nodiscard]] std::string to_string(const isa::Param& param);

/// The array with every element converted to `type`: rounded to nearest for floats; for integers
/// nothing, with a sentence in `error`, if a value does not fit (fractions included).
[[nodiscard]] std::optional<HostArray>
convert_array(const HostArray& array, ElementType type, std::string& error);

} // namespace pto::sim
