# SPDX-License-Identifier: Apache-2.0
"""Virtual registers -> r0.., d0.., p0.. .

Phis become copies: one variable for each phi, written at the end of every block that leads to it and read
at its start. Copies whose two sides can share a register are merged (the more often they run, the
earlier), the rest is coloured greedily in order of first definition, and once more with the most
constrained registers first; the better result stays. Consecutive registers (vector loads and stores) are
coloured as one. What does not fit is kept in scratchpad (r and d) or in r registers (predicates).
"""
from __future__ import annotations

from collections import defaultdict

from pypto.compiler.ir import Addr, Block, Insn, Not, Program, VReg
from pypto.errors import CompileError

LIMITS = {"r": 127, "d": 63, "p": 8}
BUDGET = 127  # registers a lane of a block of up to 256 lanes; a d register counts twice
_SPILL_LANES = 256


class Allocation:
    """Physical number of each virtual register, and what a lane uses."""

    def __init__(self) -> None:
        self.number: dict[VReg, int] = {}
        self.used = {"r": 0, "d": 0, "p": 0}

    def name(self, reg: VReg) -> str:
        return f"{reg.cls}{self.number[reg]}"

    @property
    def registers(self) -> int:
        return self.used["r"] + 2 * self.used["d"]


def allocate(program: Program) -> Allocation:
    """Assigns registers; rewrites the program without phis. Raises CompileError where nothing helps."""
    remove_phis(program)
    spiller = Spiller(program)
    for _ in range(200):
        graph = Graph(program)
        graph.coalesce()
        allocation, failed = graph.colour()
        if allocation.registers > BUDGET and not failed:
            failed = "d" if allocation.used["d"] * 2 > BUDGET else "r"
        if not failed:
            _apply(program, allocation)
            spiller.finish()
            return allocation
        spiller.spill(graph, failed)
    raise CompileError(f"kernel {program.name} needs more registers than there are")


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


def is_copy(insn: Insn) -> bool:
    return insn.op.startswith("mov.") and len(insn.args) == 1 and isinstance(insn.args[0], VReg)


def successors(block: Block) -> list[Block]:
    return block.targets if block.kind in ("jump", "branch") else []


class Graph:
    """Who is alive together with whom; registers as bits of integers."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.regs: list[VReg] = []
        self.index: dict[VReg, int] = {}
        self.cost: dict[int, int] = defaultdict(int)
        self._number()
        n = len(self.regs)
        self.adjacent = [0] * n
        self.parent = list(range(n))
        self.members = [1 << i for i in range(n)]
        self.pressure = {"r": 0, "d": 0, "p": 0}  # most registers alive at once
        self._interfere(self._live_out())
        self.group = [reg.group for reg in self.regs]  # of each representative
        self.lane = [reg.lane for reg in self.regs]

    def _number(self) -> None:
        for block in self.program.blocks:
            for insn in block.insns:
                for reg in (*insn.dsts, *insn.reads()):
                    self._see(reg, 10 ** min(insn.loop_depth, 6))
            for reg in block.uses_at_end():
                self._see(reg, 10 ** min(block.loop_depth, 6))

    def _see(self, reg: VReg, weight: int) -> None:
        if reg not in self.index:
            self.index[reg] = len(self.regs)
            self.regs.append(reg)
        self.cost[self.index[reg]] += weight

    def _live_out(self) -> dict[int, int]:
        index = self.index
        blocks = self.program.blocks
        use: dict[int, int] = {}
        define: dict[int, int] = {}
        for block in blocks:
            used = defined = 0
            for insn in block.insns:
                for reg in insn.reads():
                    bit = 1 << index[reg]
                    if not defined & bit:
                        used |= bit
                for reg in insn.dsts:
                    defined |= 1 << index[reg]
            for reg in block.uses_at_end():
                bit = 1 << index[reg]
                if not defined & bit:
                    used |= bit
            use[id(block)], define[id(block)] = used, defined
        live_in = dict(use)
        live_out = {id(block): 0 for block in blocks}
        changed = True
        while changed:
            changed = False
            for block in reversed(blocks):
                key = id(block)
                out = 0
                for following in successors(block):
                    out |= live_in[id(following)]
                if out != live_out[key]:
                    live_out[key] = out
                    into = use[key] | (out & ~define[key])
                    if into != live_in[key]:
                        live_in[key] = into
                        changed = True
        return live_out

    def _interfere(self, live_out: dict[int, int]) -> None:
        index, adjacent = self.index, self.adjacent
        classes = {"r": 0, "d": 0, "p": 0}
        for i, reg in enumerate(self.regs):
            classes[reg.cls] |= 1 << i
        self.copies: list[tuple[int, int, int]] = []
        for block in self.program.blocks:
            live = live_out[id(block)]
            for reg in block.uses_at_end():
                live |= 1 << index[reg]
            equal = self._equal_values(block)
            for position in range(len(block.insns) - 1, -1, -1):
                insn = block.insns[position]
                written = 0
                for reg in insn.dsts:
                    written |= 1 << index[reg]
                around = live | written
                for cls in ("r", "d"):
                    alive = (around & classes[cls]).bit_count()
                    self.pressure[cls] = max(self.pressure[cls], alive)
                around &= ~equal.get(position, 0)
                if is_copy(insn):
                    self.copies.append((insn.loop_depth, index[insn.dsts[0]], index[insn.args[0]]))
                for reg in insn.dsts:
                    adjacent[index[reg]] |= around
                live &= ~written
                for reg in insn.reads():
                    live |= 1 << index[reg]
        for i, reg in enumerate(self.regs):
            adjacent[i] &= classes[reg.cls] & ~(1 << i)
        for i in range(len(self.regs)):
            bit = 1 << i
            for j in _bits(adjacent[i]):
                adjacent[j] |= bit

    def _equal_values(self, block: Block) -> dict[int, int]:
        """For each copy the registers that hold the same value behind it: they can share one."""
        value: dict[VReg, object] = {}
        equal: dict[int, int] = {}
        for position, insn in enumerate(block.insns):
            if insn.op.startswith("mov.") and len(insn.args) == 1 and not isinstance(insn.args[0], Not):
                source = insn.args[0]
                key = value.get(source, source) if isinstance(source, VReg) else (insn.op, source)
                mask = 1 << self.index[source] if isinstance(source, VReg) else 0
                for reg, held in value.items():
                    if held == key and reg.cls == insn.dsts[0].cls:
                        mask |= 1 << self.index[reg]
                if isinstance(key, VReg):
                    mask |= 1 << self.index[key]
                equal[position] = mask
                value[insn.dsts[0]] = key
                continue
            for dst in insn.dsts:
                value.pop(dst, None)
                for reg in [reg for reg, held in value.items() if held is dst]:
                    del value[reg]
        return equal

    def find(self, i: int) -> int:
        while self.parent[i] != i:
            self.parent[i] = self.parent[self.parent[i]]
            i = self.parent[i]
        return i

    def coalesce(self) -> None:
        self.copies.sort(key=lambda c: -c[0])
        for _, a, b in self.copies:
            a, b = self.find(a), self.find(b)
            if a == b or self.members[a] & self.adjacent[b]:
                continue
            if self.group[a] is not None and self.group[b] is not None:
                self._merge_groups(a, b)
            else:
                self._merge(a, b)

    def _merge(self, a: int, b: int) -> None:
        if self.group[a] is None:
            self.group[a], self.lane[a] = self.group[b], self.lane[b]
        self.parent[b] = a
        self.members[a] |= self.members[b]
        self.adjacent[a] |= self.adjacent[b]
        for i in _bits(self.adjacent[b]):
            root = self.find(i)
            self.adjacent[root] |= self.members[a]
        for i in _bits(self.adjacent[a]):
            self.adjacent[self.find(i)] |= self.members[a]

    def _merge_groups(self, a: int, b: int) -> None:
        """Two runs of consecutive registers become one, if every pair can."""
        first, second = self.group[a], self.group[b]
        if len(first) != len(second) or self.lane[a] != self.lane[b] or first is second:
            return
        pairs = [(self.find(self.index[x]), self.find(self.index[y])) for x, y in zip(first, second)]
        if any(x == y or self.members[x] & self.adjacent[y] for x, y in pairs):
            return
        for x, y in pairs:
            self._merge(x, y)

    # ------------------------------------------------------------ colouring

    def colour(self) -> tuple[Allocation, str]:
        """An allocation, and the class that did not fit (empty where all did)."""
        roots = [i for i in range(len(self.regs)) if self.find(i) == i]
        allocation = Allocation()
        for cls in "rdp":
            nodes = [i for i in roots if self.regs[i].cls == cls]
            best: dict[int, int] | None = None
            for order in (self._by_first(nodes), self._by_constraint(nodes)):
                colours = self._greedy(order, cls)
                if best is None or _height(colours) < _height(best):
                    best = colours
                if _height(best) <= (LIMITS["p"] if cls == "p" else self.pressure[cls]):
                    break  # as few as can be
            assert best is not None
            if _height(best) > LIMITS[cls]:
                return allocation, cls
            for i, number in best.items():
                for j in _bits(self.members[i]):
                    allocation.number[self.regs[j]] = number
            allocation.used[cls] = len(set(best.values()))
        return allocation, ""

    def _by_first(self, nodes: list[int]) -> list[int]:
        return sorted(nodes, key=lambda i: (self.members[i] & -self.members[i]).bit_length())

    def _by_constraint(self, nodes: list[int]) -> list[int]:
        """Smallest last: registers with few neighbours are coloured at the end."""
        root_mask = sum(1 << i for i in nodes)
        neighbours = {}
        for i in nodes:
            mask = 0
            for j in _bits(self.adjacent[i]):
                mask |= 1 << self.find(j)
            neighbours[i] = mask & root_mask
        degree = {i: neighbours[i].bit_count() for i in nodes}
        left, order = set(nodes), []
        while left:
            low = min(left, key=lambda i: (degree[i], i))
            left.remove(low)
            order.append(low)
            for j in _bits(neighbours[low]):
                if j in left:
                    degree[j] -= 1
        return order[::-1]

    def _greedy(self, order: list[int], cls: str) -> dict[int, int]:
        colours: dict[int, int] = {}
        holders: list[int] = []  # for each colour the registers that have it
        turn = 0

        def is_free(lane: int, colour: int) -> bool:
            return colour >= len(holders) or not self.adjacent[lane] & holders[colour]

        for i in order:
            if i in colours:
                continue
            lanes = [i]
            if self.group[i] is not None:
                lanes = [self.find(self.index[reg]) for reg in self.group[i]]
            base = 0
            if cls == "p":  # in turn: a predicate that stays free a while can guard what follows
                for k in range(LIMITS["p"]):
                    candidate = (turn + k) % LIMITS["p"]
                    if is_free(i, candidate):
                        base = candidate
                        break
                else:
                    base = LIMITS["p"]
                    while not is_free(i, base):
                        base += 1
                turn = base + 1
            else:
                while not all(is_free(lane, base + k) for k, lane in enumerate(lanes)):
                    base += 1
            for k, lane in enumerate(lanes):
                colours[lane] = base + k
                while len(holders) <= base + k:
                    holders.append(0)
                holders[base + k] |= self.members[lane]
        return colours


def _height(colours: dict[int, int]) -> int:
    return max(colours.values(), default=-1) + 1


def _bits(mask: int):
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


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


class Spiller:
    """Keeps registers elsewhere: predicates in r registers, the rest in scratchpad."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.slots = 0
        self.short: set[VReg] = set()  # live from one insn to the next only
        self.base: VReg | None = None

    def spill(self, graph: Graph, cls: str) -> None:
        def weight(i: int) -> float:
            degree = graph.adjacent[i].bit_count()
            total = sum(graph.cost[j] for j in _bits(graph.members[i]))
            return total / (degree + 1)

        roots = [i for i in range(len(graph.regs)) if graph.find(i) == i]
        candidates = [
            i
            for i in roots
            if graph.regs[i].cls == cls
            and graph.group[i] is None
            and not any(graph.regs[j] in self.short for j in _bits(graph.members[i]))
        ]
        if not candidates:
            what = {"r": "registers", "d": "64-bit registers", "p": "predicates"}[cls]
            raise CompileError(
                f"kernel {self.program.name} keeps more than {LIMITS[cls]} {what} alive at once, and none "
                "of them can wait in scratchpad",
                hint="split the kernel, or unroll less",
            )
        victim = min(candidates, key=weight)
        members = {graph.regs[j] for j in _bits(graph.members[victim])}
        if cls == "p":
            self._to_register(members)
        else:
            self._to_scratchpad(members, cls)

    def _rewrite(self, members: set[VReg], load, store) -> None:
        """Reads go through a fresh register that `load` fills, writes through one that `store` saves."""
        for block in self.program.blocks:
            out: list[Insn] = []
            for insn in block.insns:
                if is_copy(insn) and insn.dsts[0] in members and insn.args[0] in members:
                    continue
                read = [reg for reg in dict.fromkeys(insn.reads()) if reg in members]
                written = [reg for reg in insn.dsts if reg in members]
                after: list[Insn] = []
                if read:
                    fresh = self._fresh(read[0].cls)
                    out.append(load(fresh, insn))
                    reads = {reg: fresh for reg in read}
                    dsts = list(insn.dsts)
                    insn.rename(reads)
                    insn.dsts = dsts
                if written:
                    fresh = self._fresh(written[0].cls)
                    insn.dsts = [fresh if reg in members else reg for reg in insn.dsts]
                    after.append(store(fresh, insn))
                out += [insn, *after]
            if block.cond in members:
                fresh = self._fresh("p")
                sample = Insn("", [], [], block.place, loop_depth=block.loop_depth)
                out.append(load(fresh, sample))
                block.cond = fresh
            block.insns = out

    def _fresh(self, cls: str) -> VReg:
        reg = self.program.new_reg(cls)
        self.short.add(reg)
        return reg

    def _to_register(self, members: set[VReg]) -> None:
        kept = self.program.new_reg("r")

        def load(reg: VReg, near: Insn) -> Insn:
            return Insn("cmp.ne.u32", [reg], [kept, "0"], near.place, loop_depth=near.loop_depth)

        def store(reg: VReg, near: Insn) -> Insn:
            return Insn("sel.b32", [kept], ["1", "0", reg], near.place, loop_depth=near.loop_depth)

        self._rewrite(members, load, store)

    def _to_scratchpad(self, members: set[VReg], cls: str) -> None:
        if self.base is None:
            self.base = self.program.new_reg("r")
            self.short.add(self.base)
            self._make_base()
        base = self.base
        size = 8 if cls == "d" else 4
        offset = self.slots * _SPILL_LANES * 4
        self.slots += size // 4
        kind = "b64" if cls == "d" else "b32"

        def where() -> Addr:
            return Addr("l1", base, base if size == 8 else None, 1, offset)

        def load(reg: VReg, near: Insn) -> Insn:
            return Insn(f"load.{kind}", [reg], [where()], near.place, loop_depth=near.loop_depth)

        def store(reg: VReg, near: Insn) -> Insn:
            return Insn(f"store.{kind}", [], [where(), reg], near.place, loop_depth=near.loop_depth)

        self._rewrite(members, load, store)

    def _make_base(self) -> None:
        """base = 4 * (the lane's number in the block); the symbol stands at offset 0 of its scratchpad."""
        new = self.program.new_reg
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
            f"kernel {self.program.name} does not fit {BUDGET} registers a lane: {self.slots} of them wait in "
            f"{words * 4} bytes of scratchpad; it can be launched with up to {_SPILL_LANES} lanes a block"
        )
