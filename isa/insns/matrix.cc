// SPDX-License-Identifier: Apache-2.0
// MMA: matrix multiply and accumulate on scratchpad tiles.
//
// The order of the sum is architecture: acc = C[i][j], then acc = fma(A[i][k], B[k][j], acc) for k
// ascending, each step rounded once to f32 (wrapping s32 for integers). The loops run over j inside
// k inside i, which keeps that order for every element and lets the compiler vectorise over j.
#include "isa/float16.h"
#include "isa/float32.h"
#include "isa/insns/families.h"
#include "isa/row_check.h"

#include <cstring>

namespace pto::isa {

namespace {

using namespace type_sets;

// Scratchpad bytes need not be aligned for the host type; memcpy of rows is what the compiler
// turns into plain loads.
template <class T> T element(const uint8_t* base, uint64_t index) {
  T value;
  std::memcpy(&value, base + index * sizeof(T), sizeof(T));
  return value;
}

struct FloatStep {
  using Acc = float;
  template <class T> static float widen_input(T x) { return widen(x); }
  static float step(float a, float b, float acc) { return fused(a, b, acc); }
};
struct IntStep {
  using Acc = int32_t;
  template <class T> static int32_t widen_input(T x) { return int32_t{x}; }
  static int32_t step(int32_t a, int32_t b, int32_t acc) {
    return static_cast<int32_t>(static_cast<uint32_t>(acc) +
                                static_cast<uint32_t>(a) * static_cast<uint32_t>(b));
  }
};

struct Shape {
  uint64_t m, n, k, lda, ldb, ldc;
};

template <class Step, class In>
void multiply(uint8_t* c, const uint8_t* a, const uint8_t* b, const Shape& s) {
  using Acc = typename Step::Acc;
  constexpr uint64_t kStrip = 256; // columns of C held at a time
  Acc acc[kStrip];
  Acc row[kStrip];
  for (uint64_t i = 0; i < s.m; ++i) {
    for (uint64_t j0 = 0; j0 < s.n; j0 += kStrip) {
      const uint64_t width = s.n - j0 < kStrip ? s.n - j0 : kStrip;
      uint8_t* out = c + (i * s.ldc + j0) * sizeof(Acc);
      std::memcpy(acc, out, width * sizeof(Acc));
      for (uint64_t k = 0; k < s.k; ++k) {
        const Acc left = Step::widen_input(element<In>(a, i * s.lda + k));
        for (uint64_t j = 0; j < width; ++j) {
          row[j] = Step::widen_input(element<In>(b, k * s.ldb + j0 + j));
        }
        for (uint64_t j = 0; j < width; ++j) {
          acc[j] = Step::step(left, row[j], acc[j]);
        }
      }
      std::memcpy(out, acc, width * sizeof(Acc));
    }
  }
}

// Bytes from the first to the last element of a matrix with that leading dimension. All of them are
// 32-bit numbers, so the count of elements fits 64 bits; its size in bytes need not, and is then
// one that no scratchpad has.
uint64_t extent(uint64_t rows, uint64_t cols, uint64_t ld, uint64_t element_bytes) {
  constexpr uint64_t kTooManyBytes = uint64_t{1} << 62;
  const uint64_t elements = (rows - 1) * ld + cols;
  return elements < kTooManyBytes / element_bytes ? elements * element_bytes : kTooManyBytes;
}

Outcome exec_mma(ExecContext& ctx, const Insn& insn) {
  const auto number = [&](unsigned i, uint64_t otherwise) {
    return insn.has_operand(i) ? ctx.uniform_value(insn.operands[i], Type::kU32) : otherwise;
  };
  Shape s{.m = number(3, 0), .n = number(4, 0), .k = number(5, 0), .lda = 0, .ldb = 0, .ldc = 0};
  s.lda = number(6, s.k);
  s.ldb = number(7, s.n);
  s.ldc = number(8, s.n);
  if (s.m == 0 || s.n == 0 || s.k == 0) {
    return ctx.fault("mma with m, n or k of zero; all three must be positive");
  }
  if (s.lda < s.k || s.ldb < s.n || s.ldc < s.n) {
    return ctx.fault("mma with a leading dimension shorter than its rows");
  }
  const uint64_t in_bytes = size_bytes(insn.type2);
  uint8_t* c = ctx.l1_range(insn.operands[0], extent(s.m, s.n, s.ldc, 4), true, true);
  const uint8_t* a =
      c == nullptr ? nullptr
                   : ctx.l1_range(insn.operands[1], extent(s.m, s.k, s.lda, in_bytes), true, false);
  const uint8_t* b =
      a == nullptr ? nullptr
                   : ctx.l1_range(insn.operands[2], extent(s.k, s.n, s.ldb, in_bytes), true, false);
  if (b == nullptr) {
    return Outcome::kFault;
  }
  switch (insn.type2) {
  case Type::kF32:
    multiply<FloatStep, float>(c, a, b, s);
    break;
  case Type::kF16:
    multiply<FloatStep, F16>(c, a, b, s);
    break;
  case Type::kBF16:
    multiply<FloatStep, BF16>(c, a, b, s);
    break;
  case Type::kS8:
    multiply<IntStep, int8_t>(c, a, b, s);
    break;
  default:
    multiply<IntStep, uint8_t>(c, a, b, s);
    break;
  }
  return Outcome::kNext;
}

std::string_view check_mma(const Insn& insn) {
  return is_float(insn.type) == is_float(insn.type2)
             ? ""
             : "types that do not go together; use f32.f32, f32.f16, f32.bf16, s32.s8 or s32.u8";
}

constexpr OperandSpec matrix(std::string_view name, Role role) {
  return {.name = name, .role = role, .accepts = kAcceptTile | kAcceptL1, .type = TypeRule::kNone};
}
constexpr OperandSpec size(std::string_view name) {
  return src(name, TypeRule::kU32);
}

constexpr InsnDesc kRows[] = {
    {.mnemonic = "mma",
     .opcode = 0x0c0,
     .operands = {matrix("tc", Role::kDstSrc),
                  matrix("ta", Role::kSrc),
                  matrix("tb", Role::kSrc),
                  size("m"),
                  size("n"),
                  size("k"),
                  optional(size("lda")),
                  optional(size("ldb")),
                  optional(size("ldc"))},
     .types = kF32 | kS32,
     .types2 = kF32 | kF16 | kBF16 | kS8 | kU8,
     .scope = Scope::kBlock,
     .unit = Unit::kC,
     .flags = kReadsMem | kWritesMem | kTypesFirst,
     .latency = "MMA",
     .check = check_mma,
     .exec = exec_mma,
     .npu = "pto::mma<{type}, {type2}>({tc}, {ta}, {tb}, {m}, {n}, {k}, {lda}, {ldb}, {ldc});",
     .summary = "Multiplies two row-major tiles and adds the product to a third.",
     .formula = "C[i][j] += sum over k of A[i][k] * B[k][j]",
     .details = "A is m x k, B is k x n, C is m x n; m, n and k are any positive numbers. lda, ldb "
                "and ldc are elements from row to row and default to k, n and n. The sum starts "
                "from C[i][j] and adds one product after the other, k ascending, each step fused "
                "and rounded once to f32; integer kinds wrap. The order does not depend on sizes.",
     .example = "mma.f32.f16 t2, t0, t1, 16, 16, 32"},
};
static_assert(kRowsComplete<kRows>);

} // namespace

std::span<const InsnDesc> matrix_rows() {
  return kRows;
}

} // namespace pto::isa
