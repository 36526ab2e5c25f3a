# SPDX-License-Identifier: Apache-2.0
"""Conversions of scalars: explicit, implied by where a value goes, and to truth values."""
from __future__ import annotations

import ast
import math
from typing import Any

from pypto import types
from pypto.checked import shown
from pypto.compiler.builder import bits_of, describe, fits, is_scalar
from pypto.compiler.ir import Const, Ptr, Value
from pypto.compiler.loops import Loops
from pypto.types import PRED, DType


class Conversions(Loops):
    def need_scalar(self, entity: Any, what: str, node: ast.AST | None = None) -> Any:
        if is_scalar(entity):
            return entity
        hint = ""
        if isinstance(entity, Ptr):
            hint = "read what it points at with pto.load(...)"
        raise self.error(f"{what} is needed here, not {describe(entity)}", hint, node)

    def as_const(self, value: Const, type: DType) -> Const:
        """A Python number as a constant of `type`; an error where it does not fit."""
        if value.type is type:
            return value
        number = value.value
        if isinstance(number, bool) and type is not PRED:
            number = int(number)
        if type is PRED:
            return Const(bool(number), PRED)
        if type.is_float:
            return Const(types.as_float(number), type)
        if isinstance(number, float):
            raise self.error(
                f"{number} is a float and {type.name} is needed", f"write pto.{type.name}({number})"
            )
        if not fits(number, type):
            wider = "s64" if type.bits == 32 and fits(number, types.s64) else None
            raise self.error(
                f"{shown(number)} does not fit {type.name}, which holds {type.low} to {type.high}",
                f"compute in a wider type: pto.{wider}(...)" if wider else "",
            )
        return Const(number, type)

    def convert(self, value: Any, type: DType, rounding: str = "") -> Any:
        """An explicit conversion: integers are cut or extended, floats rounded, saturated to integers."""
        if isinstance(value, Const):
            return self._convert_const(value, type, rounding)
        source = value.type
        if type is PRED:
            return self.truth(value)
        if source is PRED:
            if type.is_float:
                one = hex(type.pack(1.0))
                (reg,) = self.pure("sel.b32", "r", [one, "0", value.arg], (value,))
                return Value(type, reg)
            (reg,) = self.pure(f"sel.{bits_of(type)}", type.register_class, ["1", "0", value.arg], (value,))
            return Value(type, reg, 0, 1)
        if source is type and not rounding:
            return value
        if type.kind in ("bits", "packed") or source.kind in ("bits", "packed"):
            return self.bitcast(value, type)
        if source.is_int and type.is_int:
            if source.bits < type.bits and type.bits == 32:
                return Value(type, value.op, value.low, value.high)  # extended by the load
            if source.register_class == type.register_class:
                if type.low <= value.low and value.high <= type.high:
                    return Value(type, value.op, value.low, value.high)
                if source.bits == type.bits >= 32:
                    return Value(type, value.op)
        return self._cvt(value, type, rounding)

    def _cvt(self, value: Value, type: DType, rounding: str) -> Value:
        low = high = None
        if value.type.is_int and type.is_int and type.low <= value.low and value.high <= type.high:
            low, high = value.low, value.high
        suffix = f".{rounding}" if rounding else ""
        return self.compute(
            f"cvt.{type.name}.{value.type.name}{suffix}",
            type,
            [value],
            value.type,
            low,
            high,
            speculate=value.type.is_int,
        )

    def _convert_const(self, value: Const, type: DType, rounding: str) -> Any:
        number = value.value
        if type is PRED:
            return Const(bool(number), PRED)
        if type.is_float:
            if rounding and value.type is not None:
                number = _round(float(number), rounding)
            return Const(types.as_float(number), type)
        if isinstance(number, float):
            if math.isnan(number):
                return Const(0, type)
            if math.isinf(number):
                return Const(type.low if number < 0 else type.high, type)
            number = int(_round(number, rounding or "rz"))
            return Const(min(max(number, type.low), type.high), type)
        number = int(number)
        if type.is_int:
            return Const(type.wrap(number), type)
        return Const(number & ((1 << type.bits) - 1), type)

    def bitcast(self, value: Any, type: DType) -> Any:
        """The same bits read as another type of the same size."""
        if isinstance(value, Const):
            source = value.type or self.common_type([value])
            if source.bits != type.bits:
                raise self.error(f"{source.name} and {type.name} differ in size")
            bits = source.pack(value.value)
            if type.is_float:
                return Const(type.unpack(bits), type)
            return Const(type.wrap(bits) if type.is_int else bits, type)
        if value.type.bits != type.bits or value.type is PRED:
            raise self.error(
                f"a {value.type.name} has not the bits of a {type.name}: {value.type.bits} and {type.bits}"
            )
        if type.is_int and type.bits < 32 and value.type.kind != "bits":
            unsigned = Value(types.u32, value.op)
            return self.compute(f"cvt.{type.name}.u32", type, [unsigned], types.u32)
        return Value(type, value.op)

    def assign_type(self, value: Any, type: DType, what: str) -> Any:
        """An implicit conversion where a type is prescribed (stores, annotations): everything but a
        float into an integer."""
        if isinstance(value, Const) and value.type is None:
            if isinstance(value.value, float) and type.is_int:
                raise self.error(
                    f"{what} is {type.name} and the value a float", f"convert: pto.{type.name}(...)"
                )
            if type.kind in ("bits", "packed") and isinstance(value.value, float):
                raise self.error(
                    f"{what} is {type.name}; {value.value} has no bits of that size",
                    "pto.bitcast(pto.f32(x), pto.b32) gives them",
                )
            if isinstance(value.value, int) and type.is_int and not isinstance(value.value, bool):
                return self.as_const(value, type)
            return self._convert_const(value, type, "")
        if value.type is type:
            return value
        if value.type.is_float and (type.is_int or type.kind in ("bits", "packed")):
            if type.is_int:
                raise self.error(
                    f"{what} is {type.name} and the value {value.type.name}",
                    f"convert: pto.{type.name}(...)",
                )
        return self.convert(value, type)

    def truth(self, value: Any) -> Any:
        """x as a condition: x != 0."""
        if isinstance(value, Const):
            return Const(bool(value.value), PRED)
        if value.type is PRED:
            return value
        if value.type.kind in ("bits", "packed"):
            value = self.bitcast(value, types.u64 if value.type.bits == 64 else types.u32)
        return self.compare("ne", value, Const(0))


def _round(value: float, rounding: str) -> float:
    if math.isinf(value) or math.isnan(value):
        return value
    return float({"rm": math.floor, "rp": math.ceil, "rz": math.trunc, "rn": round}[rounding](value))
