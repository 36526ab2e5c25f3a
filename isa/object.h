// SPDX-License-Identifier: Apache-2.0
// An assembled program in memory, and its file form (`.ptobj`, docs/object-format.md).
//
// In memory code is decoded (Insn); write_object encodes it into fixed 16-byte words with a pool of
// 64-bit values, read_object decodes and validates: any byte string is a valid input to the
// reader, which either gives a consistent Object or says what is wrong and where.
#pragma once

#include "isa/insn.h"
#include "isa/types.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace pto::isa {

inline constexpr uint32_t kIsaVersion = 1;
inline constexpr uint32_t kObjectVersion = 1;

struct Param {
  std::string name;
  Type type = Type::kU64; // pointers: kU64
  bool is_pointer = false;
  Type element = Type::kNone; // of a pointer, where declared (`ptr.f32`)
  bool operator==(const Param&) const = default;
};

enum class SymbolKind : uint8_t { kTile, kShared, kConst };

inline constexpr uint32_t kFileScope = 0xffffffff;

/// `.tile`, `.shared` (offset in scratchpad) or `.const` (offset in Object::const_data).
struct Symbol {
  std::string name;
  SymbolKind kind = SymbolKind::kShared;
  Type type = Type::kB8;
  uint32_t rows = 1; // .tile: rows x cols; others: 1 x count
  uint32_t cols = 1;
  uint32_t offset = 0; // bytes
  uint32_t size_bytes = 0;
  uint32_t align_bytes = 1;
  uint32_t owner = kFileScope; // index of the function that declares it, or kFileScope
  bool operator==(const Symbol&) const = default;
};

struct Label {
  std::string name;
  uint32_t pc = 0;
  bool operator==(const Label&) const = default;
};

/// Where lanes that a branch splits rejoin. `kNoReconvergence`: only at the end of the function.
inline constexpr uint32_t kNoReconvergence = 0xffffffff;
struct Reconvergence {
  uint32_t branch_pc = 0;
  uint32_t join_pc = 0;
  bool operator==(const Reconvergence&) const = default;
};

/// A kernel or a function; code range [first_pc, first_pc + insn_count).
struct Function {
  std::string name;
  bool is_kernel = false;
  std::vector<Param> params; // empty for functions
  uint32_t first_pc = 0;
  uint32_t insn_count = 0;
  uint32_t reg32_count = 0;  // distinct r registers used here and in every function reached
  uint32_t reg64_count = 0;  // distinct d registers
  uint32_t l1_bytes = 0;     // static scratchpad, from offset 0
  uint32_t max_lanes = 0;    // .maxlanes; 0: none
  std::vector<Label> labels; // by pc
  std::vector<Reconvergence> reconvergence; // by branch_pc
  uint32_t register_use() const { return reg32_count + 2 * reg64_count; }
  bool contains(uint32_t pc) const { return pc >= first_pc && pc - first_pc < insn_count; }
  bool operator==(const Function&) const = default;
};

/// Source position of an insn; line and column from 1.
struct SourceLoc {
  uint32_t file = 0; // Object::files
  uint32_t line = 0; // 0: unknown
  uint32_t column = 0;
  bool operator==(const SourceLoc&) const = default;
};

struct Object {
  std::string machine; // .machine; empty: none
  std::vector<Function> functions;
  std::vector<Symbol> symbols;
  std::vector<Insn> code;
  std::vector<SourceLoc> locs; // one an insn
  std::vector<std::string> files;
  std::vector<std::string> strings; // formats of PRINT
  std::vector<uint8_t> const_data;

  const Function* find_function(std::string_view name) const;
  /// The function whose code holds pc; null if none.
  const Function* function_at(uint32_t pc) const;
  bool operator==(const Object&) const = default;
};

/// Bytes of the file form. Fails (nullopt, `error` set) only where the program exceeds a limit of
/// the format (2^20 pool entries or insns).
std::optional<std::vector<uint8_t>> write_object(const Object& object, std::string& error);

/// Total: any bytes. nullopt and a one-line `error` naming the offset and what was expected.
std::optional<Object> read_object(std::span<const uint8_t> bytes, std::string& error);

/// True if the bytes begin with the magic of an object file.
bool looks_like_object(std::span<const uint8_t> bytes);

} // namespace pto::isa
