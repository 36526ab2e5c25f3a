# SPDX-License-Identifier: Apache-2.0
"""Pointers: arithmetic on them, and addresses that use what the machine offers.

A pointer is a base and a sum of values times bytes. What of the sum a loop does not change is added to the
base before the loop, so that `a + (row * cols + i)` costs nothing in a loop over i.
"""
from __future__ import annotations

import ast
from typing import Any

from pypto import types
from pypto.compiler.builder import describe, is_integer, is_within
from pypto.compiler.conditions import Conditions
from pypto.compiler.ir import Addr, Const, Ptr, VReg, Value
from pypto.compiler.operators import SYMBOLS


class Pointers(Conditions):
    def pointer_arithmetic(self, op: type, left: Any, right: Any) -> Ptr:
        symbol = SYMBOLS[op]
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
        if not is_integer(count):
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

    def memory_name(self, pointer: Ptr) -> Any:
        """The name of a whole buffer, else the address: for insns that take either."""
        return pointer.buffer.name if pointer.buffer and pointer.is_start else self.address(pointer)

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
