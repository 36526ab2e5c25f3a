# SPDX-License-Identifier: Apache-2.0
"""Registers that are alive together, and physical numbers for them.

Copies whose two sides can share a register are merged (the more often they run, the earlier), the rest is
coloured greedily in order of first definition, and once more with the most constrained registers first;
the better result stays. Consecutive registers (vector loads and stores) are coloured as one.

A merged set is represented by one of its registers; edges are between representatives. Merging moves the
edges of the one that has fewer, so that all merges together cost little more than the edges.
"""
from __future__ import annotations

import heapq
from typing import Callable

from pypto.compiler.ir import Block, Insn, Not, Program, VReg
from pypto.compiler.liveness import is_copy, live_out, pressure

LIMITS = {"r": 127, "d": 63, "p": 8}


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


class Graph:
    """Who is alive together with whom; registers by their number in order of appearance."""

    def __init__(self, program: Program, check: Callable[[dict[str, int]], None] | None = None) -> None:
        """`check` is told how many registers are alive at once, before all that are get their edges."""
        self.program = program
        self.regs: list[VReg] = []
        self.index: dict[VReg, int] = {}
        self.cost: list[int] = []  # accesses of a representative's set, those in loops weigh more
        self._number()
        n = len(self.regs)
        self.adjacent: list[set[int]] = [set() for _ in range(n)]
        self.parent = list(range(n))
        self.first = list(range(n))  # of a representative's set
        self.live_out = live_out(program)
        self.pressure = pressure(program, self.live_out)
        if check is not None:
            check(self.pressure)
        self._interfere(self.live_out)
        self.group = [reg.group for reg in self.regs]  # of each representative
        self.lane = [reg.lane for reg in self.regs]

    def _number(self) -> None:
        for block in self.program.blocks:
            for insn in block.insns:
                weight = 10 ** min(insn.loop_depth, 6)
                for reg in insn.dsts:
                    self._see(reg, weight)
                for reg in insn.reads():
                    self._see(reg, weight)
            for reg in block.uses_at_end():
                self._see(reg, 10 ** min(block.loop_depth, 6))

    def _see(self, reg: VReg, weight: int) -> None:
        i = self.index.get(reg)
        if i is None:
            self.index[reg] = len(self.regs)
            self.regs.append(reg)
            self.cost.append(weight)
        else:
            self.cost[i] += weight

    def _interfere(self, live_out: dict[int, set[VReg]]) -> None:
        index, adjacent = self.index, self.adjacent
        self.copies: list[tuple[int, int, int]] = []
        for block in self.program.blocks:
            live: dict[str, set[int]] = {"r": set(), "d": set(), "p": set()}
            for reg in (*live_out[id(block)], *block.uses_at_end()):
                live[reg.cls].add(index[reg])
            behind: dict[int, set[int]] = {}  # at moves: what is alive behind them
            for position in range(len(block.insns) - 1, -1, -1):
                insn = block.insns[position]
                for reg in insn.dsts:
                    live[reg.cls].add(index[reg])
                if is_copy(insn):
                    self.copies.append((insn.loop_depth, index[insn.dsts[0]], index[insn.args[0]]))
                if _is_move(insn):
                    behind[position] = set(live[insn.dsts[0].cls])
                else:
                    for reg in insn.dsts:
                        adjacent[index[reg]] |= live[reg.cls]
                for reg in insn.dsts:
                    live[reg.cls].discard(index[reg])
                for reg in insn.reads():
                    live[reg.cls].add(index[reg])
            self._moves_interfere(block, behind)
        for i, others in enumerate(adjacent):
            others.discard(i)
        for i, others in enumerate(adjacent):
            for j in others:
                adjacent[j].add(i)

    def _moves_interfere(self, block: Block, behind: dict[int, set[int]]) -> None:
        """A move's target may share a register with whoever holds the same value behind it."""
        value: dict[int, object] = {}  # of registers that a move has set
        holders: dict[object, set[int]] = {}
        index = self.index
        for position, insn in enumerate(block.insns):
            around = behind.get(position)
            if around is None:
                for reg in insn.dsts:
                    i = index[reg]
                    if i in value:
                        holders[value.pop(i)].discard(i)
                    for other in holders.pop(i, ()):
                        del value[other]
                continue
            dst, source = index[insn.dsts[0]], insn.args[0]
            if isinstance(source, VReg):
                key: object = value.get(index[source], index[source])
                around.discard(index[source])
            else:
                key = (insn.op, source)
            if isinstance(key, int):
                around.discard(key)
            around -= holders.get(key, set())
            self.adjacent[dst] |= around
            if dst in value:
                holders[value[dst]].discard(dst)
            for other in holders.pop(dst, ()):
                del value[other]
            value[dst] = key
            holders.setdefault(key, set()).add(dst)

    def find(self, i: int) -> int:
        """The representative of a register."""
        parent = self.parent
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    def coalesce(self) -> None:
        """Merges the sides of copies that are never alive together with different values."""
        self.copies.sort(key=lambda c: -c[0])
        for _, a, b in self.copies:
            a, b = self.find(a), self.find(b)
            if a == b or a in self.adjacent[b]:
                continue
            if self.group[a] is not None and self.group[b] is not None:
                self._merge_groups(a, b)
            else:
                self._merge(a, b)

    def _merge(self, a: int, b: int) -> None:
        if self.group[a] is None:
            group, lane = self.group[b], self.lane[b]
        else:
            group, lane = self.group[a], self.lane[a]
        if len(self.adjacent[a]) < len(self.adjacent[b]):
            a, b = b, a
        self.group[a], self.lane[a] = group, lane
        self.parent[b] = a
        self.first[a] = min(self.first[a], self.first[b])
        self.cost[a] += self.cost[b]
        for i in self.adjacent[b]:
            others = self.adjacent[i]
            others.discard(b)
            others.add(a)
        self.adjacent[a] |= self.adjacent[b]
        self.adjacent[b] = set()

    def _merge_groups(self, a: int, b: int) -> None:
        """Two runs of consecutive registers become one, if every pair can."""
        first, second = self.group[a], self.group[b]
        if len(first) != len(second) or self.lane[a] != self.lane[b] or first is second:
            return
        pairs = [(self.find(self.index[x]), self.find(self.index[y])) for x, y in zip(first, second)]
        if any(x == y or x in self.adjacent[y] for x, y in pairs):
            return
        for x, y in pairs:
            self._merge(x, y)

    # ------------------------------------------------------------ colouring

    def roots(self, cls: str) -> list[int]:
        """Representatives of a class, in order of first appearance."""
        nodes = [i for i, reg in enumerate(self.regs) if self.parent[i] == i and reg.cls == cls]
        return sorted(nodes, key=lambda i: self.first[i])

    def colour(self) -> tuple[Allocation, str]:
        """An allocation, and the class that did not fit (empty where all did)."""
        allocation = Allocation()
        colour_of: dict[int, int] = {}
        for cls in "rdp":
            best: dict[int, int] | None = None
            nodes = self.roots(cls)
            for order in (lambda: nodes, lambda: self._by_constraint(nodes)):
                colours = self._greedy(order(), cls)
                if best is None or _height(colours) < _height(best):
                    best = colours
                if _height(best) <= (LIMITS["p"] if cls == "p" else self.pressure[cls]):
                    break  # as few as can be
            assert best is not None
            if _height(best) > LIMITS[cls]:
                return allocation, cls
            colour_of.update(best)
            allocation.used[cls] = len(set(best.values()))
        for i, reg in enumerate(self.regs):
            allocation.number[reg] = colour_of[self.find(i)]
        return allocation, ""

    def _by_constraint(self, nodes: list[int]) -> list[int]:
        """Smallest last: registers with few neighbours are coloured at the end."""
        degree = {i: len(self.adjacent[i]) for i in nodes}
        heap = [(degree[i], self.first[i], i) for i in nodes]
        heapq.heapify(heap)
        order: list[int] = []
        while heap:
            count, _, low = heapq.heappop(heap)
            if degree.get(low) != count:
                continue  # an entry from before a neighbour left
            del degree[low]
            order.append(low)
            for j in self.adjacent[low]:
                if j in degree:
                    degree[j] -= 1
                    heapq.heappush(heap, (degree[j], self.first[j], j))
        return order[::-1]

    def _greedy(self, order: list[int], cls: str) -> dict[int, int]:
        colours: dict[int, int] = {}
        turn = 0
        for i in order:
            if i in colours:
                continue
            lanes = [i]
            if self.group[i] is not None:
                lanes = [self.find(self.index[reg]) for reg in self.group[i]]
            taken = [{colours[j] for j in self.adjacent[lane] if j in colours} for lane in lanes]
            base = 0
            if cls == "p":  # in turn: a predicate that stays free a while can guard what follows
                for k in range(LIMITS["p"]):
                    base = (turn + k) % LIMITS["p"]
                    if base not in taken[0]:
                        break
                else:
                    base = LIMITS["p"]
                    while base in taken[0]:
                        base += 1
                turn = base + 1
            else:
                while any(base + k in used for k, used in enumerate(taken)):
                    base += 1
            for k, lane in enumerate(lanes):
                colours[lane] = base + k
        return colours


def _height(colours: dict[int, int]) -> int:
    return max(colours.values(), default=-1) + 1


def _is_move(insn: Insn) -> bool:
    """True for a move of a register or constant as it is."""
    return insn.op.startswith("mov.") and len(insn.args) == 1 and not isinstance(insn.args[0], Not)
