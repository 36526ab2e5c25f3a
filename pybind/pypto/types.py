# SPDX-License-Identifier: Apache-2.0
"""Element types of tensors and values, pointers to them, and how mixed operands promote.

`pypto.f32` and its like are `DType` objects. Inside a kernel `pto.f32(x)` converts a value; outside it
makes a typed constant, for arguments and for constants of the enclosing scope.
"""
from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np

from pypto.checked import shown

__all__ = [
    "DType", "Pointer", "TypedConstant", "ptr", "from_numpy_dtype", "promote", "ALL", "PRED",
    "s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64", "f16", "bf16", "f32", "f16x2",
    "b8", "b16", "b32", "b64",
]  # fmt: skip


@dataclass(frozen=True, eq=False)
class DType:
    """A type of the instruction set.

    `name` as in PTO text, `bits` of storage, `kind` one of "int", "float", "bits", "packed", "pred".
    `DType` objects are compared by identity.
    """

    name: str
    bits: int
    kind: str
    is_signed: bool = False

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return self.bits // 8

    @property
    def is_int(self) -> bool:
        return self.kind == "int"

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def register_class(self) -> str:
        """"p", "d" (64 bits) or "r"."""
        if self.kind == "pred":
            return "p"
        return "d" if self.bits == 64 else "r"

    @property
    def low(self) -> int:
        """Smallest integer of the type."""
        return -(1 << (self.bits - 1)) if self.is_signed else 0

    @property
    def high(self) -> int:
        """Largest integer of the type."""
        return (1 << (self.bits - self.is_signed)) - 1

    def wrap(self, value: int) -> int:
        """The integer modulo 2^bits, read with this type's sign."""
        value &= (1 << self.bits) - 1
        if self.is_signed and value >> (self.bits - 1):
            value -= 1 << self.bits
        return value

    def round(self, value: float) -> float:
        """The nearest value of this float type, as a Python float."""
        return self.unpack(self.pack(value))

    def numpy(self) -> np.dtype:
        """The numpy type with the same bits; bf16 and f16x2 have none and give unsigned integers."""
        return np.dtype(_NUMPY_NAMES[self.name])

    def pack(self, value: Any) -> int:
        """Bit pattern of a Python or numpy number, as an unsigned integer of `bits` bits.

        Floats are rounded to nearest even, integers of any size included (what is too large is infinite).
        Raises OverflowError for integers that do not fit, ValueError for NaN and infinities as integers,
        TypeError for what is no number.
        """
        if isinstance(value, (str, bytes)) or not isinstance(value, numbers.Real | np.number | np.bool_):
            raise TypeError(f"{shown(value)} is no number, as a {self.name} must be")
        if self.kind == "float":
            number = as_float(value)
            if self.name == "f32":
                with np.errstate(over="ignore"):
                    return int(np.float32(number).view(np.uint32))
            if self.name == "f16":
                with np.errstate(over="ignore"):
                    return int(np.float16(number).view(np.uint16))
            return _bf16_bits(number)
        if isinstance(value, (float, np.floating)) and not math.isfinite(value):
            raise ValueError(f"{value} is no integer, as a {self.name} must be")
        number = int(value)
        low, high = (-(1 << (self.bits - 1)), (1 << self.bits) - 1)
        if self.kind == "int":
            low, high = self.low, self.high
        if not low <= number <= high:
            raise OverflowError(f"{shown(number)} does not fit {self.name}, which holds {low} to {high}")
        return number & ((1 << self.bits) - 1)

    def unpack(self, bits: int) -> float:
        """The number of this float type that has the bit pattern."""
        if self is bf16:
            return float(np.uint32(bits << 16).view(np.float32))
        return float(np.array(bits, f"u{self.size}").view(self.numpy())[()])

    def __call__(self, value: Any) -> "TypedConstant":
        """A constant of this type (host side); in a kernel the same spelling converts a value.

        Floats lose their fraction where the type is an integer. Raises TypeError for what is no number,
        ValueError for numbers that the type cannot hold.
        """
        try:
            if self.kind == "int" and isinstance(value, float) and math.isfinite(value):
                value = math.trunc(value)
            self.pack(value)
        except OverflowError as error:
            raise ValueError(str(error)) from None
        return TypedConstant(self, value)

    def __repr__(self) -> str:
        return f"pypto.{self.name}"

    def __reduce__(self) -> str:
        return self.name


@dataclass(frozen=True)
class TypedConstant:
    """A number with a PTO type: `pypto.u32(5)`. May be an argument of a kernel or a captured constant."""

    dtype: DType
    value: Any

    def __repr__(self) -> str:
        return f"{self.dtype!r}({self.value!r})"


@dataclass(frozen=True)
class Pointer:
    """The type of a kernel parameter that points at elements in hbm; made by `ptr`."""

    element: DType

    def __repr__(self) -> str:
        return f"pypto.ptr({self.element!r})"


s8 = DType("s8", 8, "int", True)
u8 = DType("u8", 8, "int")
s16 = DType("s16", 16, "int", True)
u16 = DType("u16", 16, "int")
s32 = DType("s32", 32, "int", True)
u32 = DType("u32", 32, "int")
s64 = DType("s64", 64, "int", True)
u64 = DType("u64", 64, "int")
f16 = DType("f16", 16, "float")
bf16 = DType("bf16", 16, "float")
f32 = DType("f32", 32, "float")
f16x2 = DType("f16x2", 32, "packed")
b8 = DType("b8", 8, "bits")
b16 = DType("b16", 16, "bits")
b32 = DType("b32", 32, "bits")
b64 = DType("b64", 64, "bits")
PRED = DType("pred", 1, "pred")

ALL = {
    t.name: t
    for t in (s8, u8, s16, u16, s32, u32, s64, u64, f16, bf16, f32, f16x2, b8, b16, b32, b64)
}  # fmt: skip

_NUMPY_NAMES = {
    "s8": "i1", "u8": "u1", "b8": "u1", "s16": "i2", "u16": "u2", "b16": "u2", "bf16": "u2",
    "f16": "f2", "s32": "i4", "u32": "u4", "b32": "u4", "f16x2": "u4", "f32": "f4", "s64": "i8",
    "u64": "u8", "b64": "u8",
}  # fmt: skip
_BY_NUMPY = {"i1": s8, "u1": u8, "b1": u8, "i2": s16, "u2": u16, "f2": f16, "i4": s32, "u4": u32,
             "f4": f32, "i8": s64, "u8": u64}  # fmt: skip


def _bf16_bits(number: float) -> int:
    """f64 -> bf16, to nearest even in one rounding."""
    if math.isnan(number):
        return 0x7FC0
    # Round to odd at f32 keeps what the second rounding needs to know.
    single = np.float32(number) if abs(number) < 3.5e38 else np.float32(math.copysign(math.inf, number))
    bits = int(single.view(np.uint32))
    back = float(single)
    if back != number and not math.isinf(back):
        if abs(back) > abs(number):
            bits -= 1
        bits |= 1
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16) & 0xFFFF


def as_float(value: Any) -> float:
    """A number as float; integers beyond the largest one are infinite, as a rounding would have it."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def ptr(element: DType = f32) -> Pointer:
    """The type of a pointer parameter, for annotations and `Kernel.compile_types`."""
    if not isinstance(element, DType) or element is PRED:
        raise TypeError(f"ptr() takes a type such as pypto.f32, not {element!r}")
    return Pointer(element)


def from_numpy_dtype(dtype: Any) -> DType:
    """The PTO type of a numpy dtype (or a DType itself). TypeError where there is none."""
    if isinstance(dtype, DType):
        return dtype
    try:
        dtype = np.dtype(dtype)
    except TypeError:
        raise TypeError(f"{shown(dtype)} is no type of pypto or numpy") from None
    if dtype.name == "bfloat16":
        return bf16
    found = _BY_NUMPY.get(f"{dtype.kind}{dtype.itemsize}")
    if found is not None and not dtype.isnative:
        raise TypeError(
            f"the bytes of numpy's {dtype.str} ({dtype.name}) are in the other order than this machine's; "
            f"convert it: x.astype('{dtype.newbyteorder('=').str}')"
        )
    if found is None:
        hint = "; use float32" if dtype.kind == "f" else ""
        raise TypeError(
            f"PTO has no type for numpy's {dtype.name}: it has integers of 8 to 64 bits, float16 and "
            f"float32, bfloat16{hint}"
        )
    return found


def stores_as(dtype: DType, held: DType) -> bool:
    """True if memory that holds `held` can be taken for `dtype` without reading bits as something else.

    Bits are what any type of their size is; numpy has no bf16 and keeps it as u16; f16x2 is two f16.
    """
    if dtype is held:
        return True
    if "bits" in (dtype.kind, held.kind):
        return dtype.bits == held.bits
    return held in {bf16: (u16,), u16: (bf16,), f16x2: (f16, u32), f16: (f16x2,)}.get(dtype, ())


def promote(a: DType, b: DType) -> DType | None:
    """The type in which `a op b` is computed; None where mixing needs an explicit conversion.

    Integers of 8 and 16 bits count as s32. An integer with a float gives the float type; f16 or bf16
    with f32 gives f32. s32 with s64 gives s64, u32 with either 64-bit type that type. What is left
    (s32 with u32, s64 or s32 with u64, f16 with bf16) has no answer that suits everybody.
    """
    a, b = widened(a), widened(b)
    if a is b:
        return a
    if a.kind == "bits" or b.kind == "bits":
        other = b if a.kind == "bits" else a
        return other if a.bits == b.bits else None
    if a.is_float and b.is_float:
        return f32 if f32 in (a, b) else None
    if a.is_float and b.is_int:
        return a
    if a.is_int and b.is_float:
        return b
    if a.is_int and b.is_int:
        wide, narrow = (a, b) if a.bits > b.bits else (b, a)
        if wide.bits > narrow.bits and (wide.is_signed == narrow.is_signed or wide is s64):
            return wide
    return None


def widened(t: DType) -> DType:
    """s32 for integers of 8 and 16 bits, b32 for bits; every other type itself."""
    if t.bits < 32:
        if t.is_int:
            return s32
        if t.kind == "bits":
            return b32
    return t


def float_text(value: float) -> str:
    """A float immediate in PTO text."""
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return repr(float(value))
