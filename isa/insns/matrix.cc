// SPDX-License-Identifier: Apache-2.0
// MMA: matrix multiply and accumulate on scratchpad tiles.
//
// The order of the sum is architecture: acc = C[i][j], then acc = fma(A[i][k], B[k][j], acc) for k
// ascending, each step rounded once to f32 (wrapping s32 for integers). Floats go through
// isa/mma_kernel.h, f16 and bf16 widened first, which is exact. A and B are read as they were
// before the insn: where C overlaps one of them, a copy is taken.
#include "isa/float16.h"
#include "isa/float32.h"
#include "isa/insns/families.h"
#include "isa/lane_ops.h"
#include "isa/mma_kernel.h"
#include "isa/row_check.h"

#include <cstring>
#include <type_traits>
#include <vector>

namespace pto::isa {

namespace {

using namespace type_sets;

// A run of elements as T; scratchpad bytes need not be aligned for it.
template <class T, class Out, class Widen>
PTO_HOST_LOOP void read_row(Out* out, const uint8_t* bytes, uint64_t count, Widen widen_one) {
  for (uint64_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, bytes + i * sizeof(T), sizeof(T));
    out[i] = widen_one(value);
  }
}

/// The matrix as Out, rows packed together.
template <class T, class Out, class Widen>
std::vector<Out>
read_matrix(const uint8_t* bytes, uint64_t rows, uint64_t cols, uint64_t ld, Widen widen_one) {
  std::vector<Out> out(rows * cols);
  for (uint64_t i = 0; i < rows; ++i) {
    host_loop<read_row<T, Out, Widen>>(
        out.data() + i * cols, bytes + i * ld * sizeof(T), cols, widen_one);
  }
  return out;
}

struct Matrices {
  uint8_t* c;
  const uint8_t* a;
  const uint8_t* b;
  bool in_place; // f32 only: aligned, and C apart from A and B
};

template <class In> void multiply_as_floats(const Matrices& at, MmaShape s) {
  const auto widen_one = [](In x) { return widen(x); };
  std::vector<float> a;
  std::vector<float> b;
  const float* a_floats = reinterpret_cast<const float*>(at.a);
  const float* b_floats = reinterpret_cast<const float*>(at.b);
  if (!std::is_same_v<In, float> || !at.in_place) {
    a = read_matrix<In, float>(at.a, s.m, s.k, s.lda, widen_one);
    b = read_matrix<In, float>(at.b, s.k, s.n, s.ldb, widen_one);
    a_floats = a.data();
    b_floats = b.data();
    s.lda = s.k;
    s.ldb = s.n;
  }
  if (reinterpret_cast<uintptr_t>(at.c) % alignof(float) == 0) {
    multiply_floats(reinterpret_cast<float*>(at.c), a_floats, b_floats, s);
    return;
  }
  const uint64_t c_row_bytes = s.ldc * sizeof(float);
  const auto same = [](float x) { return x; };
  std::vector<float> c = read_matrix<float, float>(at.c, s.m, s.n, s.ldc, same);
  s.ldc = s.n;
  multiply_floats(c.data(), a_floats, b_floats, s);
  for (uint64_t i = 0; i < s.m; ++i) {
    std::memcpy(at.c + i * c_row_bytes, c.data() + i * s.n, s.n * sizeof(float));
  }
}

PTO_HOST_LOOP void
add_scaled(uint32_t* sums, const uint32_t* row, uint32_t factor, uint64_t count) {
  PTO_INDEPENDENT_LANES
  for (uint64_t j = 0; j < count; ++j) {
    sums[j] += factor * row[j];
  }
}

// Wrapping sums do not depend on the sign of the operands once these are extended.
template <class In> void multiply_as_words(const Matrices& at, const MmaShape& s) {
  const auto widen_one = [](In x) { return static_cast<uint32_t>(int32_t{x}); };
  const auto a = read_matrix<In, uint32_t>(at.a, s.m, s.k, s.lda, widen_one);
  const auto b = read_matrix<In, uint32_t>(at.b, s.k, s.n, s.ldb, widen_one);
  std::vector<uint32_t> sums(s.n);
  for (uint64_t i = 0; i < s.m; ++i) {
    uint8_t* out = at.c + i * s.ldc * sizeof(uint32_t);
    std::memcpy(sums.data(), out, s.n * sizeof(uint32_t));
    for (uint64_t k = 0; k < s.k; ++k) {
      host_loop<add_scaled>(sums.data(), b.data() + k * s.n, a[i * s.k + k], s.n);
    }
    std::memcpy(out, sums.data(), s.n * sizeof(uint32_t));
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
  MmaShape s{.m = number(3, 0), .n = number(4, 0), .k = number(5, 0), .lda = 0, .ldb = 0, .ldc = 0};
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
  const uint64_t c_bytes = extent(s.m, s.n, s.ldc, 4);
  const uint64_t a_bytes = extent(s.m, s.k, s.lda, in_bytes);
  const uint64_t b_bytes = extent(s.k, s.n, s.ldb, in_bytes);
  Matrices at{};
  at.c = ctx.l1_range(insn.operands[0], c_bytes, true, true);
  at.a = at.c == nullptr ? nullptr : ctx.l1_range(insn.operands[1], a_bytes, true, false);
  at.b = at.a == nullptr ? nullptr : ctx.l1_range(insn.operands[2], b_bytes, true, false);
  if (at.b == nullptr) {
    return Outcome::kFault;
  }
  const auto apart = [&](const uint8_t* other, uint64_t bytes) {
    return at.c + c_bytes <= other || other + bytes <= at.c;
  };
  const auto aligned = [](const uint8_t* bytes) {
    return reinterpret_cast<uintptr_t>(bytes) % alignof(float) == 0;
  };
  at.in_place = apart(at.a, a_bytes) && apart(at.b, b_bytes) && aligned(at.a) && aligned(at.b);
  switch (insn.type2) {
  case Type::kF32:
    multiply_as_floats<float>(at, s);
    break;
  case Type::kF16:
    multiply_as_floats<F16>(at, s);
    break;
  case Type::kBF16:
    multiply_as_floats<BF16>(at, s);
    break;
  case Type::kS8:
    multiply_as_words<int8_t>(at, s);
    break;
  default:
    multiply_as_words<uint8_t>(at, s);
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
     .npu =
         "pto::mma<{type}, {type2}>({tc}, {ta}, {tb}, {m}, {n}, {k}, {lda?k}, {ldb?n}, {ldc?n});",
     .summary = "Multiplies two row-major tiles and adds the product to a third.",
     .formula = "C[i][j] += sum over k of A[i][k] * B[k][j]",
     .details = "A is m x k, B is k x n, C is m x n; m, n and k are any positive numbers. lda, ldb "
                "and ldc are elements from row to row and default to k, n and n. The sum starts "
                "from C[i][j] and adds one product after the other, k ascending, each step fused "
                "and rounded once to f32; integer kinds wrap. The order does not depend on sizes. "
                "A and B are read before C is written, also where they overlap.",
     .example = "mma.f32.f16 t2, t0, t1, 16, 16, 32"},
};
static_assert(kRowsComplete<kRows>);

} // namespace

std::span<const InsnDesc> matrix_rows() {
  return kRows;
}

} // namespace pto::isa
