# SPDX-License-Identifier: Apache-2.0
"""Virtual registers -> r0.., d0.., p0.. .

Phis become copies: one variable for each phi, written at the end of every block that leads to it and read
at its start. interference.py says who shares a register, spill.py moves elsewhere what does not fit; each
of its rounds treats all places where too many are alive, so that a few rounds do whatever the size.
"""
from __future__ import annotations

from pypto.compiler.interference import LIMITS, Allocation, Graph
from pypto.compiler.ir import Insn, Program
from pypto.compiler.liveness import is_copy, successors
from pypto.compiler.spill import Spiller
from pypto.errors import CompileError

BUDGET = 127  # registers a lane of a block of up to 256 lanes; a d register counts twice
_ROUNDS = 100

__all__ = ["Allocation", "Graph", "allocate", "remove_phis", "successors"]


def allocate(program: Program) -> Allocation:
    """Assigns registers; rewrites the program without phis. Raises CompileError where nothing helps."""
    remove_phis(program)
    spiller = Spiller(program, BUDGET)
    for _ in range(_ROUNDS):
        graph = Graph(program, spiller.check_pressure)
        graph.coalesce()
        allocation, failed = graph.colour()
        target = LIMITS.get(failed, 0)
        if allocation.registers > BUDGET and not failed:
            failed, target = _too_many(allocation)
        if not failed:
            _apply(program, allocation)
            spiller.finish()
            return allocation
        spiller.spill(graph, failed, target)
    raise CompileError(f"kernel {program.name} needs more registers than there are")


def _too_many(allocation: Allocation) -> tuple[str, int]:
    """Where both classes fit, but not together: the class that gives way, and what it may keep."""
    r, d = allocation.used["r"], allocation.used["d"]
    if r >= 2 * d:
        return "r", BUDGET - 2 * d
    return "d", (BUDGET - r) // 2


def remove_phis(program: Program) -> None:
    for block in program.blocks:
        starts = []
        for phi in block.phis:
            variable = program.new_reg(phi.dst.cls)
            for pred, arg in zip(block.preds, phi.args):
                copy = Insn(phi.op, [variable], [arg], pred.place, loop_depth=pred.loop_depth)
                pred.insns.append(copy)
            op = phi.op if phi.dst.cls == "p" else "mov.b64" if phi.dst.cls == "d" else "mov.b32"
            starts.append(Insn(op, [phi.dst], [variable], None, loop_depth=block.loop_depth))
        block.insns[:0] = starts
        block.phis = []


def _apply(program: Program, allocation: Allocation) -> None:
    """Drops copies of a register to itself."""
    number = allocation.number
    for block in program.blocks:
        kept: list[Insn] = []
        label = ""
        for insn in block.insns:
            if is_copy(insn) and number[insn.dsts[0]] == number[insn.args[0]]:
                label = label or insn.label
                continue
            if label:
                insn.label, label = insn.label or label, ""
            kept.append(insn)
        block.insns = kept
