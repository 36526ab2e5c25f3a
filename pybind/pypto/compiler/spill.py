# SPDX-License-Identifier: Apache-2.0
"""Registers that do not fit are kept elsewhere: predicates in r registers, the rest in scratchpad.

Where more are alive than a class has, those go that are used least for the room they take. A round does
this at every place of the kernel at once. Registers that are never kept at the same time share a slot.
"""
from __future__ import annotations

from pypto.compiler.interference import LIMITS, Graph
from pypto.compiler.ir import SCRATCHPAD_BYTES, Addr, Block, Insn, Place, Program, VReg
from pypto.compiler.liveness import is_copy
from pypto.errors import CompileError

_SPILL_LANES = 256
_SLOT_BYTES = _SPILL_LANES * 4
_NAMES = {"r": "registers", "d": "64-bit registers", "p": "predicates"}


class Spiller:
    """Rewrites the program, round by round, until everything has its place."""

    def __init__(self, program: Program, budget: int) -> None:
        self.program = program
        self.budget = budget
        self.slots = 0
        self.kept = 0
        self.short: set[VReg] = set()  # live from one insn to the next only
        self.base: VReg | None = None

    def spill(self, graph: Graph, cls: str, target: int) -> None:
        """Takes registers of the class out until `target` of them are alive anywhere, one at least.

        Raises CompileError where that cannot be.
        """
        candidates = self._candidates(graph, cls)
        chosen = self._choose(graph, cls, target, candidates)
        if not chosen:  # few enough are alive, but the groups among them leave gaps
            if not candidates:
                raise CompileError(
                    f"kernel {self.program.name} keeps more than {LIMITS[cls]} {_NAMES[cls]} alive at once, and "
                    "none of them can wait in scratchpad",
                    hint="split the kernel, or unroll less",
                )
            chosen = [min(candidates, key=lambda i: (candidates[i], graph.first[i]))]
        if cls == "p":
            homes = {i: self.program.new_reg("r") for i in chosen}
        else:
            homes = self._slots_of(graph, chosen, cls)
            self._check_room(self.slots)
            if self.base is None:
                self._make_base()
        self._rewrite({reg: homes[root] for reg in graph.regs if (root := graph.find(graph.index[reg])) in homes})

    def check_pressure(self, pressure: dict[str, int]) -> None:
        """Raises CompileError where so many registers are alive at once that there can be no room.

        Copies of a value count twice in the pressure, hence half of it.
        """
        more = [max(0, pressure[cls] // 2 - LIMITS[cls]) for cls in "rd"]
        self._check_room(more[0] + 2 * more[1])

    def _check_room(self, words: int) -> None:
        room = (SCRATCHPAD_BYTES - self.program.scratch_bytes) // _SLOT_BYTES
        if words > room:
            raise CompileError(
                f"kernel {self.program.name} keeps so many values alive at once that {words} of them would have to "
                f"wait in scratchpad, {_SLOT_BYTES} bytes each for {_SPILL_LANES} lanes; there is room for {room}",
                hint="split the kernel, unroll less, or keep the values in pto.shared(...)",
            )

    # ------------------------------------------------------------ which

    def _candidates(self, graph: Graph, cls: str) -> dict[int, float]:
        """Those that could go, with what that would cost for the room it makes."""
        short = {graph.find(graph.index[reg]) for reg in self.short if reg in graph.index}
        return {
            i: graph.cost[i] / (len(graph.adjacent[i]) + 1)
            for i in graph.roots(cls)
            if graph.group[i] is None and i not in short
        }

    def _choose(self, graph: Graph, cls: str, target: int, candidates: dict[int, float]) -> list[int]:
        """Wherever more than `target` are alive, the cheapest of them."""
        chosen: dict[int, None] = {}
        for block in self.program.blocks:
            alive: dict[int, set[VReg]] = {}

            def begin(reg: VReg) -> None:
                if reg.cls == cls and (root := graph.find(graph.index[reg])) not in chosen:
                    alive.setdefault(root, set()).add(reg)

            def cut() -> None:
                while len(alive) > target:
                    victims = [i for i in alive if i in candidates]
                    if not victims:
                        return
                    victim = min(victims, key=lambda i: (candidates[i], graph.first[i]))
                    chosen[victim] = None
                    del alive[victim]

            for reg in (*graph.live_out[id(block)], *block.uses_at_end()):
                begin(reg)
            cut()
            for insn in reversed(block.insns):
                for reg in insn.dsts:
                    begin(reg)
                cut()
                for reg in insn.dsts:
                    if reg.cls == cls and (root := graph.find(graph.index[reg])) in alive:
                        alive[root].discard(reg)
                        if not alive[root]:
                            del alive[root]
                for reg in insn.reads():
                    begin(reg)
            cut()
        return list(chosen)

    def _slots_of(self, graph: Graph, chosen: list[int], cls: str) -> dict[int, int]:
        """Offsets in scratchpad; registers that are never alive together may have the same."""
        size = 2 if cls == "d" else 1
        place: dict[int, int] = {}
        for i in chosen:
            taken = {place[j] for j in graph.adjacent[i] if j in place}
            place[i] = next(n for n in range(len(taken) + 1) if n not in taken)
        first = self.slots
        self.slots += size * (max(place.values()) + 1)
        self.kept += len(chosen)
        return {i: (first + size * n) * _SLOT_BYTES for i, n in place.items()}

    # ------------------------------------------------------------ how

    def _rewrite(self, homes: dict[VReg, "VReg | int"]) -> None:
        """Reads go through a fresh register that is loaded before, writes through one that is stored."""
        for block in self.program.blocks:
            out: list[Insn] = []
            for insn in block.insns:
                if is_copy(insn) and insn.dsts[0] in homes and homes[insn.dsts[0]] == homes.get(insn.args[0]):
                    if insn.dsts[0].cls == insn.args[0].cls:
                        continue
                reads: dict[VReg, VReg] = {}
                for reg in insn.reads():
                    if reg in homes and reg not in reads:
                        reads[reg] = self._fresh(reg.cls)
                        out.append(self._load(homes[reg], reads[reg], insn.place, insn.loop_depth))
                after: list[Insn] = []
                dsts = list(insn.dsts)
                for position, reg in enumerate(dsts):
                    if reg in homes:
                        dsts[position] = self._fresh(reg.cls)
                        after.append(self._store(homes[reg], dsts[position], insn.place, insn.loop_depth))
                if reads:
                    insn.rename(reads)
                insn.dsts = dsts
                out += [insn, *after]
            self._rewrite_end(block, homes, out)
            block.insns = out

    def _rewrite_end(self, block: Block, homes: dict[VReg, "VReg | int"], out: list[Insn]) -> None:
        if block.cond in homes:
            fresh = self._fresh("p")
            out.append(self._load(homes[block.cond], fresh, block.place, block.loop_depth))
            block.cond = fresh

    def _fresh(self, cls: str) -> VReg:
        reg = self.program.new_reg(cls)
        self.short.add(reg)
        return reg

    def _load(self, home: "VReg | int", reg: VReg, place: Place | None, depth: int) -> Insn:
        if isinstance(home, VReg):
            return Insn("cmp.ne.u32", [reg], [home, "0"], place, loop_depth=depth)
        kind = "b64" if reg.cls == "d" else "b32"
        return Insn(f"load.{kind}", [reg], [self._where(home, reg)], place, loop_depth=depth)

    def _store(self, home: "VReg | int", reg: VReg, place: Place | None, depth: int) -> Insn:
        if isinstance(home, VReg):
            return Insn("sel.b32", [home], ["1", "0", reg], place, loop_depth=depth)
        kind = "b64" if reg.cls == "d" else "b32"
        return Insn(f"store.{kind}", [], [self._where(home, reg), reg], place, loop_depth=depth)

    def _where(self, offset: int, reg: VReg) -> Addr:
        base = self.base
        return Addr("l1", base, base if reg.cls == "d" else None, 1, offset)

    def _make_base(self) -> None:
        """base = 4 * (the lane's number in the block); the symbol stands at offset 0 of its scratchpad."""
        new = self.program.new_reg
        self.base = new("r")
        self.short.add(self.base)
        y, z, linear = new("r"), new("r"), new("r")
        self.short |= {y, z, linear}
        place = self.program.blocks[0].insns[0].place if self.program.blocks[0].insns else None
        nx, ny, x = new("r"), new("r"), new("r")
        lines = [
            Insn("mov.u32", [nx], ["%ntid.x"], place),
            Insn("mov.u32", [ny], ["%ntid.y"], place),
            Insn("mov.u32", [z], ["%tid.z"], place),
            Insn("mov.u32", [y], ["%tid.y"], place),
            Insn("mov.u32", [x], ["%tid.x"], place),
            Insn("mad.u32", [linear], [z, ny, y], place),
        ]
        second, base = new("r"), self.base
        self.short.add(second)
        lines.append(Insn("mad.u32", [second], [linear, nx, x], place))
        lines.append(Insn("shl.b32", [base], [second, "2"], place))
        self.program.blocks[0].insns[:0] = lines

    def finish(self) -> None:
        if not self.slots:
            return
        words = self.slots * _SPILL_LANES
        # First of all symbols: its offset in scratchpad is then 0, as the addresses assume.
        self.program.symbols.insert(0, f".shared spilled_registers, b32[{words}]")
        self.program.scratch_bytes += words * 4
        self.program.max_lanes = _SPILL_LANES
        self.program.warnings.append(
            f"kernel {self.program.name} does not fit {self.budget} registers a lane: {self.kept} of them wait in "
            f"{words * 4} bytes of scratchpad; it can be launched with up to {_SPILL_LANES} lanes a block"
        )
