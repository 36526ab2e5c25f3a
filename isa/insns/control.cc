// SPDX-License-Identifier: Apache-2.0
// Control flow, barriers and the insns that speak to the user: BRA, CALL, RET, EXIT, NOP, BARRIER,
// BARRIER_BLOCK, PRINT, TRAP.
#include "isa/insns/families.h"
#include "isa/row_check.h"

namespace pto::isa {

namespace {

using namespace type_sets;

constexpr OperandSpec print_value() {
  return {.name = "a",
          .role = Role::kSrc,
          .accepts = kAcceptValue,
          .type = TypeRule::kAny,
          .variadic = true};
}

constexpr InsnDesc kRows[] = {
    {.mnemonic = "bra",
     .opcode = 0x0e0,
     .operands = {label("target")},
     .scope = Scope::kWarp,
     .unit = Unit::kS,
     .flags = kBranch,
     .latency = "BRA",
     .exec =
         [](ExecContext& ctx, const Insn& insn) {
           return ctx.branch(static_cast<uint32_t>(insn.operands[0].bits));
         },
     .npu = "goto {target};",
     .summary = "Jumps; under a guard, lane by lane.",
     .formula = "pc = target",
     .details = "Lanes that a guarded branch splits run one side after the other, first those that "
                "jump not, and rejoin at the branch's immediate post-dominator, which the "
                "assembler computes for any control flow, irreducible graphs included.",
     .example = "bra here\nhere:"},
    {.mnemonic = "call",
     .opcode = 0x0e1,
     .operands = {label("function")},
     .scope = Scope::kWarp,
     .unit = Unit::kS,
     .flags = kCall,
     .latency = "CALL",
     .exec =
         [](ExecContext& ctx, const Insn& insn) {
           return ctx.call(static_cast<uint32_t>(insn.operands[0].bits));
         },
     .npu = "{function}();",
     .summary = "Calls a .func.",
     .formula = "push pc + 1; pc = function",
     .details = "Registers are shared with the caller. Under a guard the other lanes wait at the "
                "next insn. Recursion works up to the depth of the machine profile; past it is a "
                "fault.",
     .example = "call helper"},
    {.mnemonic = "ret",
     .opcode = 0x0e2,
     .scope = Scope::kWarp,
     .unit = Unit::kS,
     .flags = kReturn,
     .latency = "RET",
     .exec = [](ExecContext& ctx, const Insn&) { return ctx.ret(); },
     .npu = "return;",
     .summary = "Returns from a .func.",
     .formula = "pc = pop",
     .details = "Lanes that return early wait until all lanes of the same call have returned.",
     .example = "ret"},
    {.mnemonic = "exit",
     .opcode = 0x0e3,
     .scope = Scope::kLane,
     .unit = Unit::kS,
     .flags = kEndsLane,
     .latency = "EXIT",
     .exec = [](ExecContext& ctx, const Insn&) { return ctx.exit_lanes(); },
     .npu = "return;",
     .summary = "Ends the lane.",
     .formula = "lane ends",
     .details = "Barriers do not wait for lanes that have ended.",
     .example = "exit"},
    {.mnemonic = "nop",
     .opcode = 0x0e4,
     .operands = {optional(imm("cycles"))},
     .scope = Scope::kWarp,
     .unit = Unit::kS,
     .latency = "NOP",
     .exec =
         [](ExecContext& ctx, const Insn& insn) {
           return ctx.nop(insn.has_operand(0) ? static_cast<uint32_t>(insn.operands[0].bits) : 1);
         },
     .npu = "pto::nop([{cycles}]);",
     .summary = "Does nothing, for a number of cycles.",
     .formula = "-",
     .details = "The default is 1 cycle.",
     .example = "nop 15"},
    {.mnemonic = "barrier",
     .opcode = 0x0e5,
     .scope = Scope::kWarp,
     .unit = Unit::kS,
     .flags = kWarpBarrier,
     .latency = "BARRIER",
     .exec = [](ExecContext& ctx, const Insn&) { return ctx.barrier_warp(); },
     .npu = "pto::barrier();",
     .summary = "Joins the lanes of this warp, and no more than these.",
     .formula = "join lanes of warp",
     .details = "It does not join the block: use BARRIER_BLOCK where other warps' data is read.",
     .example = "barrier"},
    {.mnemonic = "barrier_block",
     .opcode = 0x0e6,
     .operands = {optional(imm("id"))},
     .scope = Scope::kWarp,
     .unit = Unit::kS,
     .flags = kBlockBarrier,
     .latency = "BARRIER_BLOCK",
     .check = [](const Insn& insn) -> std::string_view {
       return insn.has_operand(0) && insn.operands[0].bits >= kBarrierCount
                  ? "a barrier number past 15"
                  : "";
     },
     .exec =
         [](ExecContext& ctx, const Insn& insn) {
           return ctx.barrier_block(
               insn.has_operand(0) ? static_cast<unsigned>(insn.operands[0].bits) : 0);
         },
     .npu = "pto::barrier_block([{id}]);",
     .summary = "Joins every warp of the block.",
     .formula = "join warps of block",
     .details = "Memory operations before it are visible to the block after it. Numbers 0 to 15 "
                "name different barriers; all warps must arrive at the same one.",
     .example = "barrier_block"},
    {.mnemonic = "print",
     .opcode = 0x0e7,
     .operands =
         {{.name = "format", .role = Role::kSrc, .accepts = kAcceptString, .type = TypeRule::kNone},
          print_value()},
     .scope = Scope::kLane,
     .unit = Unit::kS,
     .flags = kPrints,
     .latency = "PRINT",
     .exec = [](ExecContext& ctx, const Insn& insn) { return ctx.print(insn); },
     .npu = "PTO_PRINT({format}[, {a}]);",
     .summary = "Prints one line for each active lane.",
     .formula = "stdout <- format(a, ...)",
     .details = "%d signed, %u unsigned, %x hexadecimal, %f f32, %p a 64-bit address, %% a percent "
                "sign; %d, %u and %x take 64 bits from a d register. At most 11 values. Printing "
                "costs no simulated time.",
     .example = "print \"lane %d\", r0"},
    {.mnemonic = "trap",
     .opcode = 0x0e8,
     .operands = {optional(imm("code"))},
     .scope = Scope::kLane,
     .unit = Unit::kS,
     .flags = kEndsLane | kTraps,
     .latency = "TRAP",
     .exec =
         [](ExecContext& ctx, const Insn& insn) {
           return ctx.trap(insn.has_operand(0) ? static_cast<uint32_t>(insn.operands[0].bits) : 0);
         },
     .npu = "pto::trap([{code}]);",
     .summary = "Stops the kernel and reports the place and a code.",
     .formula = "stop",
     .example = "trap 7"},
};
static_assert(kRowsComplete<kRows>);

} // namespace

std::span<const InsnDesc> control_rows() {
  return kRows;
}

} // namespace pto::isa
