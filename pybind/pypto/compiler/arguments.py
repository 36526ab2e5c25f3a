# SPDX-License-Identifier: Apache-2.0
"""The arguments of a call, evaluated and taken by position or name."""
from __future__ import annotations

import ast
import difflib
from typing import Any

from pypto.compiler.ir import Tuple


class Arguments:
    """The arguments of a call, evaluated, to be taken by position or name."""

    def __init__(self, calls: Any, node: ast.Call, name: str) -> None:
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
                f"{self.name} takes {count_of(len(names), 'argument')}, {len(self.positional)} are given",
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
                f"{self.name} needs {count_of(len(missing), 'more argument')}: {', '.join(missing)}",
                f"it is {usage}",
            )
        return bound


def count_of(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"
