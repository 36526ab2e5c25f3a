# SPDX-License-Identifier: Apache-2.0
"""Exceptions of pypto. Everything derives from `PtoError`."""
from __future__ import annotations


class PtoError(Exception):
    """Base of all errors that pypto raises itself."""


class PtoWarning(UserWarning):
    """What the kernel compiler finds worth telling (registers kept in scratchpad, ...)."""


class CompileError(PtoError):
    """A kernel's Python source cannot be compiled.

    `file`, `line` and `column` (from 1) say where, `text` is the message alone; `str()` shows the source
    line with a caret.
    """

    def __init__(
        self,
        text: str,
        file: str = "",
        line: int = 0,
        column: int = 0,
        source: str = "",
        width: int = 1,
        hint: str = "",
    ) -> None:
        self.text = text
        self.file = file
        self.line = line
        self.column = column
        self.hint = hint
        message = f"{file}:{line}:{column}: error: {text}" if file else f"error: {text}"
        if source:
            shown = source.rstrip().replace("\t", " ")
            width = max(1, min(width, len(shown) - column + 1))
            message += f"\n    {shown}\n    {' ' * (column - 1)}^{'~' * (width - 1)}"
        if hint:
            message += f"\n  = help: {hint}"
        super().__init__(message)

    def __reduce__(self):
        return _rebuild, (str(self), self.text, self.file, self.line, self.column, self.hint)


def _rebuild(message: str, text: str, file: str, line: int, column: int, hint: str) -> CompileError:
    error = CompileError(text, file, line, column, hint=hint)
    error.args = (message,)
    return error
