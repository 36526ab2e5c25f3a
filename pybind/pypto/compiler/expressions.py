# SPDX-License-Identifier: Apache-2.0
"""Operators, conversions, conditions and pointers.

Numbers behave as in Python where that is possible in a fixed width: `/` is a float division, `//` and `%`
floor, comparisons chain, `and`, `or` and `not` give truth values. Integers wrap. The rules of mixed types
are those of `pypto.types.promote`.
"""
from __future__ import annotations

import ast
import math
import operator
from typing import Any

from pypto import types
from pypto.compiler.builder import Builder, bounds, describe, fits, is_scalar, is_within
from pypto.compiler.ir import (
    Addr,
    Block,
    Conflict,
    Const,
    Host,
    Ptr,
    Tuple,
    Value,
    VReg,
    constant_of,
)
from pypto.errors import CompileError
from pypto.instructions import INSTRUCTIONS
from pypto.types import PRED, DType

_HOST_OPERATORS = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow,
    ast.LShift: operator.lshift, ast.RShift: operator.rshift, ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_, ast.BitXor: operator.xor,
}  # fmt: skip
_SYMBOLS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Pow: "**", ast.LShift: "<<", ast.RShift: ">>", ast.BitAnd: "&", ast.BitOr: "|",
    ast.BitXor: "^", ast.MatMult: "@", ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=",
    ast.Gt: ">", ast.GtE: ">=", ast.Is: "is", ast.IsNot: "is not", ast.In: "in",
    ast.NotIn: "not in",
}  # fmt: skip
_COMPARISONS = {
    ast.Eq: ("eq", operator.eq), ast.NotEq: ("ne", operator.ne), ast.Lt: ("lt", operator.lt),
    ast.LtE: ("le", operator.le), ast.Gt: ("gt", operator.gt), ast.GtE: ("ge", operator.ge),
}  # fmt: skip
_SWAPPED = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}

EXPRESSIONS = (
    "numbers, names, calls, arithmetic (+ - * / // % **), bits (& | ^ ~ << >>), comparisons, "
    "and/or/not, conditional expressions, pointer + integer, tuples to unpack"
)


class Expressions(Builder):
    # ------------------------------------------------------------ entry points

    def evaluate(self, node: ast.expr) -> Any:
        """What an expression stands for: Value, Const, Ptr, ..."""
        saved, self.node = self.node, node
        try:
            method = getattr(self, f"eval_{type(node).__name__}", None)
            if method is None:
                raise self.error(
                    f"{_expression_name(node)} is not part of the kernel language",
                    f"expressions are {EXPRESSIONS}",
                )
            return method(node)
        finally:
            self.node = saved

    def scalar(self, node: ast.expr, what: str = "a number") -> Any:
        """The same, for where a number or truth value must stand."""
        entity = self.evaluate(node)
        return self.need_scalar(entity, what, node)

    def need_scalar(self, entity: Any, what: str, node: ast.AST | None = None) -> Any:
        if is_scalar(entity):
            return entity
        hint = ""
        if isinstance(entity, Ptr):
            hint = "read what it points at with pto.load(...)"
        raise self.error(f"{what} is needed here, not {describe(entity)}", hint, node)

    # ------------------------------------------------------------ leaves

    def eval_Constant(self, node: ast.Constant) -> Any:
        value = node.value
        if isinstance(value, (bool, int, float)):
            return Const(value)
        if isinstance(value, str):
            return Host(value)
        if value is None:
            return Host(None)
        raise self.error(
            f"a {type(value).__name__} has no place in a kernel", f"expressions are {EXPRESSIONS}"
        )

    def eval_Name(self, node: ast.Name) -> Any:
        name = node.id
        if name in self.env:
            entity = self.env[name]
            if isinstance(entity, Conflict):
                raise self.error(entity.message, entity.hint)
            return entity
        if name in self.local_names:
            raise self.error(
                f"{name} is used before it has a value",
                f"assign {name} on every way that leads here",
            )
        found, value = self.source.lookup(name)
        if not found:
            import difflib

            near = difflib.get_close_matches(name, [*self.env, *self.source.visible_names()], 1)
            if name in INSTRUCTIONS:
                near = [f"pto.{name}"]
            raise self.error(
                f"the name {name} is not defined", f"did you mean {near[0]}?" if near else ""
            )
        self.captured[(id(self.source), name)] = (self.source, name, value)
        return self.host(value, name)

    def host(self, value: Any, name: str) -> Any:
        """What a Python object of the enclosing scope is in a kernel."""
        const = constant_of(value)
        if const is not None:
            return const
        if isinstance(value, (tuple, list)):
            return Tuple([self.host(item, name) for item in value])
        return Host(value)

    def eval_Attribute(self, node: ast.Attribute) -> Any:
        owner = self.evaluate(node.value)
        special = getattr(owner, "kernel_attribute", None)
        if special is not None:
            return special(self, node)
        if not isinstance(owner, Host):
            hint = ""
            if isinstance(owner, Ptr):
                hint = "in a kernel a tensor is a pointer: pass its sizes as arguments"
            raise self.error(f"{describe(owner)} has no attribute {node.attr} in a kernel", hint)
        try:
            value = getattr(owner.value, node.attr)
        except AttributeError:
            import difflib

            near = difflib.get_close_matches(node.attr, dir(owner.value), 1)
            raise self.error(
                f"{describe(owner)} has no attribute {node.attr}",
                f"did you mean {near[0]}?" if near else "",
            ) from None
        if not callable(value):
            key = ast.unparse(node)
            self.captured[(id(self.source), key)] = (self.source, key, value)
        return self.host(value, node.attr)

    def eval_Tuple(self, node: ast.Tuple) -> Any:
        return Tuple([self.evaluate(item) for item in node.elts])

    eval_List = eval_Tuple

    def eval_Subscript(self, node: ast.Subscript) -> Any:
        owner = self.evaluate(node.value)
        if isinstance(owner, Tuple):
            index = self.evaluate(node.slice)
            if not isinstance(index, Const) or not isinstance(index.value, int):
                raise self.error(
                    "a tuple is indexed by a constant",
                    "unroll with pto.static_range, or keep the values in scratchpad",
                )
            if not -len(owner.items) <= index.value < len(owner.items):
                raise self.error(f"index {index.value} of {len(owner.items)} values")
            return owner.items[index.value]
        if isinstance(owner, Host) and hasattr(owner.value, "__getitem__"):
            index = self.evaluate(node.slice)
            key = index.value if isinstance(index, (Const, Host)) else None
            if key is not None:
                try:
                    return self.host(owner.value[key], ast.unparse(node))
                except (LookupError, TypeError) as error:
                    raise self.error(f"{ast.unparse(node)}: {error!r}") from None
        if isinstance(owner, Ptr):
            base = ast.unparse(node.value)
            raise self.error(
                "a pointer has no subscripts",
                f"use pto.load({base} + i) and pto.store({base} + i, value)",
            )
        raise self.error(f"{describe(owner)} has no elements in a kernel")

    def eval_JoinedStr(self, node: ast.JoinedStr) -> Any:
        raise self.error("an f-string stands in pto.print(...) only")

    # ------------------------------------------------------------ conversions

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
            return Const(float(number), type)
        if isinstance(number, float):
            raise self.error(
                f"{number} is a float and {type.name} is needed", f"write pto.{type.name}({number})"
            )
        if not fits(number, type):
            wider = "s64" if type.bits == 32 and fits(number, types.s64) else None
            raise self.error(
                f"{number} does not fit {type.name}, which holds {type.low} to {type.high}",
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
            bits = "b64" if type.register_class == "d" else "b32"
            (reg,) = self.pure(f"sel.{bits}", type.register_class, ["1", "0", value.arg], (value,))
            return Value(type, reg, 0, 1)
        if source is type and not rounding:
            return value
        if type.kind in ("bits", "packed") or source.kind in ("bits", "packed"):
            return self.bitcast(value, type)
        if source.is_int and type.is_int:
            if source.bits < type.bits and type.bits == 32:
                return Value(type, value.op, value.low, value.high)  # extended by the load
            if type.low <= value.low and value.high <= type.high or source.bits == type.bits:
                if source.register_class == type.register_class:
                    inside = type.low <= value.low and value.high <= type.high
                    if source.bits == type.bits and source.bits < 32 and not inside:
                        return self._cvt(value, type, rounding)
                    low, high = (value.low, value.high) if inside else (None, None)
                    return Value(type, value.op, low, high)
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
            return Const(float(number), type)
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
                raw = bits.to_bytes(type.size, "little")
                import numpy as np

                if type is types.bf16:
                    return Const(float(np.frombuffer(b"\0\0" + raw, np.float32)[0]), type)
                return Const(float(np.frombuffer(raw, type.numpy())[0]), type)
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

    # ------------------------------------------------------------ operators

    def eval_BinOp(self, node: ast.BinOp) -> Any:
        left, right = self.evaluate(node.left), self.evaluate(node.right)
        return self.binary(type(node.op), left, right)

    def binary(self, op: type, left: Any, right: Any) -> Any:
        if isinstance(left, Ptr) or isinstance(right, Ptr):
            return self.pointer_arithmetic(op, left, right)
        if isinstance(left, Tuple) and isinstance(right, Tuple) and op is ast.Add:
            return Tuple(left.items + right.items)
        if isinstance(left, Tuple) and isinstance(right, Const) and op is ast.Mult:
            return Tuple(left.items * int(right.value))
        if isinstance(left, Host) and isinstance(right, Host):
            try:
                return self.host(_HOST_OPERATORS[op](left.value, right.value), "")
            except (TypeError, KeyError):
                pass
        symbol = _SYMBOLS[op]
        left = self.need_scalar(left, f"a number on the left of {symbol}")
        right = self.need_scalar(right, f"a number on the right of {symbol}")
        if op not in _HOST_OPERATORS:
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

    def _fold(self, op: type, a: Any, b: Any) -> Const:
        if op is ast.LShift and isinstance(b, int) and b > 4096:
            raise self.error(f"a shift by {b}")
        if op is ast.Pow and isinstance(a, int) and isinstance(b, int) and abs(b) > 4096:
            raise self.error(f"a power of {b}")
        try:
            result = _HOST_OPERATORS[op](a, b)
        except (ArithmeticError, TypeError, ValueError) as error:
            raise self.error(f"{a} {_SYMBOLS[op]} {b}: {error}") from None
        if isinstance(result, complex):
            raise self.error(f"{a} {_SYMBOLS[op]} {b} is complex")
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
            names = {lt.name, rt.name}
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
            return Const(type.wrap(_HOST_OPERATORS[op](a.value, b.value)), type)
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
                bits = "b64" if type.bits == 64 else "b32"
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
            return Const(float(value.value), type)
        return self.convert(value, type)

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
                return Const(type.wrap(_HOST_OPERATORS[op](a.value, b.value)), type)
            if b.value > 0 and b.value & (b.value - 1) == 0:
                return self._divide_by_power(a, b.value, type, is_mod)
        (al, ah), (bl, bh) = bounds(a), bounds(b)
        low, high = self._quotient_range(al, ah, bl, bh, type, is_mod)
        speculate = isinstance(b, Const)
        name = "rem" if is_mod else "div"
        if (al >= 0 and bl >= 0) or not type.is_signed:
            return self.compute(f"{name}.{type.name}", type, [a, b], None, low, high, speculate)
        # Truncated toward zero by the machine; one less where the signs differ and it was not exact.
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
            bits = "b64" if type.bits == 64 else "b32"
            signs = self.compute(f"xor.{bits}", type, [rest, b])
            differ = self.compare("lt", signs, Const(0, type))
            wrong = self.logic("and", self.compare("ne", rest, Const(0, type)), differ)
        if is_mod:
            fixed = self.compute(f"add.{type.name}", type, [rest, b])
            result = self.select(wrong, fixed, rest, type)
        else:
            fixed = self.compute(f"sub.{type.name}", type, [quotient, Const(1, type)])
            result = self.select(wrong, fixed, quotient, type)
        return Value(type, result.op, low, high)

    def _quotient_range(self, al, ah, bl, bh, type, is_mod):
        if is_mod:
            if bl > 0:
                return 0, bh - 1
            return None, None
        if bl > 0:
            corners = [x // y for x in (al, ah) for y in (bl, bh)]
            return min(corners), max(corners)
        return None, None

    def _divide_by_power(self, a: Any, divisor: int, type: DType, is_mod: bool) -> Any:
        bits = "b64" if type.bits == 64 else "b32"
        if divisor == 1:
            return Const(0, type) if is_mod else a
        if is_mod:
            return self.compute(f"and.{bits}", type, [a, Const(divisor - 1, type)], None, 0, divisor - 1)
        low, high = bounds(a)
        op = f"shr.{type.name}" if type.is_signed and low < 0 else f"shr.{bits}"
        count = Const(divisor.bit_length() - 1, types.u32)
        return self.compute(op, type, [a, count], None, low // divisor, high // divisor)

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
        if _is_truth(left) and _is_truth(right):
            return self.logic(name, left, right)
        left, right = (self._bit_operand(v, name) for v in (left, right))
        lt, rt = left.type, right.type
        if lt is not None and rt is not None and {lt.kind, rt.kind} == {"int", "bits"}:
            common = lt if lt.kind == "int" else rt  # bits follow the integer
            if lt.bits != rt.bits:
                common = self.common_operand_type(self.numeric(left), self.numeric(right), _SYMBOLS[op])
        elif lt is not None and lt is rt:
            common = types.widened(lt) if lt.kind == "int" else lt
        else:
            common = self.common_operand_type(left, right, _SYMBOLS[op])
        if isinstance(left, Const):
            left, right = right, left
        if isinstance(right, Const) and right.type is None:
            number = int(right.value)
            if not -(1 << (common.bits - 1)) <= number < 1 << common.bits:
                raise self.error(f"{number} has more than the {common.bits} bits of {common.name}")
            right = Const(common.wrap(number) if common.is_int else number, common)
        a, b = self.to_type(left, common), self.to_type(right, common)
        if isinstance(a, Const) and isinstance(b, Const) and common.is_int:
            return Const(common.wrap(_HOST_OPERATORS[op](int(a.value), int(b.value))), common)
        low = high = None
        if common.is_int:
            low, high = _bit_range(name, bounds(a), bounds(b))
        bits = "b64" if common.register_class == "d" else "b32"
        return self.compute(f"{name}.{bits}", common, [a, b], None, low, high)

    def _bit_operand(self, value: Any, name: str) -> Any:
        if _is_truth(value):
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
            return Const(type_.wrap(_HOST_OPERATORS[op](a.value, right.value)), type_)
        if not isinstance(right, Const):
            right = self.convert(right, types.u32)
        bits = "b64" if type_.bits == 64 else "b32"
        low, high = bounds(a)
        if op is ast.LShift:
            if isinstance(right, Const):
                return self.arithmetic(ast.Mult, a, Const(1 << right.value, None), type_) if (
                    right.value < type_.bits - 1
                ) else self.compute(f"shl.{bits}", type_, [a, right], [type_, types.u32])
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
        if _is_truth(value):
            raise self.error("~ of a truth value", "use `not`")
        value = self._bit_operand(value, "not")
        type_ = types.widened(value.type)
        value = self.to_type(value, type_)
        if isinstance(value, Const):
            return Const(type_.wrap(~value.value) if type_.is_int else ~value.value, type_)
        low = high = None
        if type_.is_int and type_.is_signed:
            low, high = ~value.high, ~value.low
        bits = "b64" if type_.register_class == "d" else "b32"
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

    # ------------------------------------------------------------ truth values

    def invert(self, value: Any) -> Any:
        if isinstance(value, Const):
            return Const(not value.value, PRED)
        return Value(PRED, value.op, negated=not value.negated)

    def logic(self, name: str, a: Any, b: Any) -> Any:
        """and, or, xor of truth values."""
        if isinstance(a, Const):
            a, b = b, a
        if isinstance(b, Const):
            if isinstance(a, Const):
                fn = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}[name]
                return Const(bool(fn(bool(a.value), bool(b.value))), PRED)
            if name == "xor":
                return self.invert(a) if b.value else a
            if bool(b.value) == (name == "and"):
                return a
            return Const(name == "or", PRED)
        if a.op is b.op:
            if a.negated == b.negated:
                return Const(False, PRED) if name == "xor" else a
            return Const(name != "and", PRED)
        (reg,) = self.pure(f"{name}.pred", "p", [a.arg, b.arg], (a, b))
        return Value(PRED, reg)

    def compare(self, name: str, a: Any, b: Any) -> Any:
        """A comparison; folded where constants or ranges decide it."""
        if isinstance(a, Const) and isinstance(b, Const):
            fn = next(f for n, f in _COMPARISONS.values() if n == name)
            return Const(bool(fn(a.value, b.value)), PRED)
        if _is_truth(a) and _is_truth(b):
            if name == "ne":
                return self.logic("xor", a, b)
            if name == "eq":
                return self.invert(self.logic("xor", a, b))
        a, b = self.numeric(a), self.numeric(b)
        decided = self._decide(name, a, b)
        if decided is not None:
            return Const(decided, PRED)
        symbol = next(_SYMBOLS[o] for o, (n, _) in _COMPARISONS.items() if n == name)
        type_ = self.common_operand_type(a, b, symbol)
        weak = next((v for v in (a, b) if isinstance(v, Const) and v.type is None), None)
        if weak is not None and type_.is_int and not fits(weak.value, type_):
            raise self.error(
                f"a {type_.name} is compared with {weak.value}, which it cannot be: it holds "
                f"{type_.low} to {type_.high}"
            )
        if isinstance(a, Const):
            a, b, name = b, a, _SWAPPED[name]
        a, b = self.to_type(a, type_), self.to_type(b, type_)
        if not (type_.is_int or type_.is_float):
            raise self.error(f"{type_.name} values have no order")
        args = [self.arg(a, type_), self.arg(b, type_)]
        (reg,) = self.pure(f"cmp.{name}.{type_.name}", "p", args, (a, b))
        return Value(PRED, reg)

    def _decide(self, name: str, a: Any, b: Any) -> bool | None:
        for value in (a, b):
            if isinstance(value, Const):
                if not isinstance(value.value, int):
                    return None
            elif not value.type.is_int:
                return None
        if isinstance(a, Value) and isinstance(b, Value) and a.op is b.op and a.type is b.type:
            return name in ("eq", "le", "ge")
        at, bt = a.type, b.type
        if at is not None and bt is not None and types.promote(at, bt) is None:
            return None  # reported by the caller
        weak = next((v for v in (a, b) if isinstance(v, Const) and v.type is None), None)
        if weak is not None:
            other = types.widened(at or bt)
            if not fits(weak.value, other):
                return None
        (al, ah), (bl, bh) = bounds(a), bounds(b)
        if ah < bl:
            return name in ("lt", "le", "ne")
        if al > bh:
            return name in ("gt", "ge", "ne")
        if ah <= bl and name in ("le", "gt"):
            return name == "le"
        if al >= bh and name in ("ge", "lt"):
            return name == "ge"
        return None

    def eval_Compare(self, node: ast.Compare) -> Any:
        result: Any = Const(True, PRED)
        left = self.evaluate(node.left)
        for op, right_node in zip(node.ops, node.comparators):
            right = self.evaluate(right_node)
            result = self.logic("and", result, self._compare_two(op, left, right))
            left = right
        return result

    def _compare_two(self, op: ast.cmpop, left: Any, right: Any) -> Any:
        symbol = _SYMBOLS[type(op)]
        if isinstance(left, Host) and isinstance(right, Host):
            if isinstance(op, (ast.Eq, ast.Is)):
                return Const(left.value == right.value, PRED)
            if isinstance(op, (ast.NotEq, ast.IsNot)):
                return Const(left.value != right.value, PRED)
        if isinstance(op, (ast.Is, ast.IsNot)) and isinstance(right, Host) and right.value is None:
            return Const(isinstance(op, ast.IsNot), PRED)
        if type(op) not in _COMPARISONS:
            raise self.error(f"`{symbol}` is not part of the kernel language", "use == or !=")
        left = self.need_scalar(left, f"a number on the left of {symbol}")
        right = self.need_scalar(right, f"a number on the right of {symbol}")
        return self.compare(_COMPARISONS[type(op)][0], left, right)

    def eval_BoolOp(self, node: ast.BoolOp) -> Any:
        """and/or as a truth value; the right side is computed by those lanes only that need it where
        that could be noticed."""
        if all(self.is_pure(value) for value in node.values[1:]):
            name = "and" if isinstance(node.op, ast.And) else "or"
            result: Any = Const(name == "and", PRED)
            for value in node.values:
                result = self.logic(name, result, self.truth(self.scalar(value, "a condition")))
                if isinstance(result, Const) and result.value == (name == "or"):
                    break
            return result
        yes, no, join = Block("true"), Block("false"), Block("bool")
        outer = self.scope
        self.condition(node, yes, no)
        edges = []
        for block, truth in ((yes, True), (no, False)):
            if self.place(block, outer):
                edges.append((self.block, truth))
                self.env = {**self.env, "bool?": Const(truth, PRED)}
                self.jump(join)
        self.place(join, outer)
        return self.env.pop("bool?")

    def condition(self, node: ast.expr, when: Block, otherwise: Block) -> None:
        """Branches on an expression; and, or, not become branches of their own where the right side
        may fault or has effects."""
        saved, self.node = self.node, node
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            self.condition(node.operand, otherwise, when)
        elif isinstance(node, ast.BoolOp) and not all(map(self.is_pure, node.values[1:])):
            outer = self.scope
            for value in node.values[:-1]:
                more = Block("more")
                if isinstance(node.op, ast.And):
                    self.condition(value, more, otherwise)
                else:
                    self.condition(value, when, more)
                if not self.place(more, outer):
                    break
                outer = self.scope
            else:
                self.condition(node.values[-1], when, otherwise)
        else:
            value = self.truth(self.scalar(node, "a condition"))
            if isinstance(value, Const):
                self.jump(when if value.value else otherwise)
            else:
                self.branch(value, when, otherwise)
        self.node = saved

    def eval_IfExp(self, node: ast.IfExp) -> Any:
        if self.is_pure(node.body) and self.is_pure(node.orelse):
            test = self.scalar(node.test, "a condition")
            condition = self.truth(test)
            if isinstance(condition, Const):
                return self.evaluate(node.body if condition.value else node.orelse)
            a, b = self.evaluate(node.body), self.evaluate(node.orelse)
            if is_scalar(a) and is_scalar(b):
                return self.choose(condition, a, b)
        yes, no, join = Block("then"), Block("else"), Block("value")
        outer = self.scope
        self.condition(node.test, yes, no)
        arms = []
        for block, arm in ((yes, node.body), (no, node.orelse)):
            if self.place(block, outer):
                arms.append((self.evaluate(arm), self.block, self.env, self.scope))
        if not arms:
            raise self.error("no lane comes here")
        entities = [arm[0] for arm in arms]
        common = None
        if len(arms) == 2 and all(map(is_scalar, entities)):
            common = self._arm_type(entities[0], entities[1])
        for entity, block, env, scope in arms:
            self.block, self.env, self.scope = block, env, scope
            if common is not None:
                entity = self.to_type(entity, common)
            self.env = {**self.env, "if?": entity}
            self.jump(join)
        self.place(join, outer)
        result = self.env.pop("if?")
        if isinstance(result, Conflict):
            raise self.error(result.message.replace("if?", "the value"), "")
        return result

    def _arm_type(self, a: Any, b: Any) -> DType:
        if _is_truth(a) and _is_truth(b):
            return PRED
        return self.common_operand_type(self.numeric(a), self.numeric(b), "if-else")

    def choose(self, condition: Value, a: Any, b: Any) -> Any:
        """condition ? a : b of two scalars."""
        if _is_truth(a) and _is_truth(b):
            return self.logic(
                "or",
                self.logic("and", condition, a),
                self.logic("and", self.invert(condition), b),
            )
        a, b = self.numeric(a), self.numeric(b)
        type_ = self.common_operand_type(a, b, "if-else")
        a, b = self.to_type(a, type_), self.to_type(b, type_)
        if a is b or (isinstance(a, (Value, Const)) and a.same(b)):
            return a
        return self.select(condition, a, b, type_)

    def is_pure(self, node: ast.expr) -> bool:
        """True if computing the expression in lanes that do not need it cannot be noticed."""
        for part in ast.walk(node):
            if isinstance(part, ast.Call) and not self.is_pure_call(part):
                return False
            if isinstance(part, ast.BinOp) and isinstance(part.op, (ast.FloorDiv, ast.Mod)):
                if not isinstance(part.right, ast.Constant):
                    return False
        return True

    # ------------------------------------------------------------ pointers

    def pointer_arithmetic(self, op: type, left: Any, right: Any) -> Ptr:
        symbol = _SYMBOLS[op]
        if isinstance(right, Ptr) and op is ast.Add:
            left, right = right, left
        if not isinstance(left, Ptr) or op not in (ast.Add, ast.Sub) or isinstance(right, Ptr):
            raise self.error(
                f"{describe(left)} {symbol} {describe(right)}",
                "a pointer takes + and - of an integer, which counts elements",
            )
        return self.advance(left, right, -1 if op is ast.Sub else 1)

    def advance(self, pointer: Ptr, count: Any, sign: int = 1) -> Ptr:
        """pointer + sign * count elements."""
        count = self.need_scalar(count, "an integer beside a pointer")
        count = self.numeric(count)
        kind = count.type.kind if count.type is not None else type(count.value).__name__
        if kind not in ("int",):
            raise self.error(
                f"a pointer is moved by an integer, not by {describe(count)}", "use // instead of /"
            )
        size = pointer.elem.size
        if isinstance(count, Const):
            return self._moved(pointer, pointer.terms, pointer.offset + sign * size * count.value)
        terms, offset = list(pointer.terms), pointer.offset
        for value, factor, extra in self._terms(count):
            offset += extra * size * sign
            if value is not None:
                terms.append((value, factor * size * sign))
        return self._moved(pointer, terms, offset)

    def _moved(self, pointer: Ptr, terms: Any, offset: int) -> Ptr:
        merged: list[tuple[Value, int]] = []
        for value, factor in terms:
            for i, (other, sum_) in enumerate(merged):
                if other.op is value.op and other.type is value.type:
                    merged[i] = (other, sum_ + factor)
                    break
            else:
                merged.append((value, factor))
        merged = [(value, factor) for value, factor in merged if factor]
        return Ptr(pointer.space, pointer.base, pointer.elem, merged, offset, pointer.buffer)

    def _terms(self, value: Value) -> list[tuple[Value | None, int, int]]:
        """A signed integer as sum of (value * factor + constant), looking through what made it."""
        insn = value.op.insn if isinstance(value.op, VReg) else None
        if insn is None or value.type is not types.s32 or not insn.pure or len(insn.values) != 2:
            return [(value, 1, 0)]
        a, b = insn.values
        if not isinstance(a, Value) or a.type is not types.s32:
            return [(value, 1, 0)]
        if insn.op == "add.s32" and isinstance(b, Value) and b.type is types.s32:
            return self._terms(a) + self._terms(b)
        if not isinstance(b, Const):
            return [(value, 1, 0)]
        if insn.op in ("add.s32", "sub.s32"):
            constant = b.value if insn.op == "add.s32" else -b.value
            return self._terms(a) + [(None, 0, constant)]
        factor = {"shl.b32": 1 << b.value if 0 <= b.value < 31 else 0, "mul.s32": b.value}.get(insn.op)
        if factor:
            return [(v, f * factor, c * factor) for v, f, c in self._terms(a)]
        return [(value, 1, 0)]

    def _s32(self, value: Value) -> Value | None:
        """The value as a signed 32-bit index; None where it may not fit."""
        if value.type.is_int and value.type.bits <= 32 and value.high <= types.s32.high:
            return Value(types.s32, value.op, value.low, value.high)
        return None

    def address(self, pointer: Ptr) -> Addr:
        """The operand for an access through the pointer."""
        base: Any = pointer.base
        narrow: list[tuple[Value, int]] = []
        for value, factor in pointer.terms:
            index = self._s32(value)
            if index is not None:
                narrow.append((index, factor))
            elif pointer.space == "hbm":
                base = self._add_wide(base, value, factor)
            else:
                narrow.append((Value(types.s32, self.convert(value, types.u32).op), factor))
        offset = pointer.offset
        if not -(1 << 31) <= offset < 1 << 31:
            if pointer.space != "hbm":
                raise self.error(f"an offset of {offset} bytes in scratchpad")
            base, offset = self._sum64(base, str(offset)), 0
        moving = [t for t in narrow if self._is_moving(t[0])]
        fixed = [t for t in narrow if not self._is_moving(t[0])]
        can_move_base = pointer.space == "hbm" or not (pointer.buffer and pointer.buffer.is_register)
        if len(narrow) > 1 and moving and fixed and can_move_base:
            base = self._fixed_base(pointer.space, base, fixed)
            narrow = moving
        if not narrow:
            return Addr(pointer.space, base, None, 1, offset)
        index, scale = self._combine(narrow, pointer.elem.size)
        if isinstance(index, Const):
            return Addr(pointer.space, base, None, 1, offset + index.value * scale)
        reg = index.op
        if isinstance(reg, str):  # a scalar parameter cannot be an index
            (reg,) = self.pure("mov.b32", "r", [reg], (index,))
        return Addr(pointer.space, base, reg, scale, offset)

    def _is_moving(self, value: Value) -> bool:
        """True if the value changes in the innermost loop."""
        return (
            self.loop is not None
            and isinstance(value.op, VReg)
            and is_within(value.op.loop, self.loop)
        )

    def _sum64(self, a: Any, b: Any) -> VReg:
        return self.pure("add.u64", "d", [a, b])[0]

    def _add_wide(self, base: Any, value: Value, factor: int) -> VReg:
        """A 64-bit base moved by a value that does not fit a signed index."""
        if value.type.bits == 32 and 0 < factor <= types.u32.high:
            return self.pure("mad.wide.u32", "d", [value.op, str(factor), base], ())[0]
        wide = self.convert(value, types.s64 if value.type.is_signed else types.u64)
        product = self.arithmetic(ast.Mult, wide, Const(wide.type.wrap(factor), wide.type), wide.type)
        return self._sum64(base, product.op)

    def _fixed_base(self, space: str, base: Any, terms: list[tuple[Value, int]]) -> VReg:
        """base + terms in a register, outside of the loop."""
        index, scale = self._combine(terms, 1)
        if space == "hbm":
            arg = self.arg(index, types.s32)
            return self.pure("mad.wide.s32", "d", [arg, str(scale), base], ())[0]
        scaled = self.int_arithmetic(ast.Mult, index, Const(scale, types.s32), types.s32)
        if isinstance(base, str):
            (start,) = self.pure("mov.u32", "r", [base], ())
        else:
            start = base
        return self.pure("add.s32", "r", [self.arg(scaled, types.s32), start], ())[0]

    def _combine(self, terms: list[tuple[Value, int]], size: int) -> tuple[Any, int]:
        """sum(value * factor) as (index, scale)."""
        factors = [factor for _, factor in terms]
        scales = [16, 8, 4, 2, 1]
        if len(terms) > 1 and size in scales:
            scales = [size, *scales]
        scale = next(s for s in scales if all(f % s == 0 for f in factors))
        total: Any = None
        for value, factor in sorted(terms, key=lambda t: t[1] < 0):
            k = factor // scale
            if total is None:
                total = self.int_arithmetic(ast.Mult, value, Const(k, types.s32), types.s32)
            elif k < 0:
                part = self.int_arithmetic(ast.Mult, value, Const(-k, types.s32), types.s32)
                total = self.int_arithmetic(ast.Sub, total, part, types.s32)
            else:
                part = self.int_arithmetic(ast.Mult, value, Const(k, types.s32), types.s32)
                total = self.int_arithmetic(ast.Add, total, part, types.s32)
        return total, scale

    def index_value(self, pointer: Ptr, unit: int) -> Any:
        if any(factor % unit for _, factor in pointer.terms) or pointer.offset % unit:
            raise self.error("a pointer that is not at a multiple of its element")
        total: Any = Const(pointer.offset // unit, types.s32)
        for value, factor in pointer.terms:
            index = self._s32(value)
            if index is None:
                raise self.error(
                    f"a pointer variable is moved by {value.type.name} here",
                    "move it by s32: pto.s32(i)",
                )
            part = self.int_arithmetic(ast.Mult, index, Const(factor // unit, types.s32), types.s32)
            total = self.arithmetic(ast.Add, part, total, types.s32)
        return total

    def address_value(self, pointer: Ptr) -> Value:
        where = self.address(pointer)
        base = where.base
        if where.index is not None:
            (base,) = self.pure("mad.wide.s32", "d", [where.index, str(where.scale), base], ())
        if where.offset:
            base = self._sum64(base, str(where.offset))
        return Value(types.u64, base)


def _is_truth(value: Any) -> bool:
    return (isinstance(value, Value) and value.type is PRED) or (
        isinstance(value, Const) and isinstance(value.value, bool)
    )


def _bit_range(name: str, a: tuple[int, int], b: tuple[int, int]) -> tuple[int | None, int | None]:
    if name == "and":
        highs = [high for low, high in (a, b) if low >= 0]
        return (0, min(highs)) if highs else (None, None)
    if a[0] >= 0 and b[0] >= 0:
        return 0, (1 << max(a[1].bit_length(), b[1].bit_length())) - 1
    return None, None


def _round(value: float, rounding: str) -> float:
    if math.isinf(value) or math.isnan(value):
        return value
    return float({"rm": math.floor, "rp": math.ceil, "rz": math.trunc, "rn": round}[rounding](value))


def _expression_name(node: ast.AST) -> str:
    names = {
        ast.Lambda: "a lambda", ast.Dict: "a dict", ast.Set: "a set",
        ast.ListComp: "a list comprehension", ast.DictComp: "a dict comprehension",
        ast.SetComp: "a set comprehension", ast.GeneratorExp: "a generator expression",
        ast.Await: "await", ast.Yield: "yield", ast.YieldFrom: "yield from",
        ast.NamedExpr: "an assignment inside an expression (:=)", ast.Slice: "a slice",
        ast.Starred: "a starred expression",
    }  # fmt: skip
    return names.get(type(node), type(node).__name__)


__all__ = ["Expressions", "CompileError"]
