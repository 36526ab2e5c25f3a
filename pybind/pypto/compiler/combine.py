# SPDX-License-Identifier: Apache-2.0
"""Between lowering and register allocation: phis that choose nothing and insns that nobody reads go; a
product that is only added becomes MAD, a comparison that is only combined CMP.and or CMP.or.
"""
from __future__ import annotations

from pypto.compiler.ir import Arg, Insn, Not, Phi, Program, VReg

_INVERSE = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}


def combine(program: Program) -> None:
    drop_trivial_phis(program)
    drop_unread(program)
    fuse(program)
    drop_unread(program)


def drop_trivial_phis(program: Program) -> None:
    """phi(x, x, itself) is x."""
    replaced: dict[VReg, VReg] = {}

    def final(reg: VReg) -> VReg:
        passed = []
        while reg in replaced:
            passed.append(reg)
            reg = replaced[reg]
        for other in passed:
            replaced[other] = reg
        return reg

    changed = True
    while changed:
        changed = False
        for block in program.blocks:
            kept: list[Phi] = []
            for phi in block.phis:
                phi.args = [final(a) if isinstance(a, VReg) else a for a in phi.args]
                others = {a for a in phi.args if a is not phi.dst}
                if len(others) == 1 and isinstance(only := next(iter(others)), VReg):
                    replaced[phi.dst] = only
                    changed = True
                else:
                    kept.append(phi)
            block.phis = kept
    if not replaced:
        return
    full = {reg: final(reg) for reg in replaced}
    for block in program.blocks:
        for insn in block.insns:
            insn.rename(full)
        if block.cond is not None:
            block.cond = full.get(block.cond, block.cond)


def drop_unread(program: Program) -> None:
    """Keeps what has effects and what that needs."""
    maker: dict[VReg, Insn | Phi] = {}
    work: list[VReg] = []
    for block in program.blocks:
        for phi in block.phis:
            maker[phi.dst] = phi
        for insn in block.insns:
            for dst in insn.dsts:
                maker[dst] = insn
            if not insn.pure:
                work += insn.reads()
        work += block.uses_at_end()
    live: set[VReg] = set()
    while work:
        reg = work.pop()
        if reg in live:
            continue
        live.add(reg)
        made = maker.get(reg)
        if isinstance(made, Phi):
            work += [a for a in made.args if isinstance(a, VReg)]
        elif made is not None:
            work += made.reads()
    for block in program.blocks:
        block.phis = [phi for phi in block.phis if phi.dst in live]
        kept: list[Insn] = []
        labels: list[str] = []
        for insn in block.insns:
            if insn.pure and not any(dst in live for dst in insn.dsts):
                if insn.label:
                    labels.append(insn.label)
                continue
            if labels:
                insn.label = insn.label or labels[-1]
                labels = []
            kept.append(insn)
        block.insns = kept


def fuse(program: Program) -> None:
    uses: dict[VReg, int] = {}

    def count(reg: VReg) -> None:
        uses[reg] = uses.get(reg, 0) + 1

    for block in program.blocks:
        for phi in block.phis:
            for arg in phi.args:
                if isinstance(arg, VReg):
                    count(arg)
        for insn in block.insns:
            for reg in insn.reads():
                count(reg)
        for reg in block.uses_at_end():
            count(reg)

    def single(arg: Arg, prefix: str, near: Insn) -> Insn | None:
        """The pure insn that makes the argument, if it is used here only and runs as often."""
        reg = arg.reg if isinstance(arg, Not) else arg
        if not isinstance(reg, VReg) or uses.get(reg) != 1 or reg.insn is None:
            return None
        made = reg.insn
        if not made.op.startswith(prefix) or not made.pure or reg.loop is not near.dsts[0].loop:
            return None
        return made

    for block in program.blocks:
        for insn in block.insns:
            if insn.op in ("add.s32", "add.u32"):
                for i in (0, 1):
                    made = single(insn.args[i], "mul." + insn.op[4:], insn)
                    if made is not None:
                        other = insn.args[1 - i]
                        insn.op = "mad." + insn.op[4:]
                        insn.args = [*made.args, other]
                        break
            elif insn.op in ("and.pred", "or.pred"):
                for i in (1, 0):
                    made = single(insn.args[i], "cmp.", insn)
                    if made is None or made.op.count(".") != 2:
                        continue
                    _, name, kind = made.op.split(".")
                    if isinstance(insn.args[i], Not):
                        if kind.startswith(("f", "bf")):  # not (a < b) is no >= where NaN may be
                            continue
                        name = _INVERSE[name]
                    other = insn.args[1 - i]
                    insn.op = f"cmp.{name}.{insn.op.split('.')[0]}.{kind}"
                    insn.args = [*made.args, other]
                    break
