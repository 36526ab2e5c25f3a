// SPDX-License-Identifier: Apache-2.0
// LOAD, STORE, PREFETCH, INVAL, FENCE.
#include "isa/insns/families.h"
#include "isa/insns/modifiers.h"
#include "isa/row_check.h"

namespace pto::isa {

namespace {

using namespace type_sets;

constexpr TypeSet kMemoryTypes = kU8 | kS8 | kU16 | kS16 | kU32 | kS32 | kU64 | kS64 | kF16 |
                                 kBF16 | kF32 | kF16x2 | kB8 | kB16 | kB32 | kB64;

// In the order of kLoadCache, kStoreCache and kVector.
constexpr CacheHint kLoadHints[] = {
    CacheHint::kCached, CacheHint::kCached, CacheHint::kL2, CacheHint::kVolatile};
constexpr CacheHint kStoreHints[] = {CacheHint::kCached, CacheHint::kCached, CacheHint::kL2};
constexpr uint8_t kVectorCounts[] = {1, 2, 4};
static_assert(kLoadCache.values[2].suffix == "cg" && kLoadCache.values[3].suffix == "cv");
static_assert(kStoreCache.values[2].suffix == "cg" && kStoreCache.values.size() == 3);
static_assert(kVector.values[1].suffix == "x2" && kVector.values[2].suffix == "x4");

Outcome exec_load(ExecContext& ctx, const Insn& insn) {
  return ctx.load(
      insn.operands[1],
      {.type = insn.type, .count = kVectorCounts[insn.mods[1]], .hint = kLoadHints[insn.mods[0]]},
      insn.operands[0]);
}

Outcome exec_store(ExecContext& ctx, const Insn& insn) {
  return ctx.store(
      insn.operands[0],
      {.type = insn.type, .count = kVectorCounts[insn.mods[1]], .hint = kStoreHints[insn.mods[0]]},
      insn.operands[1]);
}

Outcome exec_inval(ExecContext& ctx, const Insn& insn) {
  return !insn.has_operand(0) ? ctx.cache(CacheOp::kInvalidateAll, nullptr)
                              : ctx.cache(CacheOp::kInvalidateLine, &insn.operands[0]);
}

// The hint chooses a path to hbm; scratchpad and constants have one path only.
std::string_view check_load(const Insn& insn) {
  const bool hinted = !has_mod(insn, kLoadCache, "");
  return hinted && insn.operands[1].mem().space != Space::kHbm
             ? "a cache hint on a load that is not from hbm; leave out .ca, .cg or .cv"
             : std::string_view();
}

// A vector store takes consecutive registers, so its source cannot be one immediate.
std::string_view check_store(const Insn& insn) {
  if (!has_mod(insn, kStoreCache, "") && insn.operands[0].mem().space != Space::kHbm) {
    return "a cache hint on a store that is not to hbm; leave out .wt or .cg";
  }
  const OperandKind source = insn.operands[1].kind;
  return vector_count(insn) > 1 && source != OperandKind::kReg32 && source != OperandKind::kReg64
             ? "a vector store of something other than registers; name the first of "
               "consecutive registers"
             : std::string_view();
}

std::string_view check_inval(const Insn& insn) {
  if (has_mod(insn, kInvalScopes, "all")) {
    return insn.operand_count == 0 ? "" : "inval.all takes no address; leave it out";
  }
  return insn.operand_count == 1 || has_mod(insn, kInvalScopes, "")
             ? ""
             : "inval.line takes the address of the line: hbm[...]";
}

constexpr OperandSpec vector_of(OperandSpec spec) {
  spec.vector = true;
  return spec;
}

constexpr InsnDesc kRows[] = {
    {.mnemonic = "load",
     .opcode = 0x090,
     .operands = {vector_of(dst("d")), mem("mem", kAcceptMem)},
     .types = kMemoryTypes,
     .mods = {&kLoadCache, &kVector},
     .scope = Scope::kLane,
     .unit = Unit::kM,
     .flags = kReadsMem,
     .latency = "LOAD",
     .check = check_load,
     .exec = exec_load,
     .npu = "pto::load_{vector}<{type}[, pto::{cache}]>({mem}, {d});|"
            "{d} = pto::load<{type}[, pto::{cache}]>({mem});",
     .summary = "Loads from hbm, scratchpad or constants.",
     .formula = "d = mem",
     .details = "8- and 16-bit values are extended by their signedness (b8 and b16 by zeros). "
                "`.x2` and `.x4` fill consecutive registers and need an address aligned to the "
                "whole vector; every other access is aligned to its own size. A misaligned or "
                "out-of-bounds access is a fault.",
     .example = "load.f32 r1, hbm[a + r0*4]"},
    {.mnemonic = "store",
     .opcode = 0x091,
     .operands = {mem("mem", kAcceptHbm | kAcceptL1, Role::kDst), vector_of(src("a"))},
     .types = kMemoryTypes,
     .mods = {&kStoreCache, &kVector},
     .scope = Scope::kLane,
     .unit = Unit::kM,
     .flags = kWritesMem,
     .latency = "STORE",
     .check = check_store,
     .exec = exec_store,
     .npu = "pto::store[_{vector}]<{type}[, pto::{cache}]>({mem}, {a});",
     .summary = "Stores to hbm or scratchpad, writing through.",
     .formula = "mem = a",
     .details = "8- and 16-bit types store the low bits. Where lanes of one warp store to the "
                "same address in one insn, the highest lane's value remains; a program must not "
                "rely on it.",
     .example = "store.f32 hbm[a + r0*4], r1"},
    {.mnemonic = "prefetch",
     .opcode = 0x092,
     .operands = {mem("mem", kAcceptHbm)},
     .scope = Scope::kLane,
     .unit = Unit::kM,
     .flags = kReadsMem | kCacheControl,
     .latency = "PREFETCH",
     .exec = [](ExecContext& ctx,
                const Insn& insn) { return ctx.cache(CacheOp::kPrefetch, &insn.operands[0]); },
     .npu = "pto::prefetch({mem});",
     .summary = "Brings the line that holds the address into the data cache.",
     .formula = "cache <- line(mem)",
     .details = "An address outside every allocation is ignored.",
     .example = "prefetch hbm[a + r0*4 + 128]"},
    {.mnemonic = "inval",
     .opcode = 0x093,
     .operands = {optional(mem("mem", kAcceptHbm))},
     .mods = {&kInvalScopes},
     .scope = Scope::kWarp,
     .unit = Unit::kM,
     .flags = kCacheControl,
     .latency = "INVAL",
     .check = check_inval,
     .exec = exec_inval,
     .npu = "pto::inval[_{scope}]([{mem}]);",
     .summary = "Drops a line, or all, of the core's data cache.",
     .formula = "cache <- cache - line(mem)",
     .details = "Memory is written through, so nothing is lost. `.line` takes an address, `.all` "
                "none; without a suffix the operand decides.",
     .example = "inval.line hbm[a]"},
    {.mnemonic = "fence",
     .opcode = 0x094,
     .mods = {&kFenceScopes},
     .scope = Scope::kLane,
     .unit = Unit::kM,
     .flags = kFence,
     .latency = "FENCE",
     .exec =
         [](ExecContext& ctx, const Insn& insn) {
           return ctx.fence(has_mod(insn, kFenceScopes, "device") ? FenceScope::kDevice
                                                                  : FenceScope::kBlock);
         },
     .npu = "pto::fence_{scope}();",
     .summary = "Orders the lane's memory operations before it ahead of those after it.",
     .formula = "before(fence) < after(fence)",
     .details = "It neither blocks other lanes nor invalidates a cache: a reader on another core "
                "still needs .cv, an atomic or INVAL.",
     .example = "fence.device"},
};
static_assert(kRowsComplete<kRows>);

} // namespace

std::span<const InsnDesc> memory_rows() {
  return kRows;
}

} // namespace pto::isa
