# SPDX-License-Identifier: Apache-2.0
"""Random kernels of the pypto language, compared lane by lane with plain Python.

The text of a kernel is compiled and simulated, and the same text is executed by Python itself, once for
each lane, with numbers that follow the documented rules (wrapping integers, f32 by numpy). Control flow
is Python's own there, so that nothing of the compiler judges itself.

    pypto_fuzz.py --count 2000 --seed 1     also: --show N prints program N, --keep-going
"""

from __future__ import annotations

import argparse
import functools
import linecache
import math
import operator
import random
import re
import sys
import types as python_types
from fractions import Fraction

import numpy as np

import pypto
from pypto import types as pt

np.seterr(all="ignore")  # infinities and NaN are values here

LANES = 35  # a warp and a bit
WIDTH = 16  # elements of `mem` of each lane

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


# ---------------------------------------------------------------- the generator


class Generator:
    """Random text of one kernel. Every variable has one type and a value from the start."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        self.lines: list[str] = []
        self.depth = 0
        self.loops = 0
        self.loop_names = 0
        self.helpers: list[tuple[str, list[str], str]] = []
        kinds = ["s32", "s32", "f32", "u32", "bool", "s64", "s32", "f32", "u64", "f16", "weak", "ptr"]
        count = self.r.randint(3, 7)
        self.variables = {f"v{i}": k for i, k in enumerate(self.r.sample(kinds, count))}
        if "s32" not in self.variables.values():
            self.variables["vi"] = "s32"
        self.readable: dict[str, str] = {}

    def text(self) -> str:
        for _ in range(self.r.choice([0, 0, 1, 1, 2])):
            self.helper()
        self.line("@pto.kernel")
        self.line("def fuzzed(xi, xf, xu, xb, mem, oi, of, ou, ol, count, n, scale):")
        self.depth = 1
        self.line("lane = pto.get_global_id()")
        self.readable = {"lane": "s32", "n": "s32", "scale": "f32"}
        for name, kind in self.variables.items():
            self.line(f"{name} = {self.initial(kind)}")
            self.readable[name] = kind
        self.body(self.r.randint(3, 8), 0)
        self.results()
        return "\n".join(self.lines) + "\n"

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def helper(self) -> None:
        number = len(self.helpers)
        kinds = [self.r.choice(["s32", "f32"]) for _ in range(self.r.randint(1, 3))]
        result = self.r.choice(["s32", "f32", "bool"])
        names = [f"p{i}" for i in range(len(kinds))]
        self.line("@pto.func")
        self.line(f"def helper{number}({', '.join(names)}):")
        saved = self.readable
        self.readable = dict(zip(names, kinds))
        self.depth = 1
        if self.r.random() < 0.6:
            self.line(f"if {self.expr('bool', 2)}:")
            self.depth = 2
            self.line(f"return {self.typed(result, 2)}")
            self.depth = 1
        self.line(f"return {self.typed(result, 2)}")
        self.depth = 0
        self.readable = saved
        self.helpers.append((f"helper{number}", kinds, result))

    def typed(self, kind: str, depth: int) -> str:
        """An expression that is no Python number."""
        text = self.expr(kind, depth)
        return text if kind == "bool" else f"pto.{kind}({text})"

    def initial(self, kind: str) -> str:
        r = self.r
        if kind == "bool":
            return f"lane % {r.randint(2, 5)} == {r.randint(0, 1)}"
        if kind == "s64":
            return f"pto.s64(pto.load(xi + lane)) * {r.randint(-9, 999999937)}"
        if kind == "u64":
            return f"pto.u64(pto.load(xu + lane)) * {r.randint(1, 2**33)}"
        if kind == "f16":
            return f"pto.f16({r.choice(['pto.load(xf + lane)', 'lane', '0.1', 'scale'])})"
        if kind == "weak":
            return str(r.randint(0, 3))
        if kind == "ptr":
            return self.pointer(0)
        source = {"s32": "xi", "f32": "xf", "u32": "xu"}[kind]
        choices = [f"pto.load({source} + lane)", f"pto.{kind}({self.constant(kind)})"]
        if kind == "s32":
            choices += ["pto.load(xb + lane) + 0", "lane * 3 - 40", "pto.s32(n)"]
        return r.choice(choices)

    def pointer(self, depth: int) -> str:
        """A place among the elements of `mem` that belong to the lane."""
        return f"mem + lane * {WIDTH} + ({self.expr('s32', depth)}) % {WIDTH}"

    def constant(self, kind: str) -> str:
        r = self.r
        if kind == "u64":
            return str(r.choice([0, 1, 3, 2**32, 2**63 + 5, r.getrandbits(64)]))
        if kind == "f16":
            return repr(r.choice([0.0, 1.0, -1.5, 0.1, 1000.0, 65504.0, 6e-8]))
        if kind == "f32":
            return repr(r.choice([0.0, 1.0, -1.5, 0.1, 3.25, -100.0, 1e-3, 65536.0]))
        if kind == "u32":
            return str(r.choice([0, 1, 7, 255, 65535, 0x80000000, 0xFFFFFFFF, r.getrandbits(32)]))
        if kind == "s64":
            return str(r.choice([0, 1, -1, 5, -(2**40), 2**33 + 7, r.randint(-(2**62), 2**62)]))
        return str(r.choice([0, 1, -1, 2, 3, 10, -7, 31, 1000, -(2**31), 2**31 - 1, r.randint(-99, 99)]))

    # ------------------------------------------------------------ expressions

    def expr(self, kind: str, depth: int) -> str:
        r = self.r
        if depth <= 0 or r.random() < 0.15:
            return self.leaf(kind)
        return getattr(self, f"expr_{kind}")(depth - 1)

    def leaf(self, kind: str) -> str:
        accepted = (kind, "weak") if kind == "s32" else (kind,)
        names = [n for n, k in self.readable.items() if k in accepted]
        if names and self.r.random() < 0.75:
            name = self.r.choice(names)
            return f"pto.s32({name})" if self.readable[name] == "weak" else name
        if kind == "bool":
            return self.comparison(0)
        return f"pto.{kind}({self.constant(kind)})"

    def call(self, kind: str, depth: int) -> str | None:
        fitting = [h for h in self.helpers if h[2] == kind]
        if not fitting or self.r.random() < 0.5:
            return None
        name, kinds, _ = self.r.choice(fitting)
        return f"{name}({', '.join(self.expr(k, min(depth, 1)) for k in kinds)})"

    def expr_s32(self, depth: int) -> str:
        r, e = self.r, self.expr
        choice = r.randint(0, 15)
        if choice == 0:
            return self.call("s32", depth) or self.leaf("s32")
        if choice <= 5:
            op = r.choice(["+", "-", "*", "&", "|", "^", "+", "-"])
            right = self.constant("s32") if r.random() < 0.3 else e("s32", depth)
            if r.random() < 0.1 and op in "+-*":
                return f"({right} {op} {e('s32', depth)})"
            return f"({e('s32', depth)} {op} {right})"
        if choice <= 7:
            op = r.choice(["//", "%"])
            if r.random() < 0.6:
                divisor = str(r.choice([1, 2, 3, 4, 7, 8, 10, 32, 100, -1, -2, -3, -8]))
            else:
                divisor = f"({e('s32', depth)} | 1)"
            return f"({e('s32', depth)} {op} {divisor})"
        if choice == 8:
            op = r.choice(["<<", ">>"])
            count = str(r.randint(0, 31)) if r.random() < 0.6 else f"({e('s32', depth)} & 31)"
            return f"({e('s32', depth)} {op} {count})"
        if choice == 9:
            return f"{r.choice(['min', 'max'])}({e('s32', depth)}, {e('s32', depth)})"
        if choice == 10:
            return f"({e('s32', depth)} if {e('bool', depth)} else {e('s32', depth)})"
        if choice == 11:
            return r.choice([f"(-{e('s32', depth)})", f"(~{e('s32', depth)})", f"abs({e('s32', depth)})"])
        if choice == 12:
            source = r.choice(["f32", "u32", "s64", "bool", "u64", "f16"])
            return f"pto.s32({e(source, depth)})"
        if choice == 13:
            if "xi" not in self.scope_pointers():
                return self.leaf("s32")
            pointers = [n for n, k in self.readable.items() if k == "ptr"]
            if pointers and r.random() < 0.6:
                return f"pto.load({r.choice(pointers)})"
            where = f"({e('s32', depth)}) % {LANES}"
            return r.choice([f"pto.load(xi + {where})", f"pto.s32(pto.load(xb + {where}))"])
        if choice == 14:
            return f"pto.popc({e('u32', depth)})"
        return f"(pto.s32({e('bool', depth)}) + {e('s32', depth)})"

    def scope_pointers(self) -> tuple[str, ...]:
        return ("xi",) if "lane" in self.readable else ()

    def expr_u32(self, depth: int) -> str:
        r, e = self.r, self.expr
        choice = r.randint(0, 8)
        if choice <= 3:
            op = r.choice(["+", "-", "*", "&", "|", "^"])
            right = self.constant("u32") if r.random() < 0.3 else e("u32", depth)
            return f"({e('u32', depth)} {op} {right})"
        if choice == 4:
            divisor = str(r.choice([1, 2, 3, 16, 1000])) if r.random() < 0.6 else f"({e('u32', depth)} | 1)"
            return f"({e('u32', depth)} {r.choice(['//', '%'])} {divisor})"
        if choice == 5:
            return f"({e('u32', depth)} {r.choice(['<<', '>>'])} {r.randint(0, 31)})"
        if choice == 6:
            return f"pto.u32({e(r.choice(['s32', 'f32', 's64']), depth)})"
        if choice == 7:
            return f"{r.choice(['min', 'max'])}({e('u32', depth)}, {e('u32', depth)})"
        return f"({e('u32', depth)} if {e('bool', depth)} else {e('u32', depth)})"

    def expr_s64(self, depth: int) -> str:
        r, e = self.r, self.expr
        choice = r.randint(0, 7)
        if choice <= 2:
            other = e(r.choice(["s64", "s32", "u32"]), depth)
            return f"({e('s64', depth)} {r.choice(['+', '-', '*'])} {other})"
        if choice == 3:
            divisor = str(r.choice([1, 2, 3, 8, 1000, -5])) if r.random() < 0.6 else f"({e('s64', depth)} | 1)"
            return f"({e('s64', depth)} {r.choice(['//', '%'])} {divisor})"
        if choice == 4:
            return f"({e('s64', depth)} {r.choice(['<<', '>>'])} {r.randint(0, 63)})"
        if choice == 5:
            return f"pto.s64({e(r.choice(['s32', 'u32', 'f32']), depth)})"
        if choice == 6:
            return f"({e('s64', depth)} {r.choice(['&', '|', '^'])} {e('s64', depth)})"
        return f"({e('s64', depth)} if {e('bool', depth)} else {e('s64', depth)})"

    def expr_u64(self, depth: int) -> str:
        r, e = self.r, self.expr
        choice = r.randint(0, 5)
        if choice <= 1:
            return f"({e('u64', depth)} {r.choice(['+', '-', '*'])} {e(r.choice(['u64', 'u32']), depth)})"
        if choice == 2:
            divisor = str(r.choice([1, 3, 8, 10**10])) if r.random() < 0.6 else f"({e('u64', depth)} | 1)"
            return f"({e('u64', depth)} {r.choice(['//', '%'])} {divisor})"
        if choice == 3:
            return f"pto.u64({e(r.choice(['s32', 'u32', 's64', 'f32']), depth)})"
        if choice == 4:
            return f"({e('u64', depth)} {r.choice(['&', '|', '^', '>>'])} {r.randint(0, 63)})"
        return f"({e('u64', depth)} if {e('bool', depth)} else {e('u64', depth)})"

    def expr_f16(self, depth: int) -> str:
        r, e = self.r, self.expr
        choice = r.randint(0, 6)
        if choice <= 2:
            right = r.choice([e("f16", depth), self.constant("f16"), e("s32", depth)])
            return f"({e('f16', depth)} {r.choice(['+', '-', '*', '/'])} {right})"
        if choice == 3:
            return f"pto.f16({e(r.choice(['s32', 'f32', 'u32']), depth)})"
        if choice == 4:
            return f"{r.choice(['min', 'max'])}({e('f16', depth)}, {e('f16', depth)})"
        if choice == 5:
            return r.choice([f"(-{e('f16', depth)})", f"abs({e('f16', depth)})"])
        return f"({e('f16', depth)} if {e('bool', depth)} else {e('f16', depth)})"

    def expr_f32(self, depth: int) -> str:
        r, e = self.r, self.expr
        choice = r.randint(0, 13)
        if choice == 0:
            return self.call("f32", depth) or self.leaf("f32")
        if choice <= 5:
            op = r.choice(["+", "-", "*", "/", "+", "*"])
            right = self.constant("f32") if r.random() < 0.3 else e("f32", depth)
            if r.random() < 0.2:
                right = e(r.choice(["s32", "u32", "s64", "u64", "f16"]), depth)
            return f"({e('f32', depth)} {op} {right})"
        if choice == 6:
            return f"({e('s32', depth)} / {e('s32', depth)})"
        if choice == 7:
            return f"({e('f32', depth)} {r.choice(['//', '%'])} {e('f32', depth)})"
        if choice == 8:
            return f"{r.choice(['min', 'max'])}({e('f32', depth)}, {e('f32', depth)})"
        if choice == 9:
            return f"({e('f32', depth)} if {e('bool', depth)} else {e('f32', depth)})"
        if choice == 10:
            return f"pto.fma({e('f32', depth)}, {e('f32', depth)}, {e('f32', depth)})"
        if choice == 11:
            return r.choice([f"(-{e('f32', depth)})", f"abs({e('f32', depth)})", f"pto.floor({e('f32', depth)})"])
        if choice == 12:
            return f"pto.f32({e(r.choice(['s32', 'u32', 's64', 'bool', 'u64', 'f16']), depth)})"
        return f"pto.sqrt(abs({e('f32', depth)}))"

    def comparison(self, depth: int) -> str:
        r, e = self.r, self.expr
        kind = r.choice(["s32", "s32", "f32", "u32", "s64", "u64", "f16"])
        op = r.choice(["<", "<=", ">", ">=", "==", "!="])
        if r.random() < 0.15:
            return f"({e(kind, depth)} {op} {e(kind, depth)} {r.choice(['<', '<='])} {e(kind, depth)})"
        return f"({e(kind, depth)} {op} {e(kind, depth)})"

    def expr_bool(self, depth: int) -> str:
        r, e = self.r, self.expr
        choice = r.randint(0, 8)
        if choice == 0:
            return self.call("bool", depth) or self.comparison(depth)
        if choice <= 4:
            return self.comparison(depth)
        if choice <= 6:
            return f"({e('bool', depth)} {r.choice(['and', 'or'])} {e('bool', depth)})"
        if choice == 7:
            return f"(not {e('bool', depth)})"
        return f"({e('bool', depth)} if {e('bool', depth)} else {e('bool', depth)})"

    # ------------------------------------------------------------ statements

    def body(self, count: int, nesting: int) -> None:
        start = len(self.lines)
        for _ in range(count):
            self.statement(nesting)
        if len(self.lines) == start:
            self.line("pass")

    def block(self, nesting: int) -> None:
        self.depth += 1
        known = dict(self.readable)
        self.body(self.r.randint(1, 3), nesting + 1)
        self.readable = known  # what was first set inside may be unset behind
        self.depth -= 1

    def assign(self) -> None:
        name = self.r.choice(list(self.variables))
        kind = self.variables[name]
        if kind == "weak":
            self.line(f"{name} {self.r.choice(['+=', '-='])} {self.r.randint(0, 3)}")
            return
        if kind == "ptr":
            self.line(f"{name} = {self.pointer(2)}")
            return
        if kind in ("s32", "f32", "u32", "s64") and self.r.random() < 0.35:
            op = self.r.choice(["+=", "-=", "*="] if kind != "f32" else ["+=", "-=", "*=", "/="])
            self.line(f"{name} {op} {self.expr(kind, 2)}")
            return
        self.line(f"{name} = {self.expr(kind, 3)}")

    def statement(self, nesting: int) -> None:
        r = self.r
        choice = r.randint(0, 20)
        if nesting == 0 and (choice == 20 or r.random() < 0.06):
            return self.warp()
        if choice <= 6 or nesting >= 3:
            return self.assign()
        if choice <= 10:
            self.line(f"if {self.expr('bool', 2)}:")
            self.block(nesting)
            if r.random() < 0.25:
                self.line(f"elif {self.expr('bool', 2)}:")
                self.block(nesting)
            if r.random() < 0.5:
                self.line("else:")
                self.block(nesting)
            return None
        if choice <= 13:
            return self.loop(nesting)
        if choice == 14 and self.loops:
            self.line(f"if {self.expr('bool', 1)}:")
            self.depth += 1
            self.line(r.choice(["break", "continue"]))
            self.depth -= 1
            return None
        if choice == 15:
            self.line(f"pto.store(mem + (lane * {WIDTH} + ({self.expr('s32', 2)}) % {WIDTH}), {self.expr('s32', 2)})")
            return None
        if choice == 16:
            name = r.choice([n for n, k in self.variables.items() if k == "s32"])
            self.line(f"{name} = pto.load(mem + lane * {WIDTH} + ({self.expr('s32', 1)}) % {WIDTH})")
            return None
        if choice == 17:
            self.line(f"pto.atomic_add(count + ({self.expr('s32', 1)}) % 8, {self.expr('s32', 1)})")
            return None
        if choice == 18:
            kind = r.choice(list(self.variables.values()))
            names = [n for n, k in self.variables.items() if k == kind]
            if kind == "ptr" and self.r.random() < 0.5:
                self.line(f"pto.store({r.choice(names)}, {self.expr('s32', 2)})")
                return None
            a, b = r.choice(names), r.choice(names)
            if a != b:
                self.line(f"{a}, {b} = {b}, {a}")
            return None
        if choice == 19 and nesting == 0 and r.random() < 0.3:
            self.line(f"if {self.expr('bool', 2)}:")
            self.depth += 1
            self.results()
            self.line("return")
            self.depth -= 1
            return None
        return self.assign()

    def warp(self) -> None:
        """Where all lanes that still run are together: something of the other lanes."""
        r = self.r
        kinds = {k: [n for n, kind in self.variables.items() if kind == k] for k in ("s32", "u32", "bool")}
        self.loop_names += 1
        if r.random() < 0.5:
            name = r.choice(kinds["s32"])
            shuffle = r.choice(["shfl_idx", "shfl_xor", "shfl_up", "shfl_down"])
            source = r.choice(kinds["s32"] + kinds["u32"])
            target = name if source in kinds["s32"] else source
            self.line(f"{target} = pto.{shuffle}({source}, {r.randint(0, 31)})")
        elif r.random() < 0.6:
            name = r.choice(kinds["s32"])
            self.line(f"{name} = pto.{r.choice(['reduce_add', 'reduce_max', 'reduce_xor'])}({self.expr('s32', 2)})")
        elif kinds["bool"] and r.random() < 0.7:
            self.line(f"{r.choice(kinds['bool'])} = pto.{r.choice(['vote_any', 'vote_all'])}({self.expr('bool', 2)})")
        elif kinds["u32"]:
            self.line(f"{r.choice(kinds['u32'])} = pto.vote_ballot({self.expr('bool', 2)})")

    def loop(self, nesting: int) -> None:
        r = self.r
        self.loop_names += 1
        index = f"i{self.loop_names}"
        choice = r.randint(0, 3)
        self.loops += 1
        known = dict(self.readable)
        if choice <= 1:
            bounds = r.choice([
                f"{r.randint(0, 4)}",
                f"({self.expr('s32', 1)}) % {r.randint(1, 5)}",
                f"{r.randint(-3, 3)}, {r.randint(-3, 6)}",
                f"lane % 3, {r.randint(2, 7)}, {r.randint(1, 3)}",
                f"({self.expr('s32', 1)}) % 6, {r.randint(-2, 1)}, -{r.randint(1, 2)}",
                f"0, 6, ({self.expr('s32', 1)}) % 3 + 1",
            ])  # fmt: skip
            self.line(f"for {index} in range({bounds}):")
            self.readable[index] = "s32"
            self.block(nesting)
            if r.random() < 0.2:
                self.line("else:")
                self.readable = dict(known)
                self.loops -= 1  # break and continue are no part of it
                self.block(nesting)
                self.loops += 1
        elif choice == 2:
            self.line(f"{index} = pto.s32(0)")
            self.line(f"while {index} < ({self.expr('s32', 1)}) % 5 and {self.expr('bool', 1)}:")
            self.depth += 1
            self.line(f"{index} += 1")
            self.readable[index] = "s32"
            self.body(r.randint(1, 3), nesting + 1)
            self.depth -= 1
            known[index] = "s32"
        else:
            self.line(f"for {index} in pto.static_range({r.randint(1, 3)}):")
            self.block(nesting)
        self.readable = known
        self.loops -= 1

    def results(self) -> None:
        places = {"f32": "of", "u32": "ou", "s64": "ol", "f16": "of", "u64": "ol"}
        for i, (name, kind) in enumerate(self.variables.items()):
            value = f"pto.load({name})" if kind == "ptr" else name
            if kind in ("bool", "u64"):
                value = f"pto.{'s32' if kind == 'bool' else 's64'}({name})"
            self.line(f"pto.store({places.get(kind, 'oi')} + (lane * 8 + {i}), {value})")


# ---------------------------------------------------------------- running


def inputs(seed: int) -> list:
    r = np.random.default_rng(seed)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 3.4e38, -1.0], np.float32)
    floats = (r.standard_normal(LANES) * 100).astype(np.float32)
    floats[:8] = special
    ints = r.integers(-100, 100, LANES).astype(np.int32)
    ints[:6] = [0, 1, -1, -(2**31), 2**31 - 1, 65536]
    return [
        ints,
        floats,
        r.integers(0, 2**32, LANES, dtype=np.uint64).astype(np.uint32),
        r.integers(0, 256, LANES).astype(np.uint8),
        r.integers(-50, 50, LANES * WIDTH).astype(np.int32),
        np.zeros(LANES * 8, np.int32),
        np.zeros(LANES * 8, np.float32),
        np.zeros(LANES * 8, np.uint32),
        np.zeros(LANES * 8, np.int64),
        np.zeros(8, np.int32),
        int(r.integers(-5, 50)),
        float(np.float32(r.standard_normal())),
    ]


def define(text: str, name: str, scope: dict):
    """Runs the definitions of the text; the kernel object (or plain function)."""
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    exec(compile(text, name, "exec"), scope)
    return scope["fuzzed"]


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


def run_simulated(kernel, values: list, seed: int) -> list:
    """The arrays after the launch: in different orders of warps, now and then under the checks."""
    arrays = [v.copy() if isinstance(v, np.ndarray) else v for v in values]
    tensors = [pypto.Tensor.from_numpy(a) if isinstance(a, np.ndarray) else a for a in arrays]
    schedule = ("", "lockstep", "greedy", f"random:{seed}")[seed % 4]
    checks = "mem,init,race,sync" if seed % 10 == 0 else ""
    launch = pypto.launch(
        kernel, grid=(1, 1, 1), block=(LANES, 1, 1), args=tuple(tensors), schedule=schedule, checks=checks
    )
    launch.wait()
    for finding in launch.checks():
        raise AssertionError(f"a check found: {finding}")
    for array, tensor in zip(arrays, tensors):
        if isinstance(array, np.ndarray):
            pypto.memcpy_d2h(array, tensor)
    return arrays


NAMES = ["xi", "xf", "xu", "xb", "mem", "oi", "of", "ou", "ol", "count"]


def check(seed: int) -> str:
    """Empty if the program of this seed agrees, else what differs."""
    text = Generator(seed).text()
    values = inputs(seed)
    try:
        expected = reference(text, values)
    except ZeroDivisionError:
        return ""
    kernel = define(text, f"<fuzz {seed}>", {"pto": pypto})
    got = run_simulated(kernel, values, seed)
    for name, a, b in zip(NAMES, expected, got):
        same = (a == b) | ((a != a) & (b != b))
        if not same.all():
            at = int(np.flatnonzero(~same)[0])
            return (
                f"program {seed}: {name}[{at}] is {b[at]}, Python computes {a[at]}\n"
                + "\n".join(f"{i + 1:3} {line}" for i, line in enumerate(text.splitlines()))
            )
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int)
    parser.add_argument("--keep-going", action="store_true")
    options = parser.parse_args()
    if options.show is not None:
        text = Generator(options.show).text()
        print(text)
        kernel = define(text, f"<fuzz {options.show}>", {"pto": pypto})
        print(kernel.compile(tuple(_stand_in(v) for v in inputs(options.show))).asm)
        print(check(options.show) or "agrees")
        return 0
    bad = 0
    for seed in range(options.seed, options.seed + options.count):
        try:
            message = check(seed)
        except Exception as error:  # noqa: BLE001 a crash of the compiler is a finding
            message = f"program {seed}: {type(error).__name__}: {error}"
            if not options.keep_going:
                print(Generator(seed).text())
                raise
        if message:
            bad += 1
            print(message)
            if not options.keep_going:
                return 1
    print(f"{options.count} programs, {bad} disagree")
    return 1 if bad else 0


def _stand_in(value):
    if not isinstance(value, np.ndarray):
        return value
    return python_types.SimpleNamespace(_pto_is_tensor_=True, dtype=value.dtype)


if __name__ == "__main__":
    sys.exit(main())
