# SPDX-License-Identifier: Apache-2.0
"""Which registers are alive at the end of each block, and how many at once.

From each use back to the definition, so that the work is what it finds.
"""
from __future__ import annotations

from pypto.compiler.ir import Block, Insn, Program, VReg


def is_copy(insn: Insn) -> bool:
    """True for a move from a register to another."""
    return insn.op.startswith("mov.") and len(insn.args) == 1 and isinstance(insn.args[0], VReg)


def successors(block: Block) -> list[Block]:
    """The blocks that may follow."""
    return block.targets if block.kind in ("jump", "branch") else []


def live_out(program: Program) -> dict[int, set[VReg]]:
    """For each block, by id(), the registers that are read behind it before they are written."""
    blocks = program.blocks
    preds: dict[int, list[Block]] = {id(block): [] for block in blocks}
    defined: dict[int, set[VReg]] = {}
    exposed: dict[int, list[VReg]] = {}
    for block in blocks:
        for target in successors(block):
            preds[id(target)].append(block)
        written: set[VReg] = set()
        read: dict[VReg, None] = {}
        for insn in block.insns:
            for reg in insn.reads():
                if reg not in written:
                    read[reg] = None
            written.update(insn.dsts)
        for reg in block.uses_at_end():
            if reg not in written:
                read[reg] = None
        defined[id(block)], exposed[id(block)] = written, list(read)
    live_in: dict[int, set[VReg]] = {id(block): set(exposed[id(block)]) for block in blocks}
    out: dict[int, set[VReg]] = {id(block): set() for block in blocks}
    for block in blocks:
        for reg in exposed[id(block)]:
            work = [block]
            while work:
                for pred in preds[id(work.pop())]:
                    key = id(pred)
                    if reg in out[key]:
                        continue
                    out[key].add(reg)
                    if reg not in defined[key] and reg not in live_in[key]:
                        live_in[key].add(reg)
                        work.append(pred)
    return out


def pressure(program: Program, out: dict[int, set[VReg]]) -> dict[str, int]:
    """Of each class the most registers that are alive at once; two that hold the same value count twice."""
    most = {"r": 0, "d": 0, "p": 0}
    for block in program.blocks:
        alive: dict[str, set[VReg]] = {"r": set(), "d": set(), "p": set()}
        for reg in (*out[id(block)], *block.uses_at_end()):
            alive[reg.cls].add(reg)
        for insn in reversed(block.insns):
            for reg in insn.dsts:
                alive[reg.cls].add(reg)
            for cls, regs in alive.items():
                if len(regs) > most[cls]:
                    most[cls] = len(regs)
            for reg in insn.dsts:
                alive[reg.cls].discard(reg)
            for reg in insn.reads():
                alive[reg.cls].add(reg)
    return most
