# SPDX-License-Identifier: Apache-2.0
"""What can be called in a kernel: instructions, conversions, @pto.func functions, a few builtins."""
from __future__ import annotations

import ast
import builtins
import math
from typing import Any

import numpy as np

from pypto import types
from pypto.compiler.arguments import Arguments
from pypto.compiler.builder import bounds, describe
from pypto.compiler.ir import Block, Const, Host, Tuple
from pypto.compiler.special_calls import SpecialCalls
from pypto.instructions import INSTRUCTIONS, Instruction
from pypto.types import PRED, DType

_MATH = {
    math.exp: "exp", math.log: "log", math.sqrt: "sqrt", math.sin: "sin", math.cos: "cos",
    math.tanh: "tanh", math.pow: "pow", math.fabs: "abs", math.floor: "floor", math.ceil: "ceil",
    math.trunc: "trunc",
}  # fmt: skip
_LARGEST_FACTORIAL = 500
_BUILTINS = {min: "min", max: "max", abs: "abs", print: "print"}


def _default(function: Any, name: str) -> Any:
    return lambda: function.parameters()[1][name]


class Calls(SpecialCalls):
    def eval_Call(self, node: ast.Call) -> Any:
        callee = self.evaluate(node.func)
        if not isinstance(callee, Host):
            raise self.error(f"{describe(callee)} cannot be called")
        function = callee.value
        if isinstance(function, Instruction):
            return self.instruction(function, node)
        if isinstance(function, DType):
            bound = Arguments(self, node, function.name).bind(["x"], 1)
            return self.conversion(bound["x"][1], function)
        if isinstance(function, type) and issubclass(function, np.generic):
            bound = Arguments(self, node, function.__name__).bind(["x"], 1)
            wanted = types.f32 if function is np.float64 else self.need_dtype(callee, node)
            return self.conversion(bound["x"][1], PRED if function is np.bool_ else wanted)
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
                self._need_small(function, [e.value for e in flat])
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
                "decorate it with @pto.func, or compute its result before the kernel"
                if hasattr(function, "__code__")
                else "a kernel calls pto functions, @pto.func functions, min, max, abs, int, float, bool",
            )
        raise self.error(f"{describe(Host(function))} cannot be called")

    def _need_small(self, function: Any, values: list[Any]) -> None:
        """Refuses computations of constants that would take for ever."""
        name = function.__name__
        if function is pow and len(values) == 2:
            self.binary(ast.Pow, *map(Const, values))
        if function in (math.factorial, math.comb, math.perm):
            if any(isinstance(value, int) and value > _LARGEST_FACTORIAL for value in values):
                raise self.error(
                    f"{name} of more than {_LARGEST_FACTORIAL}", "values have up to 64 bits"
                )

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
        names, defaults = function.parameters()
        bound = Arguments(self, node, function.__name__).bind(names, len(names) - len(defaults))
        env: dict[str, Any] = {}
        for name in names:
            if name in bound:
                env[name] = bound[name][1]
            else:
                key = (id(source), "default", name)
                env[name] = self.capture(defaults[name], key, _default(function, name))
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
