# SPDX-License-Identifier: Apache-2.0
"""Division and remainder, which floor.

The machine's DIV and REM take long. By a power of two they are a shift and an and; by another constant of 32
bits a multiplication with its reciprocal, of which the high half counts: with 2^k = m*d - e and x*e < 2^k for
every x that there can be, x // d is x*m >> k. For a negative x the same is done to ~x, since x // d is
~(~x // d) for a positive d. Where m needs a 33rd bit, x is shifted first if d is even; else the bit is
added by hand. Divisions by what is known at run time only, by negative constants and in 64 bits stay as
they are.
"""
from __future__ import annotations

import ast
from typing import Any

from pypto import types
from pypto.compiler.builder import bits_of, bounds
from pypto.compiler.conversions import Conversions
from pypto.compiler.ir import Const, Value
from pypto.compiler.operators import HOST_OPERATORS
from pypto.types import DType


class Division(Conversions):
    def floor_divide(self, op: type, left: Any, right: Any, type: DType) -> Any:
        a, b = self.to_type(left, type), self.to_type(right, type)
        is_mod = op is ast.Mod
        if type.is_float:
            quotient = self.compute(f"div.{type.name}", type, [a, b])
            floor = self.compute(f"cvt.{type.name}.{type.name}.rm", type, [quotient])
            if not is_mod:
                return floor
            product = self.compute(f"mul.{type.name}", type, [floor, b])
            return self.compute(f"sub.{type.name}", type, [a, product])
        if isinstance(b, Const):
            if b.value == 0:
                raise self.error("division by zero")
            if isinstance(a, Const):
                return Const(type.wrap(HOST_OPERATORS[op](a.value, b.value)), type)
            if b.value > 0 and b.value & (b.value - 1) == 0:
                return self._divide_by_power(a, b.value, type, is_mod)
            if b.value > 0 and type.bits == 32:
                return self._divide_by_constant(a, b.value, type, is_mod)
        (al, ah), (bl, bh) = bounds(a), bounds(b)
        low, high = self._quotient_range(al, ah, bl, bh, is_mod)
        speculate = isinstance(b, Const)
        name = "rem" if is_mod else "div"
        if (al >= 0 and bl >= 0) or not type.is_signed:
            return self.compute(f"{name}.{type.name}", type, [a, b], None, low, high, speculate)
        # Truncated toward zero by the machine; one less where the signs differ and it was not exact. By zero
        # it is all ones and stays so; the sum that corrects a remainder does nothing then.
        if is_mod:
            rest = self.compute(f"rem.{type.name}", type, [a, b], speculate=speculate)
        else:
            quotient = self.compute(f"div.{type.name}", type, [a, b], speculate=speculate)
            product = self.compute(f"mul.{type.name}", type, [quotient, b])
            rest = self.compute(f"sub.{type.name}", type, [a, product])
        if isinstance(b, Const) and b.value > 0:
            wrong = self.compare("lt", rest, Const(0, type))
        elif isinstance(b, Const):
            wrong = self.compare("gt", rest, Const(0, type))
        else:
            bits = bits_of(type)
            signs = self.compute(f"xor.{bits}", type, [rest, b])
            differ = self.compare("lt", signs, Const(0, type))
            wrong = self.logic("and", self.compare("ne", rest, Const(0, type)), differ)
            if not is_mod and bl <= 0 <= bh:
                wrong = self.logic("and", wrong, self.compare("ne", b, Const(0, type)))
        if is_mod:
            fixed = self.compute(f"add.{type.name}", type, [rest, b])
            result = self.select(wrong, fixed, rest, type)
        else:
            fixed = self.compute(f"sub.{type.name}", type, [quotient, Const(1, type)])
            result = self.select(wrong, fixed, quotient, type)
        return Value(type, result.op, low, high)

    def _quotient_range(self, al, ah, bl, bh, is_mod):
        if is_mod:
            if bl > 0:
                return 0, bh - 1
            return None, None
        if bl > 0:
            corners = [x // y for x in (al, ah) for y in (bl, bh)]
            return min(corners), max(corners)
        return None, None

    def _divide_by_power(self, a: Any, divisor: int, type: DType, is_mod: bool) -> Any:
        bits = bits_of(type)
        if divisor == 1:
            return Const(0, type) if is_mod else a
        if is_mod:
            return self.compute(f"and.{bits}", type, [a, Const(divisor - 1, type)], None, 0, divisor - 1)
        low, high = bounds(a)
        op = f"shr.{type.name}" if type.is_signed and low < 0 else f"shr.{bits}"
        count = Const(divisor.bit_length() - 1, types.u32)
        return self.compute(op, type, [a, count], None, low // divisor, high // divisor)

    def _divide_by_constant(self, a: Any, divisor: int, type: DType, is_mod: bool) -> Any:
        """By any other positive constant, in 32 bits."""
        low, high = bounds(a)
        if low >= 0 and high < divisor:
            return a if is_mod else Const(0, type)
        x, sign, largest = Value(types.u32, a.op, max(low, 0), high), None, high
        if low < 0:
            sign = self.compute("shr.s32", type, [a, Const(31, types.u32)], None, -1, 0)
            x = self.compute("xor.b32", types.u32, [a, sign])
            largest = max(high, -low - 1)
        quotient = self._multiply_by_reciprocal(x, divisor, largest)
        if sign is not None:
            quotient = self.compute("xor.b32", type, [quotient, sign])
        quotient = Value(type, quotient.op, low // divisor, high // divisor)
        if not is_mod:
            return quotient
        # Unsigned whatever the type: addresses look through sums of s32, which are not to wrap there.
        operands = [Value(types.u32, quotient.op), Const((1 << 32) - divisor, types.u32)]
        product = self.compute("mul.u32", types.u32, operands)
        rest = self.compute("add.u32", types.u32, [product, Value(types.u32, a.op)])
        return Value(type, rest.op, 0, divisor - 1)

    def _multiply_by_reciprocal(self, x: Value, divisor: int, largest: int) -> Value:
        """x // divisor of an unsigned x up to `largest`."""
        found = reciprocal(divisor, largest)
        if found is None and divisor % 2 == 0:
            zeros = (divisor & -divisor).bit_length() - 1
            x = self.compute("shr.b32", types.u32, [x, Const(zeros, types.u32)], None, 0, largest >> zeros)
            return self._multiply_by_reciprocal(x, divisor >> zeros, largest >> zeros)
        if found is not None:
            factor, shift = found
            quotient = self.compute("mulhi.u32", types.u32, [x, Const(factor, types.u32)])
            return self._shifted(quotient, shift)
        shift = divisor.bit_length()
        factor = -(-(1 << (32 + shift)) // divisor) - (1 << 32)  # without its 33rd bit
        part = self.compute("mulhi.u32", types.u32, [x, Const(factor, types.u32)])
        rest = self._shifted(self.compute("sub.u32", types.u32, [x, part]), 1)  # (x + part) has 33 bits
        return self._shifted(self.compute("add.u32", types.u32, [rest, part]), shift - 1)

    def _shifted(self, value: Value, count: int) -> Value:
        if count == 0:
            return value
        return self.compute("shr.b32", types.u32, [value, Const(count, types.u32)])


def reciprocal(divisor: int, largest: int) -> tuple[int, int] | None:
    """(m, s) with x // divisor == x*m >> (32 + s) for x from 0 to `largest`; None where m has over 32 bits."""
    for shift in range(32):
        power = 1 << (32 + shift)
        factor = -(-power // divisor)
        if factor >= 1 << 32:
            return None
        if (factor * divisor - power) * largest < power:
            return factor, shift
    return None
