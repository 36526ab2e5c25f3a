# SPDX-License-Identifier: Apache-2.0
"""Blocks, edges and values under construction: SSA form made while the syntax tree is walked.

Control flow is structured, so each join knows the values that arrive by every edge; only the header of a
loop must guess what its back edge will bring. Where the guess was wrong (`acc = 0` before a loop that
adds floats to it) the right answer is noted in `hints` and lowering starts over (`Restart`).

Insns without effects go as far out of loops as their operands allow, and are computed once where one
computation dominates the other.
"""
from __future__ import annotations

import ast
from typing import Any, Sequence

from pypto import types
from pypto.checked import shown
from pypto.compiler.ir import (
    Addr,
    Arg,
    Block,
    Buffer,
    Conflict,
    Const,
    Event,
    Host,
    Insn,
    Phi,
    Place,
    Program,
    Ptr,
    Tuple,
    Value,
    VReg,
)
from pypto.compiler.captured import Captured
from pypto.compiler.limits import INSNS
from pypto.compiler.source import Source
from pypto.errors import CompileError
from pypto.types import PRED, DType


class Restart(Exception):
    """Lowering must begin again with the hints that have been added."""


class Scope:
    """A place in the tree of what dominates what: what was computed in a scope is known in those below it.

    Every join makes a scope, so that a long kernel is a deep tree. `jump` points at an ancestor so far up
    that any other is found in logarithmic time.
    """

    def __init__(self, parent: "Scope | None" = None) -> None:
        self.parent = parent
        self.depth = 0
        self.jump = self
        if parent is not None:
            self.depth = parent.depth + 1
            far = parent.jump
            is_even = parent.depth - far.depth == far.depth - far.jump.depth
            self.jump = far.jump if is_even else parent

    def is_below(self, other: "Scope") -> bool:
        """True for `other` itself and what it dominates."""
        scope = self
        while scope.depth > other.depth:
            assert scope.parent is not None
            scope = scope.jump if scope.jump.depth >= other.depth else scope.parent
        return scope is other


class Known:
    """What has been computed, and in which scope."""

    _LATEST = 8  # an expression is looked for among so many of its computations: in many arms, none fits

    def __init__(self) -> None:
        self._made: dict[Any, list[tuple[Scope, list[VReg]]]] = {}

    def find(self, key: Any, scope: Scope) -> list[VReg] | None:
        for where, regs in reversed(self._made.get(key, ())[-self._LATEST :]):
            if scope.is_below(where):
                return regs
        return None

    def add(self, key: Any, scope: Scope, regs: list[VReg]) -> None:
        self._made.setdefault(key, []).append((scope, regs))


class Loop:
    """A loop under construction; `break` and `continue` go to `exit` and `latch`."""

    def __init__(self, parent: "Loop | None", preheader: Block, header: Block, scope: Scope) -> None:
        self.parent = parent
        self.preheader = preheader
        self.header = header
        self.scope = scope
        self.depth = 1 + (parent.depth if parent else 0)


class Edge:
    def __init__(self, block: Block, env: dict[str, Any], scope: Scope) -> None:
        self.block = block
        self.env = env
        self.scope = scope


def is_within(inner: Loop | None, outer: Loop) -> bool:
    """True for `outer` itself and the loops inside it."""
    while inner is not None:
        if inner is outer:
            return True
        inner = inner.parent
    return False


def is_scalar(entity: Any) -> bool:
    return isinstance(entity, (Value, Const))


def is_truth(entity: Any) -> bool:
    """True for truth values and the constants True and False."""
    if isinstance(entity, Const):
        return isinstance(entity.value, bool)
    return isinstance(entity, Value) and entity.type is PRED


def bounds(value: Value | Const) -> tuple[int, int]:
    """Smallest and largest integer that the value can be."""
    if isinstance(value, Const):
        return int(value.value), int(value.value)
    return value.low, value.high


class Builder:
    def __init__(self, program: Program, source: Source, hints: dict[Any, Any]) -> None:
        self.program = program
        self.source = source
        self.hints = hints
        self.block: Block | None = None  # None: no way leads here
        self.env: dict[str, Any] = {}
        self.scope = Scope()
        self.known = Known()
        self.loop: Loop | None = None
        self.node: ast.AST = source.tree
        self.insn_count = 0  # blocks count too: each ends in a jump
        self.captured: dict[Any, tuple[Captured, Any]] = {}  # with what each is in the kernel
        self.sources: dict[int, Source] = {id(source): source}

    # ------------------------------------------------------------ errors

    def error(self, text: str, hint: str = "", node: ast.AST | None = None) -> CompileError:
        return self.source.error(node or self.node, text, hint)

    @property
    def place_now(self) -> Place:
        return self.source.place(self.node)

    # ------------------------------------------------------------ insns

    def count_insn(self) -> None:
        """One more; what unrolls without end is refused here."""
        self.insn_count += 1
        if self.insn_count > INSNS:
            raise self.error(
                f"the kernel has more than {INSNS} instructions at this place",
                "unroll less: range(...) makes a loop, pto.static_range(...) and loops over tuples copies",
            )

    def append(self, insn: Insn) -> None:
        assert self.block is not None
        self.count_insn()
        insn.loop_depth = self.loop.depth if self.loop else 0
        self.block.insns.append(insn)
        for dst in insn.dsts:
            dst.insn = insn
            dst.loop = self.loop

    def effect(self, op: str, args: Sequence[Arg], dsts: Sequence[VReg] = (), **columns: Any) -> Insn:
        """An insn that stays where it is."""
        insn = Insn(op, list(dsts), list(args), self.place_now, **columns)
        self.append(insn)
        return insn

    def pure(
        self,
        op: str,
        classes: str,
        args: Sequence[Arg],
        values: tuple = (),
        speculate: bool = True,
    ) -> list[VReg]:
        """Registers (one a letter of `classes`) that hold the results of an insn without effects."""
        key = (op, tuple(_key(arg) for arg in args))
        found = self.known.find(key, self.scope)
        if found is not None:
            return found
        regs = [self.program.new_reg(c) for c in classes]
        insn = Insn(op, regs, list(args), self.place_now, pure=True, values=values)
        target, block = None, self.block
        loop = self.loop
        while loop is not None and not any(is_within(r.loop, loop) for r in insn.reads()):
            if not speculate and block is not loop.header:
                break
            target, block = loop, loop.preheader
            loop = loop.parent
        if target is None:
            self.append(insn)
            self.known.add(key, self.scope, regs)
            return regs
        self.count_insn()
        target.preheader.insns.append(insn)
        insn.loop_depth = target.depth - 1
        for reg in regs:
            reg.insn = insn
            reg.loop = target.parent
        self.known.add(key, target.scope, regs)
        return regs

    def compute(
        self,
        op: str,
        type: DType,
        operands: Sequence[Any],
        operand_type: DType | Sequence[DType] | None = None,
        low: int | None = None,
        high: int | None = None,
        speculate: bool | None = None,
    ) -> Value:
        """A Value of `type` from scalars; constants become immediates of `operand_type`."""
        if operand_type is None:
            operand_type = type
        kinds = (
            list(operand_type)
            if isinstance(operand_type, (list, tuple))
            else [operand_type] * len(operands)
        )
        args = [self.arg(v, t) for v, t in zip(operands, kinds)]
        if speculate is None:
            speculate = not type.is_float
        (reg,) = self.pure(op, type.register_class, args, tuple(operands), speculate)
        return Value(type, reg, low, high)

    def arg(self, value: Any, type: DType) -> Arg:
        """The operand that stands for a scalar."""
        if isinstance(value, str):
            return value
        if isinstance(value, Value):
            return value.arg
        return self.immediate(value, type)

    def immediate(self, const: Const, type: DType) -> str:
        value = const.value
        if type.is_float:
            return types.float_text(types.as_float(value))
        if type is PRED:
            return "1" if value else "0"
        return str(int(value))

    # ------------------------------------------------------------ edges and joins

    def jump(self, target: Block) -> None:
        if self.block is None:
            return
        self.block.kind = "jump"
        self.block.targets = [target]
        self.block.place = self.place_now
        target.entries.append(Edge(self.block, self.env, self.scope))
        self.block = None

    def branch(self, condition: Value | Const, when: Block, otherwise: Block) -> None:
        """Ends the block: `when` where the truth value holds; a jump where it is known."""
        if isinstance(condition, Const):
            self.jump(when if condition.value else otherwise)
            return
        assert self.block is not None
        block = self.block
        block.kind = "branch"
        block.cond = condition.op
        block.negated = condition.negated
        block.targets = [when, otherwise]
        block.place = self.place_now
        when.entries.append(Edge(block, dict(self.env), self.scope))
        otherwise.entries.append(Edge(block, dict(self.env), self.scope))
        self.block = None

    def end(self) -> None:
        """Ends the lane."""
        if self.block is not None:
            self.block.kind = "exit"
            self.block.place = self.place_now
            self.block = None

    def place(self, block: Block, scope: Scope) -> bool:
        """Goes on in `block`; False where no edge leads to it."""
        if not block.entries:
            self.block = None
            return False
        folded = self._as_selects(block)
        if folded:
            return True
        edges: list[Edge] = block.entries
        block.preds = [edge.block for edge in edges]
        self.count_insn()
        self.program.blocks.append(block)
        block.loop_depth = self.loop.depth if self.loop else 0
        self.block = block
        self.scope = Scope(scope)
        if len(edges) == 1:
            self.env = dict(edges[0].env)
            return True
        self.env = {}
        names: dict[str, None] = {}
        for edge in edges:
            names.update(dict.fromkeys(edge.env))
        for name in names:
            self.env[name] = self.join(name, [e.env.get(name) for e in edges], edges, block)
        return True

    def _as_selects(self, block: Block) -> bool:
        """An if whose arms compute nothing becomes selects in the block before it."""
        edges: list[Edge] = block.entries
        if len(edges) != 2:
            return False
        arms = [edge.block for edge in edges]
        for arm in arms:
            if arm.insns or arm.phis or arm.kind != "jump" or len(arm.preds) != 1:
                return False
        before = arms[0].preds[0]
        if before is not arms[1].preds[0] or before.kind != "branch" or arms[0] is arms[1]:
            return False
        if self.program.blocks[-3:] not in ([before, *arms], [before, *reversed(arms)]):
            return False
        envs = {arm: edge.env for arm, edge in zip(arms, edges)}
        when, otherwise = (envs[target] for target in before.targets)
        different = []
        for name in {**when, **otherwise}:
            a, b = when.get(name), otherwise.get(name)
            if a is b or (a is not None and b is not None and same(a, b)):
                continue
            if is_scalar(a) and is_scalar(b):
                common = self.common_type([a, b])
                if common is None or common is PRED:
                    return False
                different.append((name, a, b, common))
            elif a is not None and b is not None and not isinstance(a, Conflict):
                if not isinstance(b, Conflict):
                    return False
        del self.program.blocks[-2:]
        self.block = before
        scope = edges[0].scope
        while scope.parent is not None and not edges[1].scope.is_below(scope):
            scope = scope.parent
        self.scope = scope
        condition = Value(PRED, before.cond, negated=before.negated)
        before.kind, before.cond, before.targets, before.negated = "", None, [], False
        env = {}
        for name in {**when, **otherwise}:
            a, b = when.get(name), otherwise.get(name)
            if a is None or b is None:
                env[name] = self._unassigned(name)
            elif isinstance(a, Conflict) or isinstance(b, Conflict):
                env[name] = a if isinstance(a, Conflict) else b
            else:
                env[name] = a
        self.env = env
        for name, a, b, common in different:
            env[name] = self.select(condition, a, b, common)
        return True

    def select(self, condition: Value, a: Any, b: Any, type: DType) -> Value:
        bits = bits_of(type)
        low = high = None
        if type.is_int:
            (al, ah), (bl, bh) = bounds(a), bounds(b)
            low, high = min(al, bl), max(ah, bh)
        args = [self.select_arg(a, type), self.select_arg(b, type), condition.arg]
        (reg,) = self.pure(f"sel.{bits}", type.register_class, args, (a, b, condition))
        return Value(type, reg, low, high)

    def select_arg(self, value: Any, type: DType) -> Arg:
        """As bits: SEL has no float immediates."""
        if isinstance(value, Const):
            return hex(type.pack(value.value)) if type.is_float else self.immediate(value, type)
        return value.arg

    def common_type(self, entities: Sequence[Any]) -> DType | None:
        """The one type that scalars arriving by different edges have, None where they disagree."""
        typed = {e.type for e in entities if e.type is not None}
        weak = [e.value for e in entities if e.type is None]
        if len(typed) > 1:
            return None
        if typed:
            (type,) = typed
            return type if all(fits(value, type) for value in weak) else None
        if all(isinstance(value, bool) for value in weak):
            return PRED
        if any(isinstance(value, bool) for value in weak):
            return None
        if any(isinstance(value, float) for value in weak):
            return types.f32
        for type in (types.s32, types.s64, types.u64):
            if all(fits(value, type) for value in weak):
                return type
        return None

    def _unassigned(self, name: str) -> Conflict:
        return Conflict(
            f"{name} has no value on some way to here",
            f"give {name} a value before the if or the loop that sets it",
        )

    def join(self, name: str, entities: list[Any], edges: list[Edge], block: Block) -> Any:
        """What `name` is behind the join of several edges."""
        if any(entity is None for entity in entities):
            return self._unassigned(name)
        for entity in entities:
            if isinstance(entity, Conflict):
                return entity
        first = entities[0]
        if all(entity is first or same(first, entity) for entity in entities):
            return first
        if all(is_scalar(entity) for entity in entities):
            common = self.common_type(entities)
            if common is None:
                kinds = " and ".join(dict.fromkeys(describe(e) for e in entities))
                return Conflict(
                    f"{name} is {kinds} on different ways to here",
                    f"convert, so that {name} has one type: pto.f32({name}), ...",
                    {e.type for e in entities if e.type is not None},
                )
            return self.join_scalars(entities, common, edges, block)
        if all(isinstance(entity, Ptr) for entity in entities):
            return self.join_pointers(name, entities, edges, block)
        if all(isinstance(entity, Tuple) for entity in entities):
            if len({len(entity.items) for entity in entities}) == 1:
                columns = zip(*(entity.items for entity in entities))
                return Tuple([self.join(name, list(c), edges, block) for c in columns])
        return Conflict(
            f"{name} is {' and '.join(dict.fromkeys(describe(e) for e in entities))} on different ways to here",
            "only numbers and pointers of one kind can differ between the arms of an if",
        )

    def join_scalars(self, entities, type: DType, edges: list[Edge], block: Block) -> Value:
        self.count_insn()
        reg = self.program.new_reg(type.register_class)
        reg.loop = self.loop
        args = [self.phi_arg(e, type, edge) for e, edge in zip(entities, edges)]
        block.phis.append(Phi(reg, args, copy_op(type)))
        if not type.is_int:
            return Value(type, reg)
        ranges = [bounds(entity) for entity in entities]
        return Value(type, reg, min(r[0] for r in ranges), max(r[1] for r in ranges))

    def phi_arg(self, entity: Any, type: DType, edge: Edge) -> VReg | str:
        if isinstance(entity, Const):
            return self.immediate(entity, type)
        if entity.negated:
            with AtEnd(self, edge):
                (reg,) = self.pure("not.pred", "p", [entity.op])
            return reg
        return entity.op

    def join_pointers(self, name: str, pointers: list[Ptr], edges: list[Edge], block: Block) -> Any:
        first = pointers[0]
        if any(p.space != first.space or p.elem is not first.elem for p in pointers):
            return Conflict(
                f"{name} points at {' and '.join(dict.fromkeys(describe(p) for p in pointers))} "
                "on different ways to here",
                "use two names",
            )
        if all(p.base == first.base for p in pointers):
            unit = first.elem.size
            if any(p.offset % unit for p in pointers):
                unit = 1
            indexes = []
            for pointer, edge in zip(pointers, edges):
                with AtEnd(self, edge):
                    indexes.append(self.index_value(pointer, unit))
            index = self.join_scalars(indexes, types.s32, edges, block)
            return Ptr(first.space, first.base, first.elem, [(index, unit)], 0, first.buffer)
        if first.space != "hbm":
            return Conflict(
                f"{name} points into different scratchpad buffers on different ways to here",
                "a pointer into scratchpad stays in its buffer; use an index",
            )
        addresses = []
        for pointer, edge in zip(pointers, edges):
            with AtEnd(self, edge):
                addresses.append(self.address_value(pointer))
        joined = self.join_scalars(addresses, types.u64, edges, block)
        return Ptr("hbm", joined.op, first.elem)

    # ------------------------------------------------------------ pointers as numbers

    def index_value(self, pointer: Ptr, unit: int) -> Any:
        """(address - base) / unit as an s32 scalar."""
        raise NotImplementedError

    def address_value(self, pointer: Ptr) -> Value:
        """The 64-bit address of an hbm pointer."""
        raise NotImplementedError


class AtEnd:
    """Emits at the end of an edge's block."""

    def __init__(self, builder: Builder, edge: Edge) -> None:
        self.builder = builder
        self.edge = edge

    def __enter__(self) -> None:
        b = self.builder
        self.saved = (b.block, b.scope, b.loop)
        b.block = self.edge.block
        b.scope = Scope(self.edge.scope)

    def __exit__(self, *_: Any) -> None:
        b = self.builder
        b.block, b.scope, b.loop = self.saved


def fits(value: Any, type: DType) -> bool:
    """True if a Python number can become a constant of the type without surprise."""
    if type is PRED:
        return isinstance(value, bool)
    if isinstance(value, bool):
        return False
    if type.is_float:
        return True
    if isinstance(value, float):
        return False
    if type.is_int:
        return type.low <= value <= type.high
    return -(1 << (type.bits - 1)) <= value < 1 << type.bits


def copy_op(type: DType) -> str:
    """The MOV that copies a value or constant of the type."""
    if type is PRED or type.is_float:
        return f"mov.{type.name}"
    return f"mov.{bits_of(type)}"


def bits_of(type: DType) -> str:
    """"b32" or "b64": what insns say that take a register of the type as bits."""
    return "b64" if type.register_class == "d" else "b32"


def is_integer(value: Value | Const) -> bool:
    """True for an integer of any type and Python's; a truth value is none."""
    return value.type.is_int if value.type is not None else type(value.value) is int


def _key(arg: Arg) -> Any:
    if isinstance(arg, (str, VReg)):
        return arg
    if isinstance(arg, Addr):
        return ("addr", arg.space, arg.base, arg.index, arg.scale, arg.offset)
    return ("not", arg.reg)


def same(a: Any, b: Any) -> bool:
    if isinstance(a, Tuple) and isinstance(b, Tuple):
        return len(a.items) == len(b.items) and all(map(same, a.items, b.items))
    compare = getattr(a, "same", None)
    return compare(b) if compare is not None else a is b


def describe(entity: Any) -> str:
    """What an entity is, for messages."""
    if isinstance(entity, Value):
        return "a truth value" if entity.type is PRED else entity.type.name
    if isinstance(entity, Const):
        if entity.type is not None:
            return entity.type.name
        return f"the Python {type(entity.value).__name__} {shown(entity.value)}"
    if isinstance(entity, Ptr):
        if entity.buffer is not None and entity.is_start:
            return f"{entity.buffer.what} {entity.buffer.name} of {entity.elem.name}"
        where = "hbm" if entity.space == "hbm" else "scratchpad"
        return f"a pointer to {entity.elem.name} in {where}"
    if isinstance(entity, Tuple):
        return f"{len(entity.items)} values"
    if isinstance(entity, Event):
        return "an event"
    if isinstance(entity, Host):
        value = entity.value
        name = getattr(value, "__name__", None)
        if isinstance(value, str):
            return f"the string {value!r}"
        return name or f"a Python {type(value).__name__}"
    if isinstance(entity, Buffer):
        return entity.what
    return "nothing" if entity is None else type(entity).__name__
