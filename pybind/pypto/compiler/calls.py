# SPDX-License-Identifier: Apache-2.0
"""Calls in a kernel: instruction functions, conversions, functions marked @pto.func, a few builtins."""
from __future__ import annotations

import ast
import builtins
import difflib
import math
from typing import Any

from pypto import types
from pypto.compiler.builder import bounds, copy_op, describe, fits, is_scalar
from pypto.compiler.expressions import Expressions
from pypto.compiler.ir import (
    Addr,
    Block,
    Buffer,
    Const,
    Event,
    Host,
    Insn,
    Not,
    Ptr,
    Tuple,
    Value,
    VReg,
)
from pypto.errors import CompileError
from pypto.instructions import INSTRUCTIONS, Instruction, arguments_of, is_result, python_name
from pypto.table import Row
from pypto.types import PRED, DType

_MATH = {
    math.exp: "exp", math.log: "log", math.sqrt: "sqrt", math.sin: "sin", math.cos: "cos",
    math.tanh: "tanh", math.pow: "pow", math.fabs: "abs", math.floor: "floor", math.ceil: "ceil",
    math.trunc: "trunc",
}  # fmt: skip
_BUILTINS = {min: "min", max: "max", abs: "abs", print: "print"}
_TILE_LIMIT = 16
_EVENT_LIMIT = 8
_WAIT_EVENT = 7  # of stores of tiles, which wait at once


class Arguments:
    """The arguments of a call, evaluated, to be taken by position or name."""

    def __init__(self, calls: "Calls", node: ast.Call, name: str) -> None:
        self.calls = calls
        self.name = name
        self.shown = ""  # how the call is written, for messages
        self.positional: list[tuple[ast.expr, Any]] = []
        self.named: dict[str, tuple[ast.expr, Any]] = {}
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                items = calls.evaluate(argument.value)
                if not isinstance(items, Tuple):
                    raise calls.error("only a tuple can be spread with *", "", argument)
                self.positional += [(argument, item) for item in items.items]
            else:
                self.positional.append((argument, calls.argument(argument)))
        for keyword in node.keywords:
            if keyword.arg is None:
                raise calls.error("** is not part of the kernel language", "", keyword.value)
            self.named[keyword.arg] = (keyword.value, calls.argument(keyword.value))

    def bind(self, names: list[str], required: int) -> dict[str, tuple[ast.expr, Any]]:
        """By name; an error for too many, too few, unknown or doubled ones."""
        calls = self.calls
        usage = self.shown or f"{self.name}({', '.join(names)})"
        if len(self.positional) > len(names):
            node = self.positional[len(names)][0]
            raise calls.error(
                f"{self.name} takes {_count(len(names), 'argument')}, {len(self.positional)} are given",
                f"it is {usage}",
                node,
            )
        bound = dict(zip(names, self.positional))
        for name, pair in self.named.items():
            if name not in names:
                near = difflib.get_close_matches(name, names, 1)
                raise calls.error(
                    f"{self.name} has no argument {name}",
                    f"did you mean {near[0]}?" if near else f"it is {usage}",
                    pair[0],
                )
            if name in bound:
                raise calls.error(f"{self.name} is given {name} twice", "", pair[0])
            bound[name] = pair
        missing = [name for name in names[:required] if name not in bound]
        if missing:
            raise calls.error(
                f"{self.name} needs {_count(len(missing), 'more argument')}: {', '.join(missing)}",
                f"it is {usage}",
            )
        return bound


class Calls(Expressions):
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

    def eval_Call(self, node: ast.Call) -> Any:
        callee = self.evaluate(node.func)
        method = getattr(callee, "kernel_call", None)
        if method is not None:
            return method(self, node)
        if not isinstance(callee, Host):
            raise self.error(f"{describe(callee)} cannot be called")
        function = callee.value
        if isinstance(function, Instruction):
            return self.instruction(function, node)
        if isinstance(function, DType):
            bound = Arguments(self, node, function.name).bind(["x"], 1)
            return self.conversion(bound["x"][1], function)
        if hasattr(function, "_pto_function_"):
            return self.inline(function, node)
        if hasattr(function, "_pto_kernel_"):
            raise self.error(
                f"{function.__name__} is a kernel and cannot be called by a kernel",
                "mark the shared part with @pto.func",
            )
        return self.python_function(function, node)

    def python_function(self, function: Any, node: ast.Call) -> Any:
        """Builtins and math functions; on constants they are simply called."""
        name = getattr(function, "__name__", repr(function))
        is_math = getattr(function, "__module__", "") == "math"
        if function is builtins.print:
            return self.instruction(INSTRUCTIONS["print"], node)
        if function in (int, float, bool):
            bound = Arguments(self, node, name).bind(["x"], 1)
            return self.conversion(bound["x"][1], {int: types.s32, float: types.f32, bool: PRED}[function])
        known = function in (min, max, abs, len, pow, round, sum) or is_math
        if known:
            arguments = Arguments(self, node, name)
            entities = [e for _, e in arguments.positional]
            flat = entities
            if function in (min, max, len, sum) and len(entities) == 1 and isinstance(entities[0], Tuple):
                flat = list(entities[0].items)
                if function is len:
                    return Const(len(flat))
            if flat and all(isinstance(e, Const) and e.type is None for e in flat) and not arguments.named:
                try:
                    values = [e.value for e in flat]
                    return Const(function(values) if function is sum else function(*values))
                except (ArithmeticError, TypeError, ValueError) as error:
                    raise self.error(f"{name}: {error}") from None
            if function in (min, max) and len(flat) >= 2:
                return self.fold_pairs(name, flat)
            if function in (min, max):
                raise self.error(f"{name} needs two or more numbers, or a tuple of them")
            if function is sum and flat:
                total = flat[0]
                for item in flat[1:]:
                    total = self.binary(ast.Add, total, item)
                return total
            if function is pow and len(flat) == 2:
                return self.power(self.numeric(flat[0]), self.numeric(flat[1]))
            if function is abs:
                return self.call_absolute(flat[0])
            if function in _MATH:
                return self.instruction(INSTRUCTIONS[_MATH[function]], node)
        if isinstance(function, type(math)):
            raise self.error(f"the module {name} cannot be called")
        if callable(function):
            raise self.error(
                f"{name} is a Python function and cannot run in a kernel",
                f"decorate it with @pto.func, or compute its result before the kernel"
                if hasattr(function, "__code__")
                else "a kernel calls pto functions, @pto.func functions, min, max, abs, int, float, bool",
            )
        raise self.error(f"{describe(Host(function))} cannot be called")

    def fold_pairs(self, name: str, values: list[Any]) -> Any:
        total = self.need_scalar(values[0], "a number")
        for value in values[1:]:
            total = self.minmax(name, total, self.need_scalar(value, "a number"))
        return total

    def call_absolute(self, value: Any) -> Any:
        value = self.numeric(self.need_scalar(value, "a number"))
        type_ = types.widened(value.type)
        if type_.is_int and not type_.is_signed:
            return value
        value = self.to_type(value, type_)
        if not type_.is_int:
            return self.compute(f"abs.{type_.name}", type_, [value])
        low, high = bounds(value)
        if isinstance(value, Const):
            return Const(type_.wrap(abs(value.value)), type_)
        if low >= 0:
            return value
        return self.ranged(f"abs.{type_.name}", type_, [value], 0, max(abs(low), abs(high)))

    def minmax(self, name: str, a: Any, b: Any) -> Any:
        a, b = self.numeric(a), self.numeric(b)
        if isinstance(a, Const) and isinstance(b, Const) and a.type is None and b.type is None:
            return Const(min(a.value, b.value) if name == "min" else max(a.value, b.value))
        if isinstance(a, Const):
            a, b = b, a
        type_ = self.common_operand_type(a, b, name)
        a, b = self.to_type(a, type_), self.to_type(b, type_)
        if not type_.is_int:
            return self.compute(f"{name}.{type_.name}", type_, [a, b])
        pick = min if name == "min" else max
        (al, ah), (bl, bh) = bounds(a), bounds(b)
        return self.compute(f"{name}.{type_.name}", type_, [a, b], None, pick(al, bl), pick(ah, bh))

    def conversion(self, value: Any, type_: DType) -> Any:
        value = self.need_scalar(value, "a number to convert")
        if type_.kind in ("bits", "packed"):
            if isinstance(value, Const) and value.type is None:
                return Const(int(value.value) & ((1 << type_.bits) - 1), type_)
            return self.bitcast(value, type_)
        if isinstance(value, Const) and value.type is None and type_.is_int:
            if isinstance(value.value, int) and not isinstance(value.value, bool):
                if not -(1 << (type_.bits - 1)) <= value.value < 1 << type_.bits:
                    raise self.error(f"{value.value} has no place in the {type_.bits} bits of {type_.name}")
        return self.convert(value, type_)

    # ------------------------------------------------------------ functions of the user

    def inline(self, function: Any, node: ast.Call) -> Any:
        """A call of a @pto.func function: its body in place of the call, typed by its arguments."""
        source = function.source()
        if any(active is function for active in self.inlined):
            raise self.error(
                f"{function.__name__} calls itself",
                "functions are inlined; write the recursion as a loop",
            )
        names, defaults = function.parameters(self)
        bound = Arguments(self, node, function.__name__).bind(names, len(names) - len(defaults))
        env: dict[str, Any] = {}
        for name in names:
            if name in bound:
                env[name] = bound[name][1]
            else:
                env[name] = self.host(defaults[name], name)
        for name, entity in env.items():
            if isinstance(entity, ast.AST):
                raise self.error("an f-string stands in pto.print(...) only")
        caller = self.frame()
        self.inlined.append(function)
        done = Block("return")
        outer = self.scope
        caller_env = self.env
        self.enter(source, env, lambda value: self._return_to(done, caller_env, value))
        self.statements(source.tree.body)
        if self.block is not None:
            self.return_value(Host(None))
        self.inlined.pop()
        self.leave(caller)
        if not self.place(done, outer):
            return Host(None)
        result = self.env.pop("return?")
        if getattr(result, "message", None):
            raise self.error(
                f"{function.__name__} does not return the same kind of value on every way: "
                + result.message.replace("return?", "it"),
                "",
                node,
            )
        return result

    def _return_to(self, done: Block, env: dict[str, Any], value: Any) -> None:
        self.env = {**env, "return?": value}
        self.jump(done)

    # ------------------------------------------------------------ instructions

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
            return _is_pure(function.row) and function.handler != "control"
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
                        f"{function.__name__} needs {family.name}=: {_listed(family.suffixes)}",
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
                    f"{family.name} is one of {_listed(family.suffixes)}, not {value!r}", "", node
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
            if python_name(operand.name) in bound and not _is_none(bound[python_name(operand.name)][1])
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
            self.effect(op, args, lane_scoped=_may_be_guarded(row))
            return Host(None)
        result = results[0]
        result_type = _result_type(result, type_)
        if _is_pure(row):
            speculate = row.unit != "X" and not result_type.is_float
            values = tuple(e for _, _, e in given)
            (reg,) = self.pure(op, result_type.register_class, args, values, speculate)
        elif self.is_discarded and result.may_be("`_`"):
            self.effect(op, args, dst_text="_", lane_scoped=_may_be_guarded(row))
            return Host(None)
        else:
            reg = self.program.new_reg(result_type.register_class)
            self.effect(op, args, [reg], lane_scoped=_may_be_guarded(row))
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
                return self._fill_type(function, entity.elem)
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
                            f"{weak.value} beside {typed.type.name}", f"pto.f32(...)", node
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

    def _fill_type(self, function: Instruction, elem: DType) -> DType:
        return elem

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
                return _quoted(entity.value)
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
            if 0 <= entity.value < _EVENT_LIMIT:
                return f"e{entity.value}"
            raise self.error(f"there is no event {entity.value}: they are 0 to {_EVENT_LIMIT - 1}")
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

    # ------------------------------------------------------------ special ones

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
        self.start_copy("async_store", to, tile, size, _WAIT_EVENT)
        self.effect("wait", [f"e{_WAIT_EVENT}"], lane_scoped=False)
        return Host(None)

    def start_copy(self, op: str, to: Ptr, source: Ptr, size: Any, event: int) -> None:
        value = self.need_scalar(size[1], "a number of bytes", size[0])
        count = self.count_operand(value, types.u32, f"the size of {op}")
        sides = [p.buffer.name if p.buffer and p.is_start else self.address(p) for p in (to, source)]
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
        if isinstance(value, Value) and (value.type is PRED or not modifiers["rounding"]):
            return self.convert(value, type_)
        return self.convert(value, type_, modifiers["rounding"])

    def call_round(self, function: Instruction, arguments: Arguments) -> Any:
        value = self.need_scalar(arguments.bind(["x"], 1)["x"][1], "a number")
        if isinstance(value, Const) and value.type is None:
            value = Const(float(value.value), types.f32)
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
            if name in bound and not _is_none(bound[name][1]):
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
                f"the format has {_count(len(wanted), 'value')}, {len(values)} are given",
                "%d signed, %u unsigned, %x hexadecimal, %f float, %p address, %% a percent sign",
                node,
            )
        args: list[Any] = [_quoted(text)]
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

    # ------------------------------------------------------------ scratchpad and events

    def call_shared(self, function: Instruction, arguments: Arguments) -> Any:
        bound = arguments.bind(["n", "dtype"], 1)
        dtype = self.need_dtype(bound["dtype"][1], bound["dtype"][0]) if "dtype" in bound else types.f32
        count = self.static_count(bound["n"], "shared")
        return self.static_buffer("shared", [count], dtype)

    def call_tile(self, function: Instruction, arguments: Arguments) -> Any:
        bound = arguments.bind(["rows", "cols", "dtype"], 2)
        dtype = self.need_dtype(bound["dtype"][1], bound["dtype"][0]) if "dtype" in bound else types.f32
        sizes = [self.static_count(bound[name], "tile") for name in ("rows", "cols")]
        return self.static_buffer("tile", sizes, dtype)

    def static_count(self, pair: Any, what: str) -> int:
        node, entity = pair
        if isinstance(entity, Tuple) and all(isinstance(e, Const) for e in entity.items):
            entity = Const(math.prod(e.value for e in entity.items))
        if not isinstance(entity, Const) or type(entity.value) is not int:
            raise self.error(
                f"the size of {what} is a constant known when the kernel is compiled",
                "use pto.alloc_local(n) for a size known at run time, or annotate the parameter "
                "with pto.static",
                node,
            )
        if entity.value <= 0:
            raise self.error(f"a size of {entity.value} elements", "", node)
        return entity.value

    def static_buffer(self, what: str, sizes: list[int], dtype: DType) -> Ptr:
        size_bytes = math.prod(sizes) * dtype.size
        name = self.symbol_name(self.target_name or what)
        shape = "".join(f"[{n}]" for n in sizes)
        self.program.symbols.append(f".{what} {name}, {dtype.name}{shape}")
        self.program.scratch_bytes += size_bytes
        self.check_scratchpad()
        return Ptr("l1", name, dtype, buffer=Buffer(name, "shared memory", size_bytes))

    def check_scratchpad(self) -> None:
        limit = 256 * 1024
        if self.program.scratch_bytes > limit:
            raise self.error(
                f"the kernel asks for {self.program.scratch_bytes} bytes of scratchpad; a block has {limit}"
            )

    def call_const_array(self, function: Instruction, arguments: Arguments) -> Any:
        bound = arguments.bind(["values", "dtype"], 1)
        dtype = self.need_dtype(bound["dtype"][1], bound["dtype"][0]) if "dtype" in bound else types.f32
        entity = bound["values"][1]
        if isinstance(entity, Host) and hasattr(entity.value, "tolist"):
            entity = Tuple([Const(v) for v in entity.value.ravel().tolist()])
        if not isinstance(entity, Tuple) or not all(isinstance(v, Const) for v in entity.items):
            raise self.error("const_array takes a tuple, list or array of numbers")
        if not entity.items:
            raise self.error("const_array of no values")
        name = self.symbol_name(self.target_name or "constants")
        texts = [self.immediate(self.as_const(v, dtype), dtype) for v in entity.items]
        self.program.symbols.append(f".const {name}, {dtype.name} {{{', '.join(texts)}}}")
        return Ptr("const", name, dtype, buffer=Buffer(name, "constants", len(texts) * dtype.size))

    def symbol_name(self, wanted: str) -> str:
        name = self.reserved.legal(wanted)
        number = 1
        while name in self.reserved.taken:
            number += 1
            name = f"{self.reserved.legal(wanted)}_{number}"
        self.reserved.taken.add(name)
        return name

    def call_alloc_local(self, function: Instruction, arguments: Arguments) -> Any:
        bound = arguments.bind(["n", "dtype"], 1)
        dtype = self.need_dtype(bound["dtype"][1], bound["dtype"][0]) if "dtype" in bound else types.f32
        node, entity = bound["n"]
        if self.loop is not None and not self.frees_tiles:
            raise self.error(
                "alloc_local in a loop would allocate a tile in each round",
                "allocate before the loop, or give the tile back with pto.free_local in the round",
            )
        return self.allocate(self.need_scalar(entity, "a number of elements", node), dtype)

    def allocate(self, count: Any, dtype: DType) -> Ptr:
        if self.tile_count >= _TILE_LIMIT:
            raise self.error(
                f"a block has {_TILE_LIMIT} tiles; this would be one more",
                "use pto.shared(n) for sizes that are constants",
            )
        size: int | None = None
        if isinstance(count, Const):
            if type(count.value) is not int or count.value <= 0:
                raise self.error(f"alloc_local of {count.value} elements")
            size = count.value * dtype.size
            self.program.scratch_bytes += size
            self.check_scratchpad()
        total = self.binary(ast.Mult, count, Const(dtype.size))
        arg = self.count_operand(total, types.u32, "the size of alloc_local")
        name = f"t{self.tile_count}"
        self.tile_count += 1
        self.effect("alloc_local", [name, arg], lane_scoped=False)
        return Ptr("l1", name, dtype, buffer=Buffer(name, "tile", size))

    def call_event(self, function: Instruction, arguments: Arguments) -> Any:
        arguments.bind([], 0)
        return self.new_event()

    def new_event(self) -> Event:
        if self.event_count >= _EVENT_LIMIT - 1:
            raise self.error(f"all {_EVENT_LIMIT - 1} events are used (one is kept for stores of tiles)")
        self.event_count += 1
        return Event(self.event_count - 1)

    def call_static_range(self, function: Instruction, arguments: Arguments) -> Any:
        raise self.error(
            "static_range stands in a for statement", "for i in pto.static_range(4): ..."
        )

    def call_pipeline(self, function: Instruction, arguments: Arguments) -> Any:
        raise self.error("pipeline stands in a with statement", "with pto.pipeline() as pl: ...")


def _make_group(regs: list[VReg]) -> None:
    for lane, reg in enumerate(regs):
        reg.group, reg.lane = regs, lane


def _is_pure(row: Row) -> bool:
    return row.scope == "lane" and not row.properties and row.unit in ("V", "X")


def _may_be_guarded(row: Row) -> bool:
    return row.scope == "lane"


def _is_none(entity: Any) -> bool:
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


def _quoted(text: str) -> str:
    out = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{out}"'


def _listed(words: Any) -> str:
    return ", ".join(f'"{word}"' for word in words)


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"
