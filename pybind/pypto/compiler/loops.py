# SPDX-License-Identifier: Apache-2.0
"""Loops: the values that they carry from round to round.

The header of a loop must guess what its back edge will bring. Where the guess was wrong the right answer is
noted in `hints` and lowering starts over (`Restart`).
"""
from __future__ import annotations

from typing import Any

from pypto.compiler.builder import (
    AtEnd,
    Builder,
    Edge,
    Loop,
    Restart,
    Scope,
    copy_op,
    describe,
    fits,
    is_scalar,
    same,
)
from pypto.compiler.ir import Block, Conflict, Const, Phi, Ptr, Tuple, Value
from pypto.types import DType


class Loops(Builder):
    def open_loop(self, key: Any, header: Block, changed: list[str]) -> Loop | None:
        """Places a preheader and the header of a loop that may change the names `changed`."""
        preheader = Block("before")
        edges = header.entries
        preheader.entries, header.entries = edges, []
        for edge in edges:
            edge.block.targets = [preheader if t is header else t for t in edge.block.targets]
        if not self.place(preheader, self.scope):
            return None
        preheader = self.block  # where the join became selects, the block before it
        scope = self.scope
        site = ("site", id(self.node))
        loop_guesses: set[str] = set()
        loop = Loop(self.loop, preheader, header, scope)
        loop.site, loop.guessed = site, loop_guesses
        initial = {}
        for name in changed:
            if name not in self.env:
                continue
            hint = self.hints.get((key, name))
            if hint is None:  # another copy of the same loop most likely wants the same
                hint = self.hints.get((site, name))
                if hint is not None:
                    loop_guesses.add(name)
            if hint is not None:
                self.env[name] = hint.apply(name, self.env[name])
            initial[name] = self.loop_start(self.env[name])
        preheader.kind = "jump"
        preheader.targets = [header]
        preheader.place = self.place_now
        entry = Edge(preheader, self.env, scope)
        header.preds = [preheader]
        self.program.blocks.append(header)
        self.loop = loop
        header.loop_depth = loop.depth
        self.block = header
        self.scope = Scope(scope)
        self.env = dict(self.env)
        loop.carried = {}
        loop.key = key
        for name, entity in initial.items():
            entity, carried = self.carry(entity, entry, header)
            self.env[name] = entity
            loop.carried[name] = carried
        return loop

    def loop_start(self, entity: Any) -> Any:
        """The form in which an entity enters a loop that may change it."""
        if isinstance(entity, Ptr):
            unit = entity.elem.size if entity.offset % entity.elem.size == 0 else 1
            return Ptr(
                entity.space,
                entity.base,
                entity.elem,
                [(self.index_value(entity, unit), unit)],
                0,
                entity.buffer,
            )
        if isinstance(entity, Tuple):
            return Tuple([self.loop_start(item) for item in entity.items])
        return entity

    def carry(self, entity: Any, entry: Edge, header: Block) -> tuple[Any, Any]:
        """The entity inside the loop, and what close_loop needs to complete it."""
        if is_scalar(entity):
            type = entity.type or self.common_type([entity])
            reg = self.program.new_reg(type.register_class)
            reg.loop = self.loop
            phi = Phi(reg, [self.phi_arg(entity, type, entry)], copy_op(type))
            header.phis.append(phi)
            return Value(type, reg), ("scalar", phi, type, entity)
        if isinstance(entity, Ptr):
            index, carried = self.carry(entity.terms[0][0], entry, header)
            unit = entity.terms[0][1]
            inside = Ptr(entity.space, entity.base, entity.elem, [(index, unit)], 0, entity.buffer)
            return inside, ("pointer", carried, entity, unit)
        if isinstance(entity, Tuple):
            pairs = [self.carry(item, entry, header) for item in entity.items]
            return Tuple([p[0] for p in pairs]), ("tuple", [p[1] for p in pairs])
        return entity, ("same", entity)

    def close_loop(self, loop: Loop) -> None:
        """Completes the phis of the header from its back edges."""
        header = loop.header
        for edge in header.entries:
            header.preds.append(edge.block)
        for edge in header.entries:
            for name, carried in loop.carried.items():
                self.complete(loop, name, carried, edge.env.get(name), edge)
        self.loop = loop.parent

    def complete(self, loop: Loop, name: str, carried: Any, entity: Any, edge: Edge) -> None:
        kind = carried[0]
        if kind == "scalar":
            _, phi, type, start = carried
            if is_scalar(entity) and self.common_type([Value(type, ""), entity]) is type:
                phi.args.append(self.phi_arg(entity, type, edge))
                return
            if is_scalar(entity) and isinstance(start, Const) and start.type is None:
                common = self.common_type([start, entity])
                if common is None and isinstance(start.value, int) and isinstance(entity, Value):
                    common = entity.type if fits(start.value, entity.type) else None
                if common is not None and common is not type:
                    self.restart(loop, name, TypeHint(common))
            if isinstance(entity, Conflict) and isinstance(start, Const) and start.type is None:
                others = entity.types - {type}
                if len(others) == 1 and fits(start.value, next(iter(others))):
                    self.restart(loop, name, TypeHint(others.pop()))
        elif kind == "pointer":
            _, inner, start, unit = carried
            if isinstance(entity, Ptr) and entity.space == start.space and entity.elem is start.elem:
                if entity.base == start.base and entity.offset % unit == 0:
                    with AtEnd(self, edge):
                        index = self.index_value(entity, unit)
                    self.complete(loop, name, inner, index, edge)
                    return
                if start.space == "hbm":
                    self.restart(loop, name, AddressHint())
        elif kind == "tuple":
            if isinstance(entity, Tuple) and len(entity.items) == len(carried[1]):
                for inner, item in zip(carried[1], entity.items):
                    self.complete(loop, name, inner, item, edge)
                return
        elif isinstance(carried[1], Conflict):
            return  # unusable in the loop until it is set, whatever comes round
        elif entity is not None and (entity is carried[1] or same(carried[1], entity)):
            return
        now = "not known" if entity is None else describe(entity)
        if isinstance(entity, Conflict):
            self.restart(loop, name, ConflictHint(entity))
        before = describe(carried[3] if kind == "scalar" else carried[-1])
        self.restart(
            loop,
            name,
            ConflictHint(
                Conflict(
                    f"{name} is {before} when the loop begins and {now} when it comes round",
                    f"give {name} one type before the loop: {name} = pto.f32(...), ...",
                )
            ),
        )

    def restart(self, loop: Loop, name: str, hint: Any) -> None:
        key = (loop.key, name)
        if name in loop.guessed:
            hint = NoHint()
        elif isinstance(self.hints.get(key), type(hint)):
            hint = ConflictHint(self._unassigned(name))
        elif isinstance(hint, TypeHint):
            self.hints.setdefault((loop.site, name), hint)
        self.hints[key] = hint
        raise Restart


class NoHint:
    """What another copy of the loop needed does not suit this one."""

    def apply(self, name: str, entity: Any) -> Any:
        return entity


class TypeHint:
    """A Python number that a loop turns into another type enters it with that type."""

    def __init__(self, type: DType) -> None:
        self.type = type

    def apply(self, name: str, entity: Any) -> Any:
        return Const(entity.value, self.type) if isinstance(entity, Const) else entity


class ConflictHint:
    def __init__(self, conflict: Conflict) -> None:
        self.conflict = conflict

    def apply(self, name: str, entity: Any) -> Any:
        return self.conflict


class AddressHint:
    """A pointer that a loop moves to other arrays."""

    def apply(self, name: str, entity: Any) -> Any:
        if not isinstance(entity, Ptr):
            return entity
        return Conflict(
            f"{name} moves from one array to another inside the loop",
            "a pointer that a loop changes stays in its array; use an if on two pointers, or an index",
        )
