# SPDX-License-Identifier: Apache-2.0
"""Instruction functions whose Python form differs from the table's operands."""
from __future__ import annotations

import ast
from typing import Any

from pypto import types
from pypto.compiler.arguments import Arguments, count_of
from pypto.compiler.builder import copy_op, describe, is_scalar
from pypto.compiler.ir import WAIT_EVENT, Const, Host, Ptr, Tuple, VReg, Value
from pypto.compiler.scratchpad import Scratchpad
from pypto.compiler.table_calls import is_none, quoted
from pypto.errors import CompileError
from pypto.instructions import Instruction, arguments_of
from pypto.types import PRED, DType


class SpecialCalls(Scratchpad):
    def call_control(self, function: Instruction, arguments: Arguments) -> Any:
        raise self.error(
            f"{function.__name__} cannot be called", "if, while, for, return and calls of functions make it"
        )

    def call_special(self, function: Instruction, arguments: Arguments) -> Any:
        register, has_dims, low, high = function.data
        name = f"%{register}"
        if has_dims:
            bound = arguments.bind(["dim"], 0)
            dim: Any = bound["dim"][1] if "dim" in bound else Const(0)
            if not isinstance(dim, Const) or dim.value not in (0, 1, 2):
                raise self.error(f"dim of {function.__name__} is the constant 0, 1 or 2")
            name += "." + "xyz"[int(dim.value)]
        else:
            arguments.bind([], 0)
        if register == "clock":
            reg = self.program.new_reg("d")
            self.effect("mov.u64", [name], [reg])
            return Value(types.s64, reg)
        if register == "activemask":
            reg = self.program.new_reg("r")
            self.effect("mov.u32", [name], [reg], lane_scoped=False)
            return Value(types.u32, reg)
        (reg,) = self.pure("mov.u32", "r", [name])
        return Value(types.u32, reg) if high is None else Value(types.s32, reg, low, high)

    def call_load(self, function: Instruction, arguments: Arguments) -> Any:
        modifiers = self.modifiers(function, arguments)
        dtype = self.dtype_argument(arguments)
        bound = arguments.bind(["pointer"], 1)
        pointer = self.need_pointer(bound["pointer"], "load reads")
        if dtype is not None:
            pointer = self.cast_pointer(pointer, dtype)
        where = self.address(pointer)
        elem = pointer.elem
        suffixes = [m for m in modifiers.values() if m]
        op = ".".join(["load", *suffixes, elem.name])
        count = int(modifiers["vector"][1:] or 1) if modifiers["vector"] else 1
        regs = [self.program.new_reg(elem.register_class) for _ in range(count)]
        if count > 1:
            _make_group(regs)
        self.effect(op, [where], regs)
        values = [Value(elem, reg) for reg in regs]
        return Tuple(values) if count > 1 else values[0]

    def need_pointer(self, pair: Any, what: str) -> Ptr:
        node, entity = pair
        if not isinstance(entity, Ptr):
            raise self.pointer_error(f"{what} through a pointer, not {describe(entity)}", entity, node)
        return entity

    def pointer_error(self, text: str, entity: Any, node: ast.AST | None) -> CompileError:
        """The error for a number where a pointer must stand; names the parameter that it comes from."""
        parameter = entity.op if isinstance(entity, Value) and isinstance(entity.op, str) else ""
        parameter = parameter or self._scalar_root(entity)
        hint = "tensors, pto.shared(...) and pto.alloc_local(...) are pointers"
        error = self.error(text, f"pass a tensor for {parameter}" if parameter else hint, node)
        error.parameter = parameter
        return error

    def _scalar_root(self, entity: Any) -> str:
        """A scalar parameter that the value adds to: it was probably meant to be a pointer."""
        while isinstance(entity, Value) and isinstance(entity.op, VReg) and entity.op.insn is not None:
            insn = entity.op.insn
            if not insn.op.startswith(("add", "sub")) or not insn.values:
                return ""
            named = [v for v in insn.values if isinstance(v, Value) and isinstance(v.op, str)]
            if named:
                return named[0].op
            entity = insn.values[0]
        return ""

    def call_store(self, function: Instruction, arguments: Arguments) -> Any:
        modifiers = self.modifiers(function, arguments)
        bound = arguments.bind(["pointer", "value", "nbytes"], 2)
        pointer = self.need_pointer(bound["pointer"], "store writes")
        node, value = bound["value"]
        if isinstance(value, Ptr):
            return self._store_tile(pointer, value, bound.get("nbytes"), node)
        if "nbytes" in bound:
            raise self.error("nbytes goes with a tile, not with a value", "", bound["nbytes"][0])
        self.store_value(pointer, value, modifiers, node)
        return Host(None)

    def store_value(self, pointer: Ptr, value: Any, modifiers: dict[str, str], node: ast.AST) -> None:
        if pointer.space == "const":
            raise self.error("constants cannot be stored to")
        elem = pointer.elem
        items = list(value.items) if isinstance(value, Tuple) else [value]
        if len(items) not in (1, 2, 4):
            raise self.error(f"a store takes 1, 2 or 4 values, not {len(items)}", "", node)
        where = self.address(pointer)
        vector = f"x{len(items)}" if len(items) > 1 else ""
        converted = [
            self.assign_type(self.need_scalar(item, "a number", node), elem, "the pointer's type")
            for item in items
        ]
        suffixes = [m for name, m in modifiers.items() if m and name != "vector"]
        op = ".".join(["store", *suffixes, *([vector] if vector else []), elem.name])
        if not vector:
            args = [self.arg(converted[0], elem)]
        else:
            regs = [self.program.new_reg(elem.register_class) for _ in items]
            for reg, item in zip(regs, converted):
                self.effect(copy_op(elem), [self.arg(item, elem)], [reg])
            _make_group(regs)
            args = list(regs)
        self.effect(op, [where, *args])

    def _store_tile(self, to: Ptr, tile: Ptr, size: Any, node: ast.AST) -> Any:
        if size is None:
            raise self.error(
                "the third argument of store gives the bytes of the tile to copy",
                "pto.store(p, tile, nbytes)",
                node,
            )
        if to.space != "hbm" or tile.space != "l1":
            raise self.error("store(p, tile, nbytes) copies from a tile to hbm", "", node)
        self.start_copy("async_store", to, tile, size, WAIT_EVENT)
        self.effect("wait", [f"e{WAIT_EVENT}"], lane_scoped=False)
        return Host(None)

    def start_copy(self, op: str, to: Ptr, source: Ptr, size: Any, event: int) -> None:
        value = self.need_scalar(size[1], "a number of bytes", size[0])
        count = self.count_operand(value, types.u32, f"the size of {op}")
        sides = [self.memory_name(p) for p in (to, source)]
        self.effect(op, [*sides, count, f"e{event}"], lane_scoped=False)

    def call_fma(self, function: Instruction, arguments: Arguments) -> Any:
        dtype = self.dtype_argument(arguments)
        first = arguments.positional[0][1] if arguments.positional else None
        pointer = None
        if isinstance(first, Ptr):
            pointer = first
            arguments.positional = arguments.positional[1:]
        elif len(arguments.positional) == 4:
            self.need_pointer(arguments.positional[0], "fma(p, a, b, c) stores")
        bound = arguments.bind(["a", "b", "c"], 3)
        given = [bound[name] for name in ("a", "b", "c")]
        operands = [
            (operand, *pair) for operand, pair in zip(arguments_of(function.row.forms[0]), given)
        ]
        type_ = self._insn_type(function, operands, dtype)
        args = [
            self.arg(self.operand_value(self.need_scalar(e, "a number", n), type_, "an operand of fma"), type_)
            for n, e in given
        ]
        (reg,) = self.pure(
            f"fma.{type_.name}", type_.register_class, args, tuple(e for _, e in given), False
        )
        result = Value(type_, reg)
        if pointer is None:
            return result
        self.store_value(pointer, result, {}, self.node)
        return Host(None)

    def call_minmax(self, function: Instruction, arguments: Arguments) -> Any:
        self.dtype_argument(arguments)
        bound = arguments.bind(["a", "b"], 2)
        a, b = (self.need_scalar(bound[n][1], "a number", bound[n][0]) for n in ("a", "b"))
        return self.minmax(function.row.mnemonic, a, b)

    def call_mad(self, function: Instruction, arguments: Arguments) -> Any:
        modifiers = self.modifiers(function, arguments)
        self.dtype_argument(arguments)
        bound = arguments.bind(["a", "b", "c"], 3)
        a, b, c = (self.need_scalar(bound[n][1], "an integer", bound[n][0]) for n in "abc")
        if not modifiers["width"]:
            return self.binary(ast.Add, self.binary(ast.Mult, a, b), c)
        type_ = self.common_operand_type(a, b, "mad")
        if type_ not in (types.s32, types.u32):
            raise self.error(f"mad with width is for s32 and u32, not {type_.name}")
        wide = types.s64 if type_.is_signed else types.u64
        operands = [self.to_type(a, type_), self.to_type(b, type_), self.assign_type(c, wide, "c")]
        return self.compute(f"mad.wide.{type_.name}", wide, operands, [type_, type_, wide])

    def call_sel(self, function: Instruction, arguments: Arguments) -> Any:
        self.dtype_argument(arguments)
        bound = arguments.bind(["a", "b", "p"], 3)
        a, b, p = (self.need_scalar(bound[n][1], "a number", bound[n][0]) for n in "abp")
        condition = self.truth(p)
        if isinstance(condition, Const):
            return a if condition.value else b
        return self.choose(condition, a, b)

    def call_mov(self, function: Instruction, arguments: Arguments) -> Any:
        self.dtype_argument(arguments)
        return self.need_scalar(arguments.bind(["a"], 1)["a"][1], "a number")

    def call_cvt(self, function: Instruction, arguments: Arguments) -> Any:
        modifiers = self.modifiers(function, arguments)
        bound = arguments.bind(["a", "dtype"], 2)
        value = self.need_scalar(bound["a"][1], "a number")
        type_ = self.need_dtype(bound["dtype"][1], bound["dtype"][0])
        return self.convert(value, type_, modifiers["rounding"])

    def call_round(self, function: Instruction, arguments: Arguments) -> Any:
        value = self.need_scalar(arguments.bind(["x"], 1)["x"][1], "a number")
        if isinstance(value, Const) and value.type is None:
            value = Const(types.as_float(value.value), types.f32)
        if not (value.type and value.type.is_float):
            raise self.error(f"{function.__name__} is for floats, not {describe(value)}")
        return self.convert(value, value.type, function.data)

    def call_bitcast(self, function: Instruction, arguments: Arguments) -> Any:
        bound = arguments.bind(["x", "dtype"], 2)
        type_ = self.need_dtype(bound["dtype"][1], bound["dtype"][0])
        if isinstance(bound["x"][1], Ptr):
            return self.cast_pointer(bound["x"][1], type_)
        return self.bitcast(self.need_scalar(bound["x"][1], "a number"), type_)

    def cast_pointer(self, p: Ptr, type_: DType) -> Ptr:
        return Ptr(p.space, p.base, type_, p.terms, p.offset, p.buffer)

    def call_vote(self, function: Instruction, arguments: Arguments) -> Any:
        modifiers = self.modifiers(function, arguments)
        bound = arguments.bind(["p"], 1)
        value = self.truth(self.need_scalar(bound["p"][1], "a condition"))
        mode = modifiers["mode"]
        is_ballot = mode == "ballot"
        reg = self.program.new_reg("r" if is_ballot else "p")
        self.effect(f"vote.{mode}", [self.predicate_operand(value)], [reg], lane_scoped=False)
        return Value(types.u32 if is_ballot else PRED, reg)

    def call_mma(self, function: Instruction, arguments: Arguments) -> Any:
        names = ["C", "A", "B", "m", "n", "k", "lda", "ldb", "ldc"]
        self.dtype_argument(arguments)
        bound = arguments.bind(names, 6)
        form = function.row.forms[0]
        tiles = [bound[name][1] for name in "CAB"]
        args: list[Any] = []
        for name, operand, entity in zip("CAB", form, tiles):
            saved, self.node = self.node, bound[name][0]
            args.append(self.memory_operand(operand, entity, f"{name} of mma"))
            self.node = saved
        if tiles[1].elem is not tiles[2].elem:
            raise self.error(
                f"A has elements of {tiles[1].elem.name} and B of {tiles[2].elem.name}; mma takes one kind"
            )
        for name in names[3:]:
            if name in bound and not is_none(bound[name][1]):
                node, entity = bound[name]
                value = self.need_scalar(entity, f"{name} of mma", node)
                args.append(self.count_operand(value, types.u32, f"{name} of mma"))
        op = f"mma.{tiles[0].elem.name}.{tiles[1].elem.name}"
        known = tiles[0].elem.name in function.row.types and tiles[1].elem.name in function.row.types2
        if not known or tiles[0].elem.is_float != tiles[1].elem.is_float:
            raise self.error(
                f"there is no mma of {tiles[1].elem.name} into {tiles[0].elem.name}",
                "f32 from f32, f16, bf16; s32 from s8, u8",
            )
        self.effect(op, args, lane_scoped=False)
        return Host(None)

    def call_print(self, function: Instruction, arguments: Arguments) -> Any:
        pairs = arguments.positional
        if not pairs:
            raise self.error("print needs something to print", 'pto.print("x = %f", x)')
        node, first = pairs[0]
        values: list[Any] = []
        if isinstance(first, ast.JoinedStr):
            text = ""
            for part in first.values:
                if isinstance(part, ast.Constant):
                    text += str(part.value).replace("%", "%%")
                else:
                    if part.format_spec is not None:
                        raise self.error("format specifications cannot be printed by a kernel", "", part)
                    value = self.evaluate(part.value)
                    text += self._directive(value, values, part.value)
        elif isinstance(first, Host) and isinstance(first.value, str) and (
            "%" in first.value or len(pairs) == 1
        ):
            text = first.value
            values = [self._printable(value, n) for n, value in pairs[1:]]
            pairs = pairs[:1]
        else:
            text = " ".join(self._directive(value, values, n) for n, value in pairs)
            pairs = pairs[:1]
        if isinstance(first, ast.JoinedStr) and len(pairs) > 1:
            raise self.error("an f-string is printed alone", "", pairs[1][0])
        wanted = [c for c in text.replace("%%", "").split("%")[1:]]
        if len(wanted) != len(values):
            raise self.error(
                f"the format has {count_of(len(wanted), 'value')}, {len(values)} are given",
                "%d signed, %u unsigned, %x hexadecimal, %f float, %p address, %% a percent sign",
                node,
            )
        args: list[Any] = [quoted(text)]
        for directive, value in zip(wanted, values):
            if directive[:1] == "f":
                value = self.assign_type(value, types.f32, "%f")
            elif is_scalar(value) and value.type is not None and value.type.is_float:
                raise self.error(f"%{directive[:1]} prints an integer, not {value.type.name}", "use %f", node)
            if isinstance(value, Const):
                value = self.to_type(value, value.type or self.common_type([value]))
            is_float = isinstance(value, Const) and value.type.is_float
            arg = hex(value.type.pack(value.value)) if is_float else self.arg(value, value.type)
            if isinstance(arg, str) and value.type.bits == 64:  # of these PRINT reads registers only
                arg = self.pure("mov.b64", "d", [arg])[0]
            args.append(arg)
        self.effect("print", args)
        return Host(None)

    def _printable(self, value: Any, node: ast.AST) -> Any:
        if isinstance(value, Ptr):
            if value.space != "hbm":
                raise self.error("only pointers into hbm can be printed", "", node)
            return self.address_value(value)
        value = self.need_scalar(value, "a number to print", node)
        if value.type is PRED or (isinstance(value, Const) and isinstance(value.value, bool)):
            value = self.numeric(value)
        if value.type is not None and value.type.is_float and value.type is not types.f32:
            value = self.convert(value, types.f32)
        return value

    def _directive(self, value: Any, values: list[Any], node: ast.AST) -> str:
        """Takes a value for print; its directive."""
        if isinstance(value, Host) and isinstance(value.value, str):
            return value.value.replace("%", "%%")
        is_pointer = isinstance(value, Ptr)
        value = self._printable(value, node)
        values.append(value)
        if is_pointer:
            return "%p"
        kind = value.type or self.common_type([value])
        return "%f" if kind.is_float else "%d" if kind.is_signed else "%u"


def _make_group(regs: list[VReg]) -> None:
    for lane, reg in enumerate(regs):
        reg.group, reg.lane = regs, lane
