# SPDX-License-Identifier: Apache-2.0
"""Expressions of the syntax tree: names, constants, attributes, tuples."""
from __future__ import annotations

import ast
import copy
import difflib
from typing import Any

from pypto.compiler.builder import describe
from pypto.compiler.ir import Conflict, Const, Host, Ptr, Tuple, constant_of
from pypto.compiler.pointers import Pointers
from pypto.instructions import INSTRUCTIONS

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
            near = difflib.get_close_matches(name, [*self.env, *self.source.visible_names()], 1)
            if name in INSTRUCTIONS:
                near = [f"pto.{name}"]
            raise self.error(
                f"the name {name} is not defined", f"did you mean {near[0]}?" if near else ""
            )
        self.captured[(id(self.source), name)] = (self.source, name, snapshot(value))
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
            near = difflib.get_close_matches(node.attr, dir(owner.value), 1)
            raise self.error(
                f"{describe(owner)} has no attribute {node.attr}",
                f"did you mean {near[0]}?" if near else "",
            ) from None
        if not callable(value):
            key = ast.unparse(node)
            self.captured[(id(self.source), key)] = (self.source, key, snapshot(value))
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


def snapshot(value: Any) -> Any:
    """What is compared later, to see whether a captured object has changed."""
    if isinstance(value, (list, dict, set)) or type(value).__module__ == "numpy" and hasattr(value, "copy"):
        return copy.deepcopy(value)
    return value


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
