// SPDX-License-Identifier: Apache-2.0
// `--arg NAME=VALUE` as written: the grammar, without files, types of parameters or data.
//
//   n=1024  x=0x10  s=-1.5                     a scalar
//   a=rand:f32[64,32]:seed=1:lo=-1:hi=1        a generator, its element type, shape and options
//   a=@data.npy  a=@data.npy:f32               a numpy file, converted to the type where given
//   a=@data.bin  a=@data.bin:f32[1024]         raw bytes
//
// Generators: zeros, ones, full (value), rand (seed, lo or min, hi or max), randn (seed, mean,
// std), iota (start, step). The type may be left out where the parameter declares one (`ptr.f32
// a`).
#pragma once

#include "isa/diag.h"
#include "simulator/element.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pto::sim {

/// Part of an argument's text with its place in it.
struct SpecText {
  std::string_view text; // lives in the Diagnostics' source
  isa::SourceRange range{};
};

enum class GeneratorKind : uint8_t { kZeros, kOnes, kFull, kRand, kRandn, kIota };

struct GeneratorOption {
  SpecText name; // as its main spelling: lo, never min
  SpecText value;
};

/// `f32[64,32]`; both parts optional.
struct ArrayType {
  std::optional<ElementType> element;
  std::optional<std::vector<uint64_t>> shape;
  isa::SourceRange range{};
};

enum class ArgumentKind : uint8_t { kScalar, kGenerator, kFile };

struct ArgumentSpec {
  ArgumentKind kind = ArgumentKind::kScalar;
  SpecText name;
  SpecText value; // all after '='
  GeneratorKind generator = GeneratorKind::kZeros;
  std::vector<GeneratorOption> options;
  SpecText path; // of kFile, without '@'
  ArrayType array;

  [[nodiscard]] const GeneratorOption* find_option(std::string_view option) const;
};

/// Parses one argument. Reports to `diags` (which keeps the text, as file `<argument NAME>`) and
/// returns nothing if it is wrong.
[[nodiscard]] std::optional<ArgumentSpec> parse_argument(std::string_view text,
                                                         isa::Diagnostics& diags);

/// "zeros", ...
[[nodiscard]] std::string_view name(GeneratorKind kind);

} // namespace pto::sim
