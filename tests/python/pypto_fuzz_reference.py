# SPDX-License-Identifier: Apache-2.0
"""Kernels of pypto_fuzz.py as plain Python executes them, lane by lane.

Numbers follow the documented rules (wrapping integers, f32 by numpy); nothing of the compiler judges itself.
"""

from __future__ import annotations

import functools
import math
import operator
import re
import types as python_types
from fractions import Fraction

import numpy as np

from pypto import types as pt

np.seterr(all="ignore")  # infinities and NaN are values here

LANES = 35  # a warp and a bit

# ---------------------------------------------------------------- numbers of the reference


def _wrap(value: int, t: pt.DType) -> int:
    value &= (1 << t.bits) - 1
    if t.is_signed and value >= 1 << (t.bits - 1):
        value -= 1 << t.bits
    return value


class Int:
    """An integer of a PTO type."""

    def __init__(self, value: int, t: pt.DType) -> None:
        self.v = _wrap(int(value), t)
        self.t = t

    def __bool__(self) -> bool:
        return self.v != 0

    def __index__(self) -> int:
        return self.v


class Flt:
    """A f32 or f16."""

    def __init__(self, value, t: pt.DType = pt.f32) -> None:
        self.v = (np.float32 if t is pt.f32 else np.float16)(value)
        self.t = t

    def __bool__(self) -> bool:
        return bool(self.v != 0)


_RANK = {"s32": (32, True), "u32": (32, False), "s64": (64, True), "u64": (64, False)}


def _operands(a, b):
    """Both sides in the common type."""
    if type(a) is type(b) and type(a) in (Int, Flt) and a.t is b.t:
        return a, b
    if isinstance(a, (bool, np.bool_)):
        a = Int(int(a), pt.s32)
    if isinstance(b, (bool, np.bool_)):
        b = Int(int(b), pt.s32)
    if isinstance(a, Flt) or isinstance(b, Flt) or isinstance(a, float) or isinstance(b, float):
        kinds = {x.t for x in (a, b) if isinstance(x, Flt)}
        t = pt.f16 if kinds == {pt.f16} else pt.f32
        return _float(a, t), _float(b, t)
    if isinstance(a, int):
        return Int(a, b.t), b
    if isinstance(b, int):
        return a, Int(b, a.t)
    (abits, asigned), (bbits, bsigned) = _RANK[a.t.name], _RANK[b.t.name]
    if a.t is b.t:
        return a, b
    wide = a.t if abits > bbits else b.t
    assert abits != bbits and (asigned == bsigned or wide is pt.s64), (a.t, b.t)
    return Int(a.v, wide), Int(b.v, wide)


def _float(x, t: pt.DType = pt.f32) -> Flt:
    """x in a float type, rounded once."""
    if isinstance(x, Flt):
        return x if x.t is t else Flt(x.v, t)
    if isinstance(x, Int):
        if t is pt.f16:  # numpy goes through a double, which is exact below 2^53 and huge beyond
            return Flt(np.float16(float(x.v)), t)
        return Flt(np.float32(np.int64(x.v) if x.t is not pt.u64 else np.uint64(x.v)))
    return Flt(float(x), t)


def _int_divide(a: Int, b: Int) -> Int:
    if b.v == 0:
        raise ZeroDivisionError
    return Int(a.v // b.v, a.t)


def _arith(name):
    def op(a, b):
        if isinstance(a, (int, float)) and isinstance(b, (int, float)):
            raise TypeError
        a, b = _operands(a, b)
        if isinstance(a, Flt):
            x, y, t = a.v, b.v, a.t
            if name == "add":
                return Flt(x + y, t)
            if name == "sub":
                return Flt(x - y, t)
            if name == "mul":
                return Flt(x * y, t)
            if name == "truediv":
                return Flt(x / y, t)
            floor = type(x)(np.floor(x / y))
            if name == "floordiv":
                return Flt(floor, t)
            return Flt(x - type(x)(floor * y), t)
        if name == "truediv":
            return op(_float(a), _float(b))
        if name == "floordiv":
            return _int_divide(a, b)
        if name == "mod":
            if b.v == 0:
                raise ZeroDivisionError
            return Int(a.v % b.v, a.t)
        return Int({"add": a.v + b.v, "sub": a.v - b.v, "mul": a.v * b.v}[name], a.t)

    return op


def _bits(name):
    def op(a, b):
        a, b = _operands(a, b)
        return Int({"and": a.v & b.v, "or": a.v | b.v, "xor": a.v ^ b.v}[name], a.t)

    return op


def _compare(name):
    def op(a, b):
        a, b = _operands(a, b)
        x, y = a.v, b.v
        return bool(
            {"lt": x < y, "le": x <= y, "gt": x > y, "ge": x >= y, "eq": x == y, "ne": x != y}[name]
        )

    return op


def _install(cls) -> None:
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod"):
        op = _arith(name)
        setattr(cls, f"__{name}__", lambda a, b, op=op: op(a, b))
        setattr(cls, f"__r{name}__", lambda a, b, op=op: op(b, a))
    for name in ("lt", "le", "gt", "ge", "eq", "ne"):
        setattr(cls, f"__{name}__", _compare(name))
    cls.__hash__ = None


_install(Int)
_install(Flt)
for _name in ("and", "or", "xor"):
    _op = _bits(_name)
    setattr(Int, f"__{_name}__", lambda a, b, op=_op: op(a, b))
    setattr(Int, f"__r{_name}__", lambda a, b, op=_op: op(b, a))
Int.__lshift__ = lambda a, b: Int(a.v << (int(b) % a.t.bits), a.t)
Int.__rshift__ = lambda a, b: Int(a.v >> (int(b) % a.t.bits), a.t)
Int.__neg__ = lambda a: Int(-a.v, a.t)
Int.__invert__ = lambda a: Int(~a.v, a.t)
Int.__abs__ = lambda a: Int(abs(a.v), a.t)
Flt.__neg__ = lambda a: Flt(-a.v, a.t)
Flt.__abs__ = lambda a: Flt(abs(a.v), a.t)


def _to_int(x, t: pt.DType):
    if isinstance(x, Flt):
        if math.isnan(x.v):
            return Int(0, t)
        if math.isinf(x.v):
            return Int(t.high if x.v > 0 else t.low, t)
        return Int(min(max(math.trunc(float(x.v)), t.low), t.high), t)
    return Int(int(x), t)


def _minmax(name):
    def op(a, b):
        a, b = _operands(a, b)
        if isinstance(a, Int):
            return Int(min(a.v, b.v) if name == "min" else max(a.v, b.v), a.t)
        x, y = a.v, b.v
        if math.isnan(x):
            return b
        if math.isnan(y):
            return a
        if x == y == 0:
            negative = [bool(np.signbit(v)) for v in (x, y)]
            pick = any(negative) if name == "min" else all(negative)
            return Flt(-0.0 if pick else 0.0, a.t)
        return Flt(min(x, y) if name == "min" else max(x, y), a.t)

    return op


def _fma(a, b, c) -> Flt:
    x, y, z = (_float(v).v for v in (a, b, c))
    if not all(map(math.isfinite, (x, y, z))):
        product = np.float64(x) * np.float64(y)
        return Flt(np.float32(product + np.float64(z)))
    exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
    if exact == 0:
        return Flt(np.float32(np.float64(x) * np.float64(y) + np.float64(z)))
    return Flt(_round_f32(exact))


def _round_f32(exact: Fraction) -> np.float32:
    """A rational to f32, nearest even."""
    sign = -1 if exact < 0 else 1
    exact = abs(exact)
    exponent = exact.numerator.bit_length() - exact.denominator.bit_length()
    if Fraction(2) ** exponent > exact:
        exponent -= 1
    step = Fraction(2) ** (max(exponent, -126) - 23)
    units = exact / step
    whole = units.numerator // units.denominator
    rest = units - whole
    if rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2):
        whole += 1
    value = sign * whole * step
    if abs(value) >= Fraction(2) ** 128:
        return np.float32(sign * math.inf)
    return np.float32(float(value))


_TYPES = {np.dtype(t.numpy()).char: t for t in (pt.u8, pt.s32, pt.u32, pt.s64, pt.f32)}


class Memory:
    """An array in the reference; pointer + integer is a new view."""

    def __init__(self, array: np.ndarray, offset: int = 0) -> None:
        self.array = array
        self.offset = offset
        self.t = _TYPES[array.dtype.char]

    def __add__(self, count):
        return Memory(self.array, self.offset + int(count))

    __radd__ = __add__

    def __sub__(self, count):
        return Memory(self.array, self.offset - int(count))

    def load(self):
        assert 0 <= self.offset < len(self.array)
        value = self.array[self.offset]
        t = self.t
        if t is pt.f32:
            return Flt(value)
        return Int(int(value), pt.s32 if t.bits < 32 else t)

    def store(self, value) -> None:
        assert 0 <= self.offset < len(self.array)
        if self.t is pt.f32:
            self.array[self.offset] = _float(value).v
        else:
            self.array[self.offset] = _wrap(int(value), self.t)


class LaneModule(python_types.ModuleType):
    """`pto` as one lane sees it."""

    def __init__(self, lane: int) -> None:
        super().__init__("pto")
        self.get_global_id = self.get_local_id = lambda dim=0: Int(lane if dim == 0 else 0, pt.s32)
        self.get_lane_id = lambda: Int(lane % 32, pt.s32)
        self.get_warp_id = lambda: Int(lane // 32, pt.s32)
        self.get_block_size = lambda: Int(LANES, pt.s32)
        self.load = lambda p: p.load()
        self.store = lambda p, v: p.store(v)
        self.s32 = lambda x: _to_int(x, pt.s32)
        self.u32 = lambda x: _to_int(x, pt.u32)
        self.s64 = lambda x: _to_int(x, pt.s64)
        self.u64 = lambda x: _to_int(x, pt.u64)
        self.f16 = lambda x: _float(x, pt.f16)
        self.f32 = _float
        self.fma = _fma
        self.sqrt = lambda x: Flt(_sqrt(_float(x).v))
        self.floor = lambda x: Flt(np.floor(_float(x).v))
        self.popc = lambda x: Int(bin(x.v & ((1 << x.t.bits) - 1)).count("1"), pt.s32)
        for name in WARP:  # asks the other lanes: see run_lanes
            setattr(self, name, lambda *a, name=name: (name, *a))
        self.static_range = range
        self.func = lambda f: f
        self.atomic_add = self._atomic_add

    @staticmethod
    def _atomic_add(p, v) -> None:
        p.store(p.load() + v)


def _sqrt(x):
    return np.sqrt(x)


# Instructions that read other lanes: from the values of the active ones, by lane, to one result a lane.
WARP = {
    "shfl_idx": lambda v, b: {i: v.get(int(b[i]) % 32, v[i]) for i in v},
    "shfl_xor": lambda v, b: {i: v.get(i ^ int(b[i]), v[i]) for i in v},
    "shfl_up": lambda v, b: {i: v.get(i - int(b[i]), v[i]) for i in v},
    "shfl_down": lambda v, b: {i: v.get(i + int(b[i]), v[i]) for i in v},
    "reduce_add": lambda v, b: dict.fromkeys(v, Int(sum(x.v for x in v.values()), pt.s32)),
    "reduce_max": lambda v, b: dict.fromkeys(v, Int(max(x.v for x in v.values()), pt.s32)),
    "reduce_xor": lambda v, b: dict.fromkeys(v, Int(functools.reduce(operator.xor, (x.v for x in v.values())), pt.s32)),
    "vote_any": lambda v, b: dict.fromkeys(v, any(bool(x) for x in v.values())),
    "vote_all": lambda v, b: dict.fromkeys(v, all(bool(x) for x in v.values())),
    "vote_ballot": lambda v, b: dict.fromkeys(v, Int(sum(1 << i for i, x in v.items() if x), pt.u32)),
}  # fmt: skip


def run_lanes(functions: list) -> None:
    """Runs the lanes of a warp, generators that yield where they need each other; those that have ended
    take no part."""
    waiting = {}
    for lane, generator in enumerate(functions):
        if generator is not None:
            waiting[lane] = (generator, None)
    while waiting:
        requests = {}
        for lane, (generator, answer) in waiting.items():
            try:
                requests[lane] = generator.send(answer)
            except StopIteration:
                pass
        if not requests:
            return
        names = {request[0] for request in requests.values()}
        assert len(names) == 1, "lanes of a warp at different places"
        values = {lane: request[1] for lane, request in requests.items()}
        counts = {lane: request[2] if len(request) > 2 else 0 for lane, request in requests.items()}
        answers = WARP[names.pop()](values, counts)
        waiting = {lane: (waiting[lane][0], answers[lane]) for lane in requests}


def lane_globals(lane: int) -> dict:
    return {
        "pto": LaneModule(lane),
        "range": lambda *a: (Int(i, pt.s32) for i in range(*map(int, a))),
        "min": _minmax("min"),
        "max": _minmax("max"),
        "float": _float,
        "int": lambda x: _to_int(x, pt.s32),
    }


def reference(text: str, values: list) -> list:
    """The arrays after every lane has run, one after the other."""
    arrays = [v.copy() if isinstance(v, np.ndarray) else v for v in values]
    warp_call = re.compile(rf"= (pto\.(?:{'|'.join(WARP)})\(.*\))$", re.M)
    code = compile(warp_call.sub(r"= (yield \1)", text), "<reference>", "exec")
    for first in range(0, LANES, 32):
        generators = []
        for lane in range(first, min(first + 32, LANES)):
            scope = lane_globals(lane)
            scope["pto"].kernel = lambda f: f
            exec(code, scope)
            arguments = [Memory(a) if isinstance(a, np.ndarray) else a for a in arrays]
            arguments[10] = Int(arguments[10], pt.s32)
            arguments[11] = Flt(arguments[11])
            generators.append(scope["fuzzed"](*arguments))
        run_lanes(generators)
    return arrays
