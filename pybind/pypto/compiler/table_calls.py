# SPDX-License-Identifier: Apache-2.0
"""Calls of instruction functions by the operand lists of the table: no instruction is named here."""
from __future__ import annotations

import ast
from typing import Any

from pypto import types
from pypto.compiler.arguments import Arguments
from pypto.compiler.builder import describe, fits
from pypto.compiler.expressions import Expressions
from pypto.compiler.ir import EVENT_LIMIT, Const, Event, Host, Ptr, Value
from pypto.instructions import Instruction, arguments_of, is_result, python_name
from pypto.table import Row
from pypto.types import PRED, DType


class TableCalls(Expressions):
    target_name = ""  # of the assignment whose right side is a call
    is_discarded = False  # the call stands alone: nobody reads its result

    def argument(self, node: ast.expr) -> Any:
        if isinstance(node, ast.JoinedStr):
            return node
        saved = (self.is_discarded, self.target_name)
        self.is_discarded, self.target_name = False, ""
        try:
            return self.evaluate(node)
        finally:
            self.is_discarded, self.target_name = saved

    def instruction(self, function: Instruction, node: ast.Call) -> Any:
        arguments = Arguments(self, node, function.__name__)
        arguments.shown = f"{function.__name__}{function.__signature__}"
        if self.block is None:
            raise self.error("no lane comes here")
        if function.handler:
            return getattr(self, f"call_{function.handler}")(function, arguments)
        return self.generic(function, arguments)

    def is_pure_call(self, node: ast.Call) -> bool:
        """True for calls that only compute."""
        function = self._callee(node.func)
        if isinstance(function, DType) or function in (int, float, bool, min, max, abs, len):
            return True
        if not isinstance(function, Instruction):
            return False
        if function.row is not None:
            return is_pure_row(function.row) and function.handler != "control"
        return function.handler in ("round", "bitcast") or (
            function.handler == "special" and function.data[0] not in ("clock", "activemask")
        )

    def _callee(self, node: ast.expr) -> Any:
        """The Python object that is called, without a trace."""
        if isinstance(node, ast.Name) and node.id not in self.env:
            return self.source.lookup(node.id)[1]
        if isinstance(node, ast.Attribute):
            owner = self._callee(node.value)
            return getattr(owner, node.attr, None) if owner is not None else None
        return None

    def modifiers(self, function: Instruction, arguments: Arguments) -> dict[str, str]:
        """Suffixes by family, taken out of the named arguments."""
        chosen = dict(function.modifiers)
        for family in function.row.modifiers:
            if family.name in chosen:
                continue
            pair = arguments.named.pop(family.name, None)
            if pair is None:
                if not family.is_optional:
                    raise self.error(
                        f"{function.__name__} needs {family.name}=: {listed(family.suffixes)}",
                        f'for example {function.__name__}(..., {family.name}="{family.suffixes[0]}")',
                    )
                chosen[family.name] = ""
                continue
            node, entity = pair
            value = entity.value if isinstance(entity, (Host, Const)) else entity
            if family.name == "vector" and isinstance(value, int):
                value = "" if value == 1 else f"x{value}"
            value = "" if value is None else value
            if value not in family.suffixes and not (value == "" and family.is_optional):
                raise self.error(
                    f"{family.name} is one of {listed(family.suffixes)}, not {value!r}", "", node
                )
            chosen[family.name] = value
        return chosen

    def dtype_argument(self, arguments: Arguments, name: str = "dtype") -> DType | None:
        pair = arguments.named.pop(name, None)
        return None if pair is None else self.need_dtype(pair[1], pair[0])

    def need_dtype(self, entity: Any, node: ast.AST) -> DType:
        value = entity.value if isinstance(entity, Host) else entity
        if isinstance(value, DType):
            return value
        if value in (int, float):
            return types.s32 if value is int else types.f32
        try:
            return types.from_numpy_dtype(value)
        except TypeError:
            raise self.error(
                f"a type such as pto.f32 is needed here, not {describe(entity)}", "", node
            ) from None

    def generic(self, function: Instruction, arguments: Arguments) -> Any:
        """A call by the operand lists of the row."""
        row = function.row
        modifiers = self.modifiers(function, arguments)
        dtype = self.dtype_argument(arguments) if row.types else None
        form = self._form(function, arguments)
        wanted = arguments_of(form)
        variadic = wanted and wanted[-1].variadic
        names = [python_name(operand.name) for operand in wanted]
        required = sum(1 for operand in wanted if not operand.optional and not operand.variadic)
        rest: list[Any] = []
        if variadic:
            rest = arguments.positional[len(names) - 1 :]
            arguments.positional = arguments.positional[: len(names) - 1]
            names.pop()
        bound = arguments.bind(names, required)
        given = [
            (operand, *bound[python_name(operand.name)])
            for operand in wanted
            if python_name(operand.name) in bound and not is_none(bound[python_name(operand.name)][1])
        ]
        given += [(wanted[-1], *pair) for pair in rest]
        type_ = self._insn_type(function, given, dtype) if row.types else None
        args = [self._operand(function, operand, entity, type_, node) for operand, node, entity in given]
        suffixes = [m for m in modifiers.values() if m]
        encoded = None
        if type_ is not None:
            encoded = _encoded(row, type_)
            if encoded is None:
                raise self.error(
                    f"{function.__name__} has no {type_.name}",
                    f"its types are {' '.join(row.types)}; convert, or give dtype=",
                )
            suffixes.append(encoded)
        op = ".".join([row.mnemonic, *suffixes])
        results = [operand for operand in form if is_result(operand)]
        if not results:
            self.effect(op, args, lane_scoped=may_be_guarded(row))
            return Host(None)
        result = results[0]
        result_type = _result_type(result, type_)
        if is_pure_row(row):
            speculate = row.unit != "X" and not result_type.is_float
            values = tuple(e for _, _, e in given)
            (reg,) = self.pure(op, result_type.register_class, args, values, speculate)
        elif self.is_discarded and result.may_be("`_`"):
            self.effect(op, args, dst_text="_", lane_scoped=may_be_guarded(row))
            return Host(None)
        else:
            reg = self.program.new_reg(result_type.register_class)
            self.effect(op, args, [reg], lane_scoped=may_be_guarded(row))
        if result.type == "u32" and row.types:  # counts of bits
            return Value(result_type, reg, 0, 64)
        return Value(result_type, reg)

    def _form(self, function: Instruction, arguments: Arguments) -> Any:
        """The operand list that fits the number of arguments, or their names."""
        forms = function.row.forms
        count = len(arguments.positional) + len(arguments.named)
        for form in forms:
            wanted = arguments_of(form)
            names = [python_name(operand.name) for operand in wanted]
            required = sum(1 for operand in wanted if not operand.optional and not operand.variadic)
            if required <= count and (count <= len(wanted) or (wanted and wanted[-1].variadic)):
                if all(name in names for name in arguments.named):
                    return form
        return forms[0]

    def _insn_type(self, function: Instruction, given: list[Any], dtype: DType | None) -> DType:
        if dtype is not None:
            return dtype
        type_: DType | None = None
        for operand, node, entity in given:
            if isinstance(entity, Ptr) and operand.type == "" and "tile" not in operand.accepts:
                return entity.elem
        for operand, node, entity in given:
            if isinstance(entity, Ptr) and operand.type == "":
                return entity.elem
        total: Any = None
        for operand, node, entity in given:
            if operand.type != "the insn's type":
                continue
            value = self.need_scalar(entity, f"a number for {operand.name}", node)
            if total is None:
                total = value
            elif total.type is not value.type:
                if total.type is None or value.type is None:
                    typed, weak = (value, total) if total.type is None else (total, value)
                    if typed.type is not None and isinstance(weak.value, float) and typed.type.is_int:
                        raise self.error(
                            f"{weak.value} beside {typed.type.name}", "convert one side", node
                        )
                    total = typed
                else:
                    total = Value(
                        self.common_operand_type(self.numeric(total), self.numeric(value), function.__name__),
                        "",
                    )
        if total is None:
            return types.s32
        if total.type is None:
            has_float = any(isinstance(e, Const) and isinstance(e.value, float) for _, _, e in given)
            names = function.row.types
            if has_float or not any(name in names for name in ("s32", "b32")):
                type_ = types.f32
            else:
                type_ = types.s32
        else:
            type_ = total.type
        if type_ is PRED and "pred" not in function.row.types:
            type_ = types.s32
        if _encoded(function.row, type_) is None:
            wide = types.widened(type_)
            if _encoded(function.row, wide) is not None:
                return wide
            if wide.is_int and not any(n[0] in "su" for n in function.row.types) and "f32" in function.row.types:
                return types.f32  # exp(i): as math.exp does
            if wide.kind == "bits":
                return types.u64 if wide.bits == 64 else types.u32
        return type_

    def _operand(self, function: Instruction, operand: Any, entity: Any, type_: Any, node: Any) -> Any:
        saved, self.node = self.node, node
        try:
            return self._operand_here(function, operand, entity, type_)
        finally:
            self.node = saved

    def _operand_here(self, function: Instruction, operand: Any, entity: Any, type_: Any) -> Any:
        name = operand.name
        if operand.may_be("event"):
            return self.event_operand(entity)
        if operand.may_be("label"):
            raise self.error(f"{function.__name__} cannot be called; write Python control flow")
        if operand.type == "" and not operand.may_be("string"):
            return self.memory_operand(operand, entity, f"{name} of {function.__name__}")
        if operand.may_be("string"):
            if isinstance(entity, Host) and isinstance(entity.value, str):
                return quoted(entity.value)
            raise self.error(f"{name} of {function.__name__} is a string")
        if operand.type == "pred":
            value = self.truth(self.need_scalar(entity, f"a condition for {name}"))
            return self.predicate_operand(value)
        value = self.need_scalar(entity, f"a number for {name}")
        if operand.accepts == "constant":
            if not isinstance(value, Const) or not isinstance(value.value, int):
                raise self.error(
                    f"{name} of {function.__name__} is a constant known when the kernel is compiled"
                )
            if value.value < 0:
                raise self.error(f"{name} of {function.__name__} cannot be {value.value}")
            return str(value.value)
        if operand.type in ("u32", "s32"):
            return self.count_operand(value, types.ALL[operand.type], f"{name} of {function.__name__}")
        if operand.type.startswith("32 or 64"):
            if isinstance(value, Const):
                value = self.to_type(value, value.type or self.common_type([value]))
            return self.arg(value, value.type)
        if operand.type.startswith("the insn's type"):
            if type_ is PRED:
                return self.predicate_operand(self.truth(value))
            value = self.operand_value(value, type_, f"{name} of {function.__name__}")
            return self.bits_arg(function.row, value, type_)
        return self.arg(value, value.type or types.s32)

    def bits_arg(self, row: Row, value: Any, type_: DType) -> Any:
        """A constant in a row of bits is written as bits."""
        if isinstance(value, Const) and type_.is_float and type_.name not in row.types:
            return hex(type_.pack(value.value))
        return self.arg(value, type_)

    def operand_value(self, value: Any, type_: DType, what: str) -> Any:
        """An operand in the insn's type; narrower integers and Python numbers follow, others are errors."""
        if isinstance(value, Const) and value.type is None:
            if type_.kind in ("bits", "packed"):
                return Const(int(value.value), type_)
            if type_.is_int and isinstance(value.value, int):
                if not -(1 << (type_.bits - 1)) <= value.value < 1 << type_.bits:
                    raise self.error(f"{what}: {value.value} does not fit {type_.name}")
                return Const(type_.wrap(int(value.value)), type_)
            return self.as_const(value, type_)
        if value.type is type_:
            return value
        return self.assign_type(self.numeric(value), type_, what)

    def count_operand(self, value: Any, type_: DType, what: str) -> Any:
        """A 32-bit size or count."""
        value = self.numeric(value)
        if isinstance(value, Const):
            if isinstance(value.value, float):
                raise self.error(f"{what} is an integer, not {value.value}", "use // for sizes")
            if not fits(value.value, type_):
                raise self.error(f"{what} cannot be {value.value}")
            return str(value.value)
        if not value.type.is_int:
            raise self.error(f"{what} is an integer, not {value.type.name}")
        return self.convert(value, type_).arg

    def predicate_operand(self, value: Any) -> Any:
        if isinstance(value, Const):
            return self.pure("mov.pred", "p", ["1" if value.value else "0"])[0]
        return value.arg

    def event_operand(self, entity: Any) -> str:
        if isinstance(entity, Event):
            return f"e{entity.number}"
        if isinstance(entity, Const) and type(entity.value) is int:
            if 0 <= entity.value < EVENT_LIMIT:
                return f"e{entity.value}"
            raise self.error(f"there is no event {entity.value}: they are 0 to {EVENT_LIMIT - 1}")
        raise self.error(
            f"an event is needed here, not {describe(entity)}", "e = pto.event(), or a number 0 to 7"
        )

    def memory_operand(self, operand: Any, entity: Any, what: str) -> Any:
        """A tile name or an address, as the operand allows."""
        if not isinstance(entity, Ptr):
            raise self.pointer_error(f"{what} is a pointer, not {describe(entity)}", entity, None)
        if operand.may_be("tile") and entity.space == "l1" and entity.buffer and entity.is_start:
            return entity.buffer.name
        if f"{entity.space}[" not in operand.accepts:
            if entity.space == "l1" and operand.may_be("tile"):
                raise self.error(f"{what} is a whole tile, not a place in one")
            wanted = "scratchpad (a tile or shared memory)" if "tile" in operand.accepts else "hbm (a tensor)"
            where = {"hbm": "hbm", "l1": "scratchpad", "const": "constants"}[entity.space]
            raise self.error(f"{what} must be in {wanted}; this pointer is in {where}")
        return self.address(entity)


def is_pure_row(row: Row) -> bool:
    return row.scope == "lane" and not row.properties and row.unit in ("V", "X")


def may_be_guarded(row: Row) -> bool:
    return row.scope == "lane"


def is_none(entity: Any) -> bool:
    return isinstance(entity, Host) and entity.value is None


def _encoded(row: Row, type_: DType) -> str | None:
    """The suffix for a type: itself, or the bits where the row does not care for signs."""
    if type_.name in row.types:
        return type_.name
    bits = f"b{type_.bits}"
    if type_.kind in ("int", "float", "packed", "bits") and bits in row.types:
        return bits
    return None


def _result_type(result: Any, type_: DType | None) -> DType:
    if result.type == "pred":
        return PRED
    if result.type in ("u32", "s32"):
        return types.s32
    assert type_ is not None
    return type_


def quoted(text: str) -> str:
    out = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{out}"'


def listed(words: Any) -> str:
    return ", ".join(f'"{word}"' for word in words)
