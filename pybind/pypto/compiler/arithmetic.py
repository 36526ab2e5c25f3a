# SPDX-License-Identifier: Apache-2.0
"""Arithmetic and bits.

Numbers behave as in Python where that is possible in a fixed width: `/` is a float division, `//` and `%`
floor. Integers wrap. The rules of mixed types are those of `pypto.types.promote`.
"""
from __future__ import annotations

import ast
from typing import Any

from pypto import types
from pypto.checked import shown
from pypto.compiler.builder import bits_of, bounds, is_truth
from pypto.compiler.division import Division
from pypto.compiler.ir import Const, Host, Ptr, Tuple, Value
from pypto.compiler.limits import BITS, VALUES
from pypto.compiler.operators import HOST_OPERATORS, SYMBOLS
from pypto.types import PRED, DType


class Arithmetic(Division):
    def eval_BinOp(self, node: ast.BinOp) -> Any:
        left, right = self.evaluate(node.left), self.evaluate(node.right)
        return self.binary(type(node.op), left, right)

    def binary(self, op: type, left: Any, right: Any) -> Any:
        if isinstance(left, Ptr) or isinstance(right, Ptr):
            return self.pointer_arithmetic(op, left, right)
        if isinstance(left, Tuple) and isinstance(right, Tuple) and op is ast.Add:
            self._need_size(len(left.items) + len(right.items))
            return Tuple(left.items + right.items)
        if isinstance(left, Tuple) and isinstance(right, Const) and op is ast.Mult:
            times = int(self.as_const(right, types.s64).value)
            self._need_size(len(left.items) * max(times, 0))
            return Tuple(left.items * times)
        if isinstance(left, Host) and isinstance(right, Host):
            if isinstance(left.value, str) and isinstance(right.value, str):
                self._need_size(len(left.value) + len(right.value))
            try:
                return self.host(HOST_OPERATORS[op](left.value, right.value))
            except (TypeError, KeyError):
                pass
        symbol = SYMBOLS[op]
        left = self.need_scalar(left, f"a number on the left of {symbol}")
        right = self.need_scalar(right, f"a number on the right of {symbol}")
        if op not in HOST_OPERATORS:
            raise self.error(
                "there is no matrix product of values", "pto.mma(C, A, B, m, n, k) multiplies tiles"
            )
        if isinstance(left, Const) and isinstance(right, Const):
            if left.type is None and right.type is None:
                return self._fold(op, left.value, right.value)
        if op in (ast.BitAnd, ast.BitOr, ast.BitXor):
            return self.bitwise(op, left, right)
        if op in (ast.LShift, ast.RShift):
            return self.shift(op, left, right)
        left, right = (self.numeric(v) for v in (left, right))
        if op is ast.Div:
            return self.true_divide(left, right)
        if op is ast.Pow:
            return self.power(left, right)
        type_ = self.common_operand_type(left, right, symbol)
        if op in (ast.FloorDiv, ast.Mod):
            return self.floor_divide(op, left, right, type_)
        return self.arithmetic(op, left, right, type_)

    def _need_size(self, count: int) -> None:
        if count > VALUES:
            raise self.error(f"this has {shown(count)} values; a kernel takes up to {VALUES}")

    def _fold(self, op: type, a: Any, b: Any) -> Const:
        """Python's own result, if it is one that a compiler should compute."""
        if isinstance(a, int) and isinstance(b, int) and _bits_of_result(op, a, b) > BITS:
            raise self.error(
                f"{shown(a)} {SYMBOLS[op]} {shown(b)} has more than {BITS} bits",
                "constants are computed when the kernel is compiled; values have up to 64 bits",
            )
        try:
            result = HOST_OPERATORS[op](a, b)
        except (ArithmeticError, TypeError, ValueError) as error:
            raise self.error(f"{shown(a)} {SYMBOLS[op]} {shown(b)}: {error}") from None
        if isinstance(result, complex):
            raise self.error(f"{shown(a)} {SYMBOLS[op]} {shown(b)} is complex")
        return Const(result)

    def numeric(self, value: Any) -> Any:
        """A truth value as s32 0 or 1, bits as the unsigned integer."""
        if isinstance(value, Const):
            if isinstance(value.value, bool):
                return Const(int(value.value), None if value.type is None else types.s32)
            if value.type is not None and value.type.kind == "bits":
                return Const(value.value, types.u64 if value.type.bits == 64 else types.u32)
            return value
        if value.type is PRED:
            return self.convert(value, types.s32)
        if value.type.kind == "bits":
            return Value(types.u64 if value.type.bits == 64 else types.u32, value.op)
        return value

    def common_operand_type(self, left: Any, right: Any, symbol: str) -> DType:
        """The type of `left symbol right`; an error where the operands do not mix."""
        lt, rt = left.type, right.type
        if lt is None and rt is None:
            return self.common_type([left, right]) or types.s64
        if lt is None or rt is None:
            typed, weak = (rt, left.value) if lt is None else (lt, right.value)
            typed = types.widened(typed)
            if isinstance(weak, float) and typed.is_int:
                return types.f32
            return typed
        common = types.promote(lt, rt)
        if common is None:
            target = "s64" if "64" not in f"{lt.name}{rt.name}" else "u64"
            hint = f"convert one side: pto.{lt.name}(...), pto.{rt.name}(...)"
            if lt.is_int and rt.is_int:
                hint += f", or both to pto.{target}"
            raise self.error(f"{lt.name} {symbol} {rt.name}: these types do not mix", hint)
        return common

    def to_type(self, value: Any, type: DType) -> Any:
        """An operand in the common type."""
        if isinstance(value, Const) and value.type is None:
            return self.as_const(value, type)
        return self.convert(value, type)

    def arithmetic(self, op: type, left: Any, right: Any, type: DType) -> Any:
        a, b = self.to_type(left, type), self.to_type(right, type)
        if isinstance(a, Const) and isinstance(b, Const) and type.is_int:
            return Const(type.wrap(HOST_OPERATORS[op](a.value, b.value)), type)
        if type.is_int:
            return self.int_arithmetic(op, a, b, type)
        name = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul"}[op]
        return self.compute(f"{name}.{type.name}", type, [a, b])

    def int_arithmetic(self, op: type, a: Any, b: Any, type: DType) -> Any:
        (al, ah), (bl, bh) = bounds(a), bounds(b)
        if op is ast.Add:
            if isinstance(a, Const):
                a, b = b, a
            if isinstance(b, Const) and b.value == 0:
                return a
            return self.ranged(f"add.{type.name}", type, [a, b], al + bl, ah + bh)
        if op is ast.Sub:
            if isinstance(b, Const) and b.value == 0:
                return a
            return self.ranged(f"sub.{type.name}", type, [a, b], al - bh, ah - bl)
        if isinstance(a, Const):
            a, b = b, a
        corners = [x * y for x in (al, ah) for y in (bl, bh)]
        if isinstance(b, Const):
            factor = b.value
            if factor == 0:
                return Const(0, type)
            if factor == 1:
                return a
            if factor > 0 and factor & (factor - 1) == 0:
                bits = bits_of(type)
                return self.ranged(
                    f"shl.{bits}",
                    type,
                    [a, Const(factor.bit_length() - 1, types.u32)],
                    min(corners),
                    max(corners),
                )
        return self.ranged(f"mul.{type.name}", type, [a, b], min(corners), max(corners))

    def ranged(self, op: str, type: DType, operands: list[Any], low: int, high: int) -> Value:
        """An integer result that is exact where it lies in the type, unknown where it may wrap."""
        if low < type.low or high > type.high:
            low, high = type.low, type.high
        return self.compute(op, type, operands, None, low, high)

    def true_divide(self, left: Any, right: Any) -> Any:
        type_ = self.common_operand_type(left, right, "/")
        if type_.is_int:
            type_ = types.f32
        a, b = self.to_float(left, type_), self.to_float(right, type_)
        return self.compute(f"div.{type_.name}", type_, [a, b])

    def to_float(self, value: Any, type: DType) -> Any:
        if isinstance(value, Const):
            return Const(types.as_float(value.value), type)
        return self.convert(value, type)

    def power(self, left: Any, right: Any) -> Any:
        if isinstance(right, Const) and isinstance(right.value, int) and 0 <= right.value <= 64:
            if right.value == 0:
                return Const(1)
            type_ = types.widened(left.type) if left.type is not None else types.s32
            if type_.is_int or right.value == 2:
                return self._repeated_product(left, right.value, type_)
        type_ = self.common_operand_type(left, right, "**")
        if type_.is_int:
            raise self.error(
                "** of integers needs a constant exponent from 0 to 64",
                "pto.pow(pto.f32(x), y) computes in f32",
            )
        a, b = self.to_float(left, types.f32), self.to_float(right, types.f32)
        result = self.compute("pow.f32", types.f32, [a, b])
        return self.convert(result, type_)

    def _repeated_product(self, base: Any, exponent: int, type: DType) -> Any:
        result, square = None, self.to_type(base, type)
        while exponent:
            if exponent & 1:
                result = square if result is None else self.arithmetic(ast.Mult, result, square, type)
            exponent >>= 1
            if exponent:
                square = self.arithmetic(ast.Mult, square, square, type)
        return result

    def bitwise(self, op: type, left: Any, right: Any) -> Any:
        name = {ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor"}[op]
        if is_truth(left) and is_truth(right):
            return self.logic(name, left, right)
        left, right = (self._bit_operand(v, name) for v in (left, right))
        lt, rt = left.type, right.type
        if lt is not None and rt is not None and {lt.kind, rt.kind} == {"int", "bits"}:
            common = lt if lt.kind == "int" else rt  # bits follow the integer
            if lt.bits != rt.bits:
                common = self.common_operand_type(self.numeric(left), self.numeric(right), SYMBOLS[op])
        elif lt is not None and lt is rt:
            common = types.widened(lt) if lt.kind == "int" else lt
        else:
            common = self.common_operand_type(left, right, SYMBOLS[op])
        if isinstance(left, Const):
            left, right = right, left
        if isinstance(right, Const) and right.type is None:
            number = int(right.value)
            if not -(1 << (common.bits - 1)) <= number < 1 << common.bits:
                raise self.error(f"{number} has more than the {common.bits} bits of {common.name}")
            right = Const(common.wrap(number) if common.is_int else number, common)
        a, b = self.to_type(left, common), self.to_type(right, common)
        if isinstance(a, Const) and isinstance(b, Const) and common.is_int:
            return Const(common.wrap(HOST_OPERATORS[op](int(a.value), int(b.value))), common)
        low = high = None
        if common.is_int:
            low, high = _bit_range(name, bounds(a), bounds(b))
        bits = bits_of(common)
        return self.compute(f"{name}.{bits}", common, [a, b], None, low, high)

    def _bit_operand(self, value: Any, name: str) -> Any:
        if is_truth(value):
            return self.numeric(value)
        if (value.type is not None and value.type.is_float) or (
            value.type is None and isinstance(value.value, float)
        ):
            raise self.error(
                f"bitwise {name} of a float", "pto.bitcast(x, pto.u32) gives the bits of an f32"
            )
        return value

    def shift(self, op: type, left: Any, right: Any) -> Any:
        left, right = self.numeric(left), self.numeric(right)
        type_ = types.widened(left.type) if left.type is not None else types.s32
        count_type = right.type
        if type_.is_float or (count_type is not None and not count_type.is_int):
            raise self.error("shifts are for integers", "x * 2.0**n scales a float")
        if isinstance(right, Const):
            count = right.value
            if not isinstance(count, int) or not 0 <= count < type_.bits:
                raise self.error(f"a shift of {type_.name} by {count}: counts are 0 to {type_.bits - 1}")
        a = self.to_type(left, type_)
        if isinstance(a, Const) and isinstance(right, Const):
            return Const(type_.wrap(HOST_OPERATORS[op](a.value, right.value)), type_)
        if not isinstance(right, Const):
            right = self.convert(right, types.u32)
        bits = bits_of(type_)
        low, high = bounds(a)
        if op is ast.LShift:
            if isinstance(right, Const) and right.value < type_.bits - 1:
                return self.arithmetic(ast.Mult, a, Const(1 << right.value), type_)
            return self.compute(f"shl.{bits}", type_, [a, right], [type_, types.u32])
        name = f"shr.{type_.name}" if type_.is_signed else f"shr.{bits}"
        if isinstance(right, Const):
            low, high = low >> right.value, high >> right.value
        else:
            low, high = min(low, 0), max(high, 0)
        return self.compute(name, type_, [a, right], [type_, types.u32], low, high)

    def eval_UnaryOp(self, node: ast.UnaryOp) -> Any:
        if isinstance(node.op, ast.Not):
            return self.invert(self.truth(self.scalar(node.operand)))
        value = self.scalar(node.operand)
        if isinstance(value, Const) and value.type is None:
            if isinstance(node.op, ast.Invert):
                if isinstance(value.value, float):
                    raise self.error("~ of a float")
                return Const(~int(value.value))
            return Const(-value.value if isinstance(node.op, ast.USub) else +value.value)
        if isinstance(node.op, ast.Invert):
            return self._invert_bits(value)
        value = self.numeric(value)
        if isinstance(node.op, ast.UAdd):
            return value
        return self.negate(value)

    def _invert_bits(self, value: Any) -> Any:
        if is_truth(value):
            raise self.error("~ of a truth value", "use `not`")
        value = self._bit_operand(value, "not")
        type_ = types.widened(value.type)
        value = self.to_type(value, type_)
        if isinstance(value, Const):
            return Const(type_.wrap(~value.value) if type_.is_int else ~value.value, type_)
        low = high = None
        if type_.is_int and type_.is_signed:
            low, high = ~value.high, ~value.low
        bits = bits_of(type_)
        return self.compute(f"not.{bits}", type_, [value], None, low, high)

    def negate(self, value: Any) -> Any:
        type_ = types.widened(value.type)
        value = self.to_type(value, type_)
        if isinstance(value, Const):
            return Const(type_.wrap(-value.value) if type_.is_int else -value.value, type_)
        if type_.is_int and not type_.is_signed:
            return self.int_arithmetic(ast.Sub, Const(0, type_), value, type_)
        if type_.is_int:
            return self.ranged(f"neg.{type_.name}", type_, [value], -value.high, -value.low)
        return self.compute(f"neg.{type_.name}", type_, [value])


def _bits_of_result(op: type, a: int, b: int) -> int:
    """At least as many bits as `a op b` has; 0 for operators that make nothing larger."""
    if op is ast.Mult:
        return a.bit_length() + b.bit_length()
    if op is ast.LShift:
        return a.bit_length() + max(b, 0)
    if op is ast.Pow:
        return a.bit_length() * abs(b) if abs(a) > 1 else 1
    return 0


def _bit_range(name: str, a: tuple[int, int], b: tuple[int, int]) -> tuple[int | None, int | None]:
    if name == "and":
        highs = [high for low, high in (a, b) if low >= 0]
        return (0, min(highs)) if highs else (None, None)
    if a[0] >= 0 and b[0] >= 0:
        return 0, (1 << max(a[1].bit_length(), b[1].bit_length())) - 1
    return None, None
