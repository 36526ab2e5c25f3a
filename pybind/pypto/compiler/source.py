# SPDX-License-Identifier: Apache-2.0
"""The source of a Python function: its syntax tree, what its free names mean, and errors in it.

The text is read when the function is decorated, while the file still is what Python runs; it is parsed
when it is first needed.
"""
from __future__ import annotations

import ast
import builtins
import functools
import inspect
import textwrap
from typing import Any, Callable

from pypto.compiler.ir import Place
from pypto.errors import CompileError


class Source:
    """One function's text."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.file = function.__code__.co_filename
        try:
            lines, self.first_line = inspect.getsourcelines(function)
        except (OSError, TypeError, SyntaxError, IndexError):
            lines, self.first_line = [], 0
        self.text = "".join(lines)
        self.lines = self.text.splitlines()
        self.indent = len(lines[0]) - len(lines[0].lstrip()) if lines else 0

    @functools.cached_property
    def tree(self) -> ast.FunctionDef:
        """The function's definition. CompileError where there is no text, or none of a plain function."""
        function, first = self.function, self.first_line
        if not self.lines:
            raise CompileError(
                f"the source of {function.__name__} is not available (file {self.file!r})",
                hint="kernels are compiled from their Python source: define them in a file or a "
                "notebook cell, not through exec() or in an interactive python without one",
            )
        dedented = textwrap.dedent(self.text)
        try:
            tree = ast.parse(dedented)
        except SyntaxError as error:
            raise CompileError(
                f"the source of {function.__name__} cannot be parsed on its own: {error.msg}",
                self.file,
                first,
                1,
                self.lines[0],
                hint="write the kernel as a plain def, decorated on lines of its own",
            ) from None
        found = tree.body[0] if tree.body else None
        if not isinstance(found, ast.FunctionDef):
            if isinstance(found, ast.AsyncFunctionDef):
                what = "an async function"
            else:
                what = "not a def statement (a lambda?)"
            raise CompileError(
                f"a kernel is a plain def; {function.__name__} is {what}",
                self.file,
                first,
                1,
                self.lines[0],
            )
        code = function.__code__
        names = [a.arg for a in (*found.args.posonlyargs, *found.args.args)]
        if found.name != code.co_name or tuple(names) != code.co_varnames[: code.co_argcount]:
            raise CompileError(
                f"the file has changed since {function.__name__} was imported from it: {found.name}"
                f"({', '.join(names)}) stands there now",
                self.file,
                first,
                1,
                self.lines[0],
                hint="import it again (importlib.reload), or start the program again",
            )
        if inspect.isgeneratorfunction(function):
            self.fail(found, "a kernel cannot be a generator", "remove `yield`")
        return found

    def _closure(self) -> dict[str, Any]:
        cells = self.function.__closure__ or ()
        names = self.function.__code__.co_freevars
        bound = {}
        for name, cell in zip(names, cells):
            try:
                bound[name] = cell.cell_contents
            except ValueError:  # not assigned yet
                pass
        return bound

    def lookup(self, name: str) -> tuple[bool, Any]:
        """The object that a free name stands for now: enclosing functions, module, builtins."""
        closure = self._closure()
        if name in closure:
            return True, closure[name]
        scope = self.function.__globals__
        if name in scope:
            return True, scope[name]
        if hasattr(builtins, name):
            return True, getattr(builtins, name)
        return False, None

    def visible_names(self) -> list[str]:
        return [*self._closure(), *self.function.__globals__, *dir(builtins)]

    def place(self, node: ast.AST) -> Place:
        line = getattr(node, "lineno", 1)
        column = getattr(node, "col_offset", 0)
        return Place(self.file, line + self.first_line - 1, column + 1 + self.indent)

    def error(self, node: ast.AST, text: str, hint: str = "") -> CompileError:
        """A CompileError that points at `node`."""
        place = self.place(node)
        row = place.line - self.first_line
        source = self.lines[row] if 0 <= row < len(self.lines) else ""
        # col_offset counts UTF-8 bytes; the caret wants characters.
        dedented = source[self.indent :]
        column = len(dedented.encode()[: place.column - 1 - self.indent].decode(errors="ignore"))
        column += 1 + self.indent
        width = 1
        if getattr(node, "end_lineno", None) == getattr(node, "lineno", None):
            width = (getattr(node, "end_col_offset", 0) or 0) - getattr(node, "col_offset", 0)
        elif source:
            width = len(source.rstrip()) - column + 1
        return CompileError(text, self.file, place.line, column, source, max(1, width), hint)

    def fail(self, node: ast.AST, text: str, hint: str = "") -> None:
        raise self.error(node, text, hint)


def assigned_names(nodes: list[ast.stmt]) -> list[str]:
    """Names that the statements bind, in order of appearance; nested functions do not count."""
    known = getattr(nodes[0], "pto_assigned", None) if nodes else None
    if known is not None and known[0] is nodes:
        return known[1]
    names: dict[str, None] = {}

    def visit(node: ast.AST) -> None:
        if isinstance(node, (ast.FunctionDef, ast.Lambda, ast.ListComp, ast.GeneratorExp)):
            return
        if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
            names[node.id] = None
        for child in ast.iter_child_nodes(node):
            visit(child)

    for node in nodes:
        visit(node)
    if nodes:
        nodes[0].pto_assigned = (nodes, list(names))
    return list(names)
