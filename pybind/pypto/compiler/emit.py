# SPDX-License-Identifier: Apache-2.0
"""Blocks with registers -> PTO text: what is empty goes, short arms of an if get a guard instead of a
branch, blocks that follow each other need no jump.
"""
from __future__ import annotations

import re
from typing import Any

from pypto.compiler.ir import Addr, Block, Insn, Not, Place, Program, VReg
from pypto.compiler.interference import Allocation
from pypto.compiler.liveness import successors

_ARM = 5  # insns of an arm that are cheaper under a guard than behind a branch
_ARMS = 6  # of both arms together
_VECTOR = re.compile(r"\.x[24]\b")


class Line:
    """One line of the listing: text, and the Python place of an insn."""

    def __init__(self, text: str, place: Place | None = None, is_insn: bool = False) -> None:
        self.text = text
        self.place = place
        self.is_insn = is_insn


def emit(program: Program, allocation: Allocation, head: str) -> list[Line]:
    """The lines of the kernel, `.kernel` to `.end`."""
    tidy(program)
    drop_repeated_constants(program, allocation)
    while if_convert(program, allocation):
        tidy(program)
    printer = Printer(program, allocation)
    lines = [Line(head)]
    if program.max_lanes:
        lines.append(Line(f".maxlanes {program.max_lanes}"))
    lines += [Line(symbol) for symbol in program.symbols]
    return [*lines, *printer.body(), Line(".end")]


# ---------------------------------------------------------------- shape


def is_empty(block: Block) -> bool:
    return not block.insns


def tidy(program: Program) -> None:
    """Skips empty blocks, joins blocks that only follow each other, drops what nobody reaches."""
    for block in program.blocks:
        block.targets = [_behind(target) for target in block.targets]
        if block.kind == "branch" and block.targets[0] is block.targets[1]:
            block.kind, block.targets, block.cond = "jump", block.targets[:1], None
    entry = program.blocks[0]
    reached: set[int] = set()
    work = [entry]
    while work:
        block = work.pop()
        if id(block) not in reached:
            reached.add(id(block))
            work += successors(block)
    program.blocks = [b for b in program.blocks if id(b) in reached]
    _count_preds(program)
    for block in program.blocks:
        while block.kind == "jump":
            target = block.targets[0]
            if len(target.preds) != 1 or target is entry or target is block:
                break
            block.insns += target.insns
            block.kind, block.targets = target.kind, target.targets
            block.cond, block.negated, block.place = target.cond, target.negated, target.place
            target.insns, target.kind, target.targets, target.cond = [], "gone", [], None
    program.blocks = [b for b in program.blocks if b.kind != "gone"]
    _count_preds(program)


def _behind(block: Block) -> Block:
    """Where a jump to the block ends up. The blocks on the way are led there, so that none is passed twice."""
    passed: dict[int, Block] = {}
    while is_empty(block) and block.kind == "jump" and id(block) not in passed:
        passed[id(block)] = block
        block = block.targets[0]
    for other in passed.values():
        if other is not block:
            other.targets = [block]
    return block


def _count_preds(program: Program) -> None:
    for block in program.blocks:
        block.preds = []
    for block in program.blocks:
        for target in successors(block):
            target.preds.append(block)


def drop_repeated_constants(program: Program, allocation: Allocation) -> None:
    """Removes moves of a constant to a register that holds it already."""
    number = allocation.number
    held_at_end: dict[int, dict[tuple[str, int], tuple[str, str]]] = {}
    for block in program.blocks:
        held: dict[tuple[str, int], tuple[str, str]] = {}
        if len(block.preds) == 1:
            held = dict(held_at_end.get(id(block.preds[0]), {}))
        kept: list[Insn] = []
        for insn in block.insns:
            source = insn.args[0] if insn.args else None
            is_constant = (
                insn.op.startswith("mov.")
                and isinstance(source, str)
                and source not in ("%clock", "%activemask")
            )
            for dst in insn.dsts:
                place = (dst.cls, number[dst])
                if is_constant and held.get(place) == (insn.op, source) and not insn.label:
                    break
                held.pop(place, None)
                if is_constant:
                    held[place] = (insn.op, source)
            else:
                kept.append(insn)
        block.insns = kept
        held_at_end[id(block)] = held


def if_convert(program: Program, allocation: Allocation) -> bool:
    """Guards instead of branches around a few insns; true if something changed."""
    changed = False
    for block in program.blocks:
        if block.kind != "branch":
            continue
        when, otherwise = block.targets
        for arm, other, negated in (
            (when, otherwise, block.negated),
            (otherwise, when, not block.negated),
        ):
            if not _can_guard(arm, block, allocation):
                continue
            if arm.kind == "exit":
                if arm.insns or len(arm.preds) == 1:
                    if not arm.insns:
                        continue  # printed as a guarded exit
                    if arm.insns[-1].op != "trap":
                        continue
                    _guard(arm, block, negated)
                    block.kind, block.targets, block.cond = "jump", [other], None
                    changed = True
                    break
                continue
            join = arm.targets[0]
            if join is other:
                _guard(arm, block, negated)
                block.kind, block.targets, block.cond = "jump", [join], None
                changed = True
                break
            both = len(arm.insns) + len(other.insns)
            if other.kind == "jump" and other.targets[0] is join and both <= _ARMS:
                if _can_guard(other, block, allocation):
                    _guard_both(block, (arm, negated), (other, not negated), allocation)
                    block.kind, block.targets, block.cond = "jump", [join], None
                    changed = True
                    break
    return changed


def _can_guard(arm: Block, block: Block, allocation: Allocation) -> bool:
    if len(arm.preds) != 1 or arm is block or arm.kind not in ("jump", "exit"):
        return False
    if len(arm.insns) > _ARM:
        return False
    guard = allocation.number[block.cond]
    for insn in arm.insns:
        if insn.guard is not None or not insn.lane_scoped:
            return False
        if any(dst.cls == "p" and allocation.number[dst] == guard for dst in insn.dsts):
            return False
    return True


def _guard_both(
    block: Block, first: tuple[Block, bool], second: tuple[Block, bool], allocation: Allocation
) -> None:
    """Both arms of an if. Constants come first, and without a guard where the other arm overwrites them;
    what loads comes last: whoever writes the same register then would wait for the load."""
    if any(insn.op.startswith("load") for insn in first[0].insns):
        first, second = second, first
    number = allocation.number

    def name(reg: VReg) -> tuple[str, int]:
        return reg.cls, number[reg]

    constants = all(
        insn.op.startswith("mov.") and isinstance(insn.args[0], str) for insn in first[0].insns
    )
    set_ = {name(dst) for insn in first[0].insns for dst in insn.dsts}
    overwritten = {name(dst) for insn in second[0].insns for dst in insn.dsts}
    read = {name(reg) for insn in second[0].insns for reg in insn.reads()}
    if constants and set_ <= overwritten and not set_ & (read | {name(block.cond)}):
        block.insns += first[0].insns
        first[0].insns = []
    else:
        _guard(first[0], block, first[1])
    _guard(second[0], block, second[1])


def _guard(arm: Block, block: Block, negated: bool) -> None:
    for insn in arm.insns:
        insn.guard, insn.guard_negated = block.cond, negated
    block.insns += arm.insns
    arm.insns = []


# ---------------------------------------------------------------- text


class Printer:
    def __init__(self, program: Program, allocation: Allocation) -> None:
        self.program = program
        self.allocation = allocation
        self.lines: list[Line] = []

    def body(self) -> list[Line]:
        blocks = self.program.blocks
        following = dict(zip(map(id, blocks), [*blocks[1:], None]))
        ends: list[tuple[Block, list[Any]]] = []
        wanted: set[int] = set()
        for block in blocks:
            jumps = self._jumps(block, following[id(block)])
            ends.append((block, jumps))
            wanted |= {id(target) for _, target in jumps if target is not None}
        names: dict[int, str] = {}
        used: dict[str, int] = {}
        for block in blocks:
            if id(block) in wanted:
                base = block.name or "block"
                used[base] = used.get(base, 0) + 1
                names[id(block)] = f"{base}_{used[base]}"
        falls = True  # the block before goes on here
        for block, jumps in ends:
            if _is_exit(block) and not falls and id(block) not in names:
                continue
            falls = not (block.kind == "exit" or any(not text.startswith("@") for text, _ in jumps))
            if id(block) in names:
                self.lines.append(Line(f"{names[id(block)]}:"))
            for insn in block.insns:
                self._insn(insn)
            for text, target in jumps:
                if target is not None:
                    guard, _, op = text.rpartition(" ")
                    text = f"{guard} bra {names[id(target)]}".strip()
                self._line(text, block.place)
        return self.lines

    def _jumps(self, block: Block, following: Block | None) -> list[tuple[str, Block | None]]:
        """(text, target) of the jumps at the end; a target is printed as its label."""
        if block.kind == "exit":
            ended = block.insns and block.insns[-1].op == "trap" and block.insns[-1].guard is None
            return [] if ended else [("exit", None)]
        if block.kind == "jump":
            target = block.targets[0]
            if target is following:
                return []
            if _is_exit(target):
                return [("exit", None)]
            return [("bra", target)]
        when, otherwise = block.targets
        guard = self.allocation.name(block.cond)
        yes = f"@{'!' if block.negated else ''}{guard}"
        no = f"@{'' if block.negated else '!'}{guard}"
        jumps: list[tuple[str, Block | None]] = []
        if _is_exit(when) and when is not following:
            jumps.append((f"{yes} exit", None))
            left: Block | None = otherwise
        elif _is_exit(otherwise) and otherwise is not following:
            jumps.append((f"{no} exit", None))
            left = when
        elif _is_exit(when) and len(when.preds) == 1:
            jumps.append((f"{yes} exit", None))
            left = otherwise
        elif when is following:
            return [(f"{no} bra", otherwise)]
        else:
            jumps.append((f"{yes} bra", when))
            left = otherwise
        if left is not following:
            jumps.append(("exit", None) if _is_exit(left) else ("bra", left))
        return jumps

    def _line(self, text: str, place: Place | None) -> None:
        guard, _, rest = text[1:].partition(" ") if text.startswith("@") else ("", "", text)
        prefix = f"@{guard} " if guard else "    "
        mnemonic, _, operands = rest.partition(" ")
        self.lines.append(
            Line(f"{prefix:<4}{mnemonic:<12} {operands}".rstrip(), place, True)
        )

    def _insn(self, insn: Insn) -> None:
        if insn.label:
            self.lines.append(Line(f"{insn.label}:"))
        regs = [self.allocation.name(dst) for dst in insn.dsts]
        args = [self._arg(arg) for arg in insn.args]
        if _VECTOR.search(insn.op):  # consecutive registers are named by their first
            if regs:
                regs = regs[:1]
            else:
                args = args[:2]
        written = regs or ([insn.dst_text] if insn.dst_text else [])
        guard = ""
        if insn.guard is not None:
            guard = f"@{'!' if insn.guard_negated else ''}{self.allocation.name(insn.guard)} "
        self._line(f"{guard}{insn.op} {', '.join([*written, *args])}", insn.place)

    def _arg(self, arg: Any) -> str:
        if isinstance(arg, str):
            return arg
        if isinstance(arg, VReg):
            return self.allocation.name(arg)
        if isinstance(arg, Not):
            return "!" + self.allocation.name(arg.reg)
        assert isinstance(arg, Addr)
        parts = []
        if arg.base is not None:
            parts.append(arg.base if isinstance(arg.base, str) else self.allocation.name(arg.base))
        if arg.index is not None:
            index = self.allocation.name(arg.index)
            parts.append(f"{index}*{arg.scale}" if arg.scale != 1 or isinstance(arg.base, VReg) else index)
        text = " + ".join(parts)
        if arg.offset:
            text += f" {'-' if arg.offset < 0 else '+'} {abs(arg.offset)}" if text else str(arg.offset)
        return f"{arg.space}[{text or '0'}]"


def _is_exit(block: Block) -> bool:
    return is_empty(block) and block.kind == "exit"
