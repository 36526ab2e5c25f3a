# SPDX-License-Identifier: Apache-2.0
"""Expressions of the syntax tree: names, constants, attributes, tuples."""
from __future__ import annotations

import ast
import difflib
from typing import Any, Callable

from pypto.compiler.builder import describe
from pypto.compiler.captured import Captured, image_of
from pypto.compiler.ir import Conflict, Const, Host, Ptr, Tuple, constant_of
from pypto.compiler.limits import BITS, VALUES
from pypto.compiler.pointers import Pointers
from pypto.instructions import INSTRUCTIONS, Instruction
from pypto.types import DType

_PLAIN = (int, float, str)  # nothing in them that could change

EXPRESSIONS = (
    "numbers, names, calls, arithmetic (+ - * / // % **), bits (& | ^ ~ << >>), comparisons, "
    "and/or/not, conditional expressions, pointer + integer, tuples to unpack"
)


class Expressions(Pointers):
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
    # ------------------------------------------------------------ leaves

    def eval_Constant(self, node: ast.Constant) -> Any:
        value = node.value
        if isinstance(value, (bool, int, float)):
            return self.host(value)
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
            near = difflib.get_close_matches(name, [*self.env, *self.source.visible_names()], 1)
            if name in INSTRUCTIONS:
                near = [f"pto.{name}"]
            raise self.error(
                f"the name {name} is not defined", f"did you mean {near[0]}?" if near else ""
            )
        source = self.source
        return self.capture(value, (id(source), name), lambda: source.lookup(name)[1])

    def capture(self, value: Any, key: Any, find: Callable[[], Any]) -> Any:
        """What a Python object is in a kernel; a later launch compares what `find` gives then. Objects that
        were taken before, known by `key`, are what they were."""
        known = self.captured.get(key)
        if known is None or known[0].value is not value:
            entity = self.host(value, find)
            known = self.captured[key] = (Captured(find, value), entity)
        return known[1]

    def host(self, value: Any, find: Callable[[], Any] | None = None) -> Any:
        """What a Python object of the enclosing scope is in a kernel."""
        const = constant_of(value)
        if const is not None:
            if isinstance(const.value, int) and const.value.bit_length() > BITS:
                raise self.error(
                    f"an integer of {const.value.bit_length()} bits; the compiler computes with up to {BITS}",
                    "values have up to 64 bits",
                )
            return const
        if isinstance(value, (tuple, list)):
            if len(value) > VALUES:
                raise self.error(
                    f"this {type(value).__name__} has {len(value)} values; a kernel takes up to {VALUES}",
                    "pass them as a tensor",
                )
            return Tuple(
                [
                    self.host(item, None if find is None or isinstance(item, _PLAIN) else _item(find, i))
                    for i, item in enumerate(value)
                ]
            )
        return Host(value, find)

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
            near = difflib.get_close_matches(node.attr, dir(owner.value), 1)
            raise self.error(
                f"{describe(owner)} has no attribute {node.attr}",
                f"did you mean {near[0]}?" if near else "",
            ) from None
        if owner.find is None or isinstance(value, (Instruction, DType)):
            return self.host(value)
        outer, name = owner.find, node.attr
        return self.capture(value, (id(owner.value), name), lambda: getattr(outer(), name))

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
                    value = owner.value[key]
                except (LookupError, TypeError) as error:
                    raise self.error(f"{ast.unparse(node)}: {error!r}") from None
                if owner.find is None:
                    return self.host(value)
                outer = owner.find
                return self.capture(value, (id(owner.value), "[]", image_of(key)), lambda: outer()[key])
        if isinstance(owner, Ptr):
            base = ast.unparse(node.value)
            raise self.error(
                "a pointer has no subscripts",
                f"use pto.load({base} + i) and pto.store({base} + i, value)",
            )
        raise self.error(f"{describe(owner)} has no elements in a kernel")

    def eval_JoinedStr(self, node: ast.JoinedStr) -> Any:
        raise self.error("an f-string stands in pto.print(...) only")


def _item(find: Callable[[], Any], index: int) -> Callable[[], Any]:
    return lambda: find()[index]


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
