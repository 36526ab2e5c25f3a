# SPDX-License-Identifier: Apache-2.0
"""The compiler's intermediate form: blocks of insns over virtual registers.

An insn is text with holes: `op` is the mnemonic with all suffixes, arguments are virtual registers,
addresses, or finished text (immediates, parameters, special registers, tiles, events). So later passes
need to know only what is read and what is written.
"""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Iterator, Union

import numpy as np

from pypto import types
from pypto.types import DType, TypedConstant


# What a block has; events beyond those of a kernel's own: the last one is kept for stores of tiles.
TILE_LIMIT = 16
SCRATCHPAD_BYTES = 256 * 1024
EVENT_LIMIT = 8
WAIT_EVENT = EVENT_LIMIT - 1


class VReg:
    """A virtual register of class "r", "d" or "p", written by one insn or phi."""

    __slots__ = ("cls", "insn", "loop", "id", "group", "lane")

    def __init__(self, cls: str, number: int) -> None:
        self.cls = cls
        self.id = number
        self.insn: Insn | None = None
        self.loop: Any = None  # innermost loop (lower.Loop) in which it is computed
        self.group: list[VReg] | None = None  # consecutive registers that it is one of
        self.lane = 0  # its place there

    def __repr__(self) -> str:
        return f"%{self.cls}{self.id}"


@dataclass(eq=False)
class Not:
    """A predicate source, negated."""

    reg: VReg


@dataclass(eq=False)
class Addr:
    """space[base + index*scale + offset]; base is a register, a name or None."""

    space: str
    base: Union[VReg, str, None]
    index: Union[VReg, None] = None
    scale: int = 1
    offset: int = 0


Arg = Union[VReg, Not, Addr, str]


@dataclass(frozen=True)
class Place:
    """A position in Python source; line and column from 1."""

    file: str
    line: int
    column: int


@dataclass(eq=False)
class Insn:
    op: str
    dsts: list[VReg]
    args: list[Arg]
    place: Place | None
    pure: bool = False  # no effect but its result: may be dropped, shared, moved
    values: tuple = ()  # the Value or Const of each argument, where the front end knows them
    guard: VReg | None = None
    guard_negated: bool = False
    dst_text: str = ""  # written operand that is no register (`_`)
    lane_scoped: bool = True  # may stand under a guard that replaces a branch
    label: str = ""  # text label before it (stages of a pipeline)
    loop_depth: int = 0

    def reads(self) -> Iterator[VReg]:
        for arg in self.args:
            if isinstance(arg, VReg):
                yield arg
            elif isinstance(arg, Not):
                yield arg.reg
            elif isinstance(arg, Addr):
                if isinstance(arg.base, VReg):
                    yield arg.base
                if arg.index is not None:
                    yield arg.index
        if self.guard is not None:
            yield self.guard

    def rename(self, of: dict[VReg, VReg]) -> None:
        """Replaces every register by of.get(it, it)."""

        def new(reg: VReg) -> VReg:
            return of.get(reg, reg)

        for i, arg in enumerate(self.args):
            if isinstance(arg, VReg):
                self.args[i] = new(arg)
            elif isinstance(arg, Not):
                self.args[i] = Not(new(arg.reg))
            elif isinstance(arg, Addr):
                base = new(arg.base) if isinstance(arg.base, VReg) else arg.base
                index = new(arg.index) if arg.index is not None else None
                self.args[i] = Addr(arg.space, base, index, arg.scale, arg.offset)
        self.dsts = [new(dst) for dst in self.dsts]
        if self.guard is not None:
            self.guard = new(self.guard)


@dataclass(eq=False)
class Phi:
    """dst = the argument that belongs to the edge by which the block is entered."""

    dst: VReg
    args: list[Union[VReg, str]]  # one for each of Block.preds
    op: str = "mov.b32"  # the copy that an edge needs


@dataclass(eq=False)
class Block:
    """Insns without a jump among them, then one way out.

    `kind`: "jump" to targets[0]; "branch": to targets[0] where `cond` holds (negated by `negated`), else
    to targets[1]; "exit".
    """

    name: str = ""
    phis: list[Phi] = field(default_factory=list)
    insns: list[Insn] = field(default_factory=list)
    kind: str = ""
    cond: VReg | None = None
    negated: bool = False
    targets: list["Block"] = field(default_factory=list)
    place: Place | None = None
    preds: list["Block"] = field(default_factory=list)
    loop_depth: int = 0
    entries: list[Any] = field(default_factory=list)  # lower.Edge, until the block is placed

    def uses_at_end(self) -> Iterator[VReg]:
        if self.cond is not None:
            yield self.cond


@dataclass
class Program:
    """What lowering gives: blocks in layout order, the first is the entry."""

    name: str
    blocks: list[Block] = field(default_factory=list)
    symbols: list[str] = field(default_factory=list)  # directives (.shared, ...)
    asserts: dict[int, str] = field(default_factory=dict)
    stages: dict[str, str] = field(default_factory=dict)
    scratch_bytes: int = 0
    warnings: list[str] = field(default_factory=list)
    vreg_count: int = 0
    max_lanes: int = 0

    def new_reg(self, cls: str) -> VReg:
        self.vreg_count += 1
        return VReg(cls, self.vreg_count)


# ---------------------------------------------------------------- what Python expressions evaluate to


class Value:
    """A number or truth value that each lane has: a virtual register or a scalar parameter, typed.

    `low` and `high` bound what an integer can be. `negated` only for truth values.
    """

    __slots__ = ("type", "op", "negated", "low", "high")

    def __init__(
        self,
        type: DType,
        op: Union[VReg, str],
        low: int | None = None,
        high: int | None = None,
        negated: bool = False,
    ) -> None:
        self.type = type
        self.op = op
        self.negated = negated
        if type.is_int:
            self.low = type.low if low is None else max(low, type.low)
            self.high = type.high if high is None else min(high, type.high)
        else:
            self.low = self.high = 0

    @property
    def arg(self) -> Arg:
        return Not(self.op) if self.negated else self.op

    def same(self, other: Any) -> bool:
        return (
            isinstance(other, Value)
            and self.op is other.op
            and self.type is other.type
            and self.negated == other.negated
        )

    def __repr__(self) -> str:
        return f"{self.op}:{self.type.name}"


class Const:
    """A number known to the compiler. `type` None: a Python number, which adopts the type it meets."""

    __slots__ = ("value", "type")

    def __init__(self, value: Any, type: DType | None = None) -> None:
        self.value = type.round(value) if type is not None and type.is_float else value
        self.type = type

    def same(self, other: Any) -> bool:
        return (
            isinstance(other, Const)
            and self.type is other.type
            and type(self.value) is type(other.value)
            and (
                self.value == other.value
                and (self.value != 0 or str(self.value) == str(other.value))  # 0.0 is not -0.0
                or self.value != self.value
                and other.value != other.value
            )
        )

    def __repr__(self) -> str:
        return f"{self.value}" if self.type is None else f"{self.type.name}({self.value})"


class Ptr:
    """A pointer: base + sum of terms (value, bytes each) + offset bytes, at elements of `elem`.

    space "hbm": base is a parameter's name or a d register. space "l1": a symbol, a tile register or an
    r register with the byte offset.
    """

    __slots__ = ("space", "base", "elem", "terms", "offset", "buffer")

    def __init__(self, space, base, elem, terms=(), offset=0, buffer=None) -> None:
        self.space = space
        self.base = base
        self.elem = elem
        self.terms = tuple(terms)
        self.offset = offset
        self.buffer = buffer  # Buffer that it points into, for l1

    @property
    def is_start(self) -> bool:
        return not self.terms and self.offset == 0

    def same(self, other: Any) -> bool:
        return (
            isinstance(other, Ptr)
            and (self.space, self.elem, self.offset) == (other.space, other.elem, other.offset)
            and self.base == other.base
            and len(self.terms) == len(other.terms)
            and all(a[0].same(b[0]) and a[1] == b[1] for a, b in zip(self.terms, other.terms))
        )


class Buffer:
    """Scratchpad that a kernel names: `.shared`, `.tile` or a tile register."""

    def __init__(self, name: str, what: str) -> None:
        self.name = name
        self.what = what
        self.is_register = what == "tile"  # a tile register: its address is not to be had


class Event:
    def __init__(self, number: int) -> None:
        self.number = number

    def same(self, other: Any) -> bool:
        return isinstance(other, Event) and other.number == self.number


class Tuple:
    """Several values at once; exists in the compiler only."""

    def __init__(self, items) -> None:
        self.items = tuple(items)


class Host:
    """A Python object of the enclosing scope that is no number: a module, a function, a string, ...

    `find` returns the object that stands in its place now; None where it was made by the compiler.
    """

    def __init__(self, value: Any, find: Any = None) -> None:
        self.value = value
        self.find = find

    def same(self, other: Any) -> bool:
        return isinstance(other, Host) and (
            self.value is other.value
            or isinstance(self.value, str) and self.value == other.value  # fmt: skip
        )


class Conflict:
    """A name whose value the compiler cannot tell here; using it is the error `message`."""

    def __init__(self, message: str, hint: str = "", types: Any = ()) -> None:
        self.message = message
        self.hint = hint
        self.types = set(types)  # of the scalars that met here


def constant_of(value: Any) -> Const | None:
    """The Const of a Python, numpy or typed number; None where it is something else."""
    if isinstance(value, TypedConstant):
        return Const(value.value, value.dtype)
    if isinstance(value, (bool, int, float)) and not isinstance(value, np.generic):
        if type(value) in (bool, int, float):
            return Const(value)
        return Const(int(value) if isinstance(value, int) else float(value))  # IntEnum and such
    if isinstance(value, np.bool_):
        return Const(bool(value))
    if isinstance(value, np.generic):
        if value.dtype == np.float64:
            return Const(float(value))
        try:
            dtype = types.from_numpy_dtype(value.dtype)
        except TypeError:
            return None
        return Const(value.item() if dtype is not types.bf16 else float(value), dtype)
    return None
