// SPDX-License-Identifier: Apache-2.0
// Scratchpad tiles and asynchronous copies: ALLOC_LOCAL, FREE_LOCAL, FILL, ASYNC_LOAD, ASYNC_STORE,
// WAIT, WAIT_ALL.
#include "isa/insns/families.h"
#include "isa/row_check.h"

#include <cstring>

namespace pto::isa {

namespace {

using namespace type_sets;

constexpr OperandSpec tile(std::string_view name, Role role) {
  return {.name = name, .role = role, .accepts = kAcceptTile, .type = TypeRule::kNone};
}
constexpr OperandSpec tile_or_l1(std::string_view name, Role role) {
  return {.name = name, .role = role, .accepts = kAcceptTile | kAcceptL1, .type = TypeRule::kNone};
}
constexpr OperandSpec tile_register(std::string_view name, Role role) {
  return tile(name, role);
}

// Tiles of .tile and .shared symbols are static: they can be neither allocated nor freed.
std::string_view check_tile_register(const Insn& insn) {
  return insn.operands[0].kind == OperandKind::kTile
             ? ""
             : "a static tile; only t0..t15 are allocated and freed";
}

Outcome exec_fill(ExecContext& ctx, const Insn& insn) {
  const unsigned element = size_bytes(insn.type);
  const uint64_t value = ctx.uniform_value(insn.operands[1], insn.type);
  const uint64_t size = insn.has_operand(2) ? ctx.uniform_value(insn.operands[2], Type::kU32)
                                            : ctx.tile_bytes(insn.operands[0]);
  if (size % element != 0) {
    return ctx.fault("fill of a size that is no multiple of its type");
  }
  uint8_t* bytes = ctx.l1_range(insn.operands[0], size, false, true);
  if (bytes == nullptr) {
    return Outcome::kFault;
  }
  for (uint64_t at = 0; at < size; at += element) {
    std::memcpy(bytes + at, &value, element); // little endian, as the host
  }
  return Outcome::kNext;
}

// Both forms: `to, from, bytes[, e]` and `to, from, rows, row_bytes, hbm_stride, l1_stride[, e]`.
Outcome start(ExecContext& ctx, const Insn& insn, CopyDirection direction) {
  CopyShape shape;
  unsigned next = 2;
  if (insn.form == 0) {
    shape.row_bytes = static_cast<uint32_t>(ctx.uniform_value(insn.operands[next++], Type::kU32));
  } else {
    shape.rows = static_cast<uint32_t>(ctx.uniform_value(insn.operands[next++], Type::kU32));
    shape.row_bytes = static_cast<uint32_t>(ctx.uniform_value(insn.operands[next++], Type::kU32));
    shape.hbm_stride = static_cast<int64_t>(ctx.uniform_value(insn.operands[next++], Type::kS32));
    shape.l1_stride = static_cast<int64_t>(ctx.uniform_value(insn.operands[next++], Type::kS32));
  }
  const Operand* event = insn.has_operand(next) ? &insn.operands[next] : nullptr;
  const bool to_l1 = direction == CopyDirection::kHbmToL1;
  return ctx.start_copy(
      direction, insn.operands[to_l1 ? 0 : 1], insn.operands[to_l1 ? 1 : 0], shape, event);
}

constexpr OperandSpec stride(std::string_view name) {
  return src(name, TypeRule::kS32);
}
constexpr OperandSpec size(std::string_view name) {
  return src(name, TypeRule::kU32);
}

constexpr InsnDesc kRows[] = {
    {.mnemonic = "alloc_local",
     .opcode = 0x0b0,
     .operands = {tile_register("t", Role::kDst), size("bytes")},
     .scope = Scope::kBlock,
     .unit = Unit::kD,
     .flags = kAllocates,
     .latency = "ALLOC_LOCAL",
     .check = check_tile_register,
     .exec =
         [](ExecContext& ctx, const Insn& insn) {
           return ctx.alloc_tile(insn.operands[0], ctx.uniform_value(insn.operands[1], Type::kU32));
         },
     .npu = "pto::alloc_local(board, l1, {t#}, {bytes});",
     .summary = "Allocates a zeroed tile in scratchpad.",
     .formula = "t = scratchpad[bytes]",
     .details = "Running out of scratchpad is a fault that names the sizes and who holds what. A "
                "register that already holds a tile cannot be allocated again before FREE_LOCAL.",
     .example = "alloc_local t0, 4096"},
    {.mnemonic = "free_local",
     .opcode = 0x0b1,
     .operands = {tile_register("t", Role::kDstSrc)},
     .scope = Scope::kBlock,
     .unit = Unit::kD,
     .flags = kFrees,
     .latency = "FREE_LOCAL",
     .check = check_tile_register,
     .exec = [](ExecContext& ctx, const Insn& insn) { return ctx.free_tile(insn.operands[0]); },
     .npu = "pto::free_local(board, {t#});",
     .summary = "Gives a tile's scratchpad back.",
     .formula = "scratchpad <- t",
     .example = "free_local t0"},
    {.mnemonic = "fill",
     .opcode = 0x0b2,
     .operands = {tile_or_l1("t", Role::kDst), src("value"), optional(size("bytes"))},
     .types = kB8 | kB16 | kB32,
     .scope = Scope::kBlock,
     .unit = Unit::kD,
     .flags = kWritesMem,
     .latency = "FILL",
     .check = [](const Insn& insn) -> std::string_view {
       return insn.operands[0].kind == OperandKind::kMem && !insn.has_operand(2)
                  ? "fill of an l1 address takes a size in bytes as third operand"
                  : "";
     },
     .exec = exec_fill,
     .npu = "pto::fill<{type}>({t}, {value}, {bytes?t.bytes});",
     .summary = "Sets the elements of a tile to one value.",
     .formula = "t[i] = value",
     .details = "Without a size, the whole tile.",
     .example = "fill.b32 t0, 0, 4096"},
    {.mnemonic = "async_load",
     .opcode = 0x0b3,
     .operands = {tile_or_l1("to", Role::kDst),
                  mem("from", kAcceptHbm),
                  size("bytes"),
                  optional(event("e"))},
     .operands2 = {tile_or_l1("to", Role::kDst),
                   mem("from", kAcceptHbm),
                   size("rows"),
                   size("row_bytes"),
                   stride("hbm_stride"),
                   stride("l1_stride"),
                   optional(event("e"))},
     .scope = Scope::kBlock,
     .unit = Unit::kD,
     .flags = kReadsMem | kWritesMem | kAsync,
     .latency = "ASYNC_LOAD",
     .exec = [](ExecContext& ctx,
                const Insn& insn) { return start(ctx, insn, CopyDirection::kHbmToL1); },
     .npu = "pto::async_load(board, l1, {to}, {from}, {bytes}[, {e}]);|"
            "pto::async_load_2d(board, l1, {to}, {from}, {rows}, {row_bytes}, {hbm_stride}, "
            "{l1_stride}[, {e}]);",
     .summary = "Starts a copy from hbm to scratchpad and does not wait.",
     .formula = "to[i] = from[i], i < bytes",
     .details = "The second form copies `rows` rows of `row_bytes` bytes; strides lead from the "
                "start of one row to the next, in bytes, and may be negative. Without an event "
                "only WAIT_ALL waits for it. Any size and alignment: bytes next to a row stay "
                "untouched.",
     .example = "async_load t0, hbm[a], 4096, e0"},
    {.mnemonic = "async_store",
     .opcode = 0x0b4,
     .operands = {mem("to", kAcceptHbm, Role::kDst),
                  tile_or_l1("from", Role::kSrc),
                  size("bytes"),
                  optional(event("e"))},
     .operands2 = {mem("to", kAcceptHbm, Role::kDst),
                   tile_or_l1("from", Role::kSrc),
                   size("rows"),
                   size("row_bytes"),
                   stride("hbm_stride"),
                   stride("l1_stride"),
                   optional(event("e"))},
     .scope = Scope::kBlock,
     .unit = Unit::kD,
     .flags = kReadsMem | kWritesMem | kAsync,
     .latency = "ASYNC_STORE",
     .exec = [](ExecContext& ctx,
                const Insn& insn) { return start(ctx, insn, CopyDirection::kL1ToHbm); },
     .npu = "pto::async_store(board, l1, {to}, {from}, {bytes}[, {e}]);|"
            "pto::async_store_2d(board, l1, {to}, {from}, {rows}, {row_bytes}, {hbm_stride}, "
            "{l1_stride}[, {e}]);",
     .summary = "Starts a copy from scratchpad to hbm and does not wait.",
     .formula = "to[i] = from[i], i < bytes",
     .details = "Forms and strides as ASYNC_LOAD. The source must not change before the copy is "
                "waited for.",
     .example = "async_store hbm[a], t0, 4096, e1"},
    {.mnemonic = "wait",
     .opcode = 0x0b5,
     .operands = {event("e")},
     .scope = Scope::kWarp,
     .unit = Unit::kS,
     .flags = kWaits,
     .latency = "WAIT",
     .exec = [](ExecContext& ctx,
                const Insn& insn) { return ctx.wait_event(insn.operands[0].index); },
     .npu = "pto::wait(board, {e});",
     .summary = "Waits until every copy tagged with the event is done.",
     .formula = "pending(e) = 0",
     .example = "wait e0"},
    {.mnemonic = "wait_all",
     .opcode = 0x0b6,
     .scope = Scope::kWarp,
     .unit = Unit::kS,
     .flags = kWaits,
     .latency = "WAIT_ALL",
     .exec = [](ExecContext& ctx, const Insn&) { return ctx.wait_all(); },
     .npu = "pto::wait_all(board);",
     .summary = "Waits until every copy of the block is done.",
     .formula = "pending = 0",
     .example = "wait_all"},
};
static_assert(kRowsComplete<kRows>);

} // namespace

std::span<const InsnDesc> copy_rows() {
  return kRows;
}

} // namespace pto::isa
