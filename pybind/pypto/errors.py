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


class InputError(PtoError, ValueError):
    """Text or a file that pypto was given is wrong: assembly, an object, a machine profile, a name of a check."""


class LaunchError(PtoError, ValueError):
    """A launch that does not fit the kernel or the machine.

    `kind` is one of "block_size", "grid_size", "register_budget", "argument_count", "argument_type",
    "scratchpad".
    """

    kind: str = ""


class DeviceError(PtoError):
    """Misuse of a device, or a device that refuses."""


class DeviceUnavailableError(DeviceError):
    """There is no such device. `tried` lists what was looked for, and what was found."""

    tried: list[str] = []


class AllocationError(DeviceError, MemoryError):
    """The device has not so much memory."""


class FreedTensorError(DeviceError):
    """A tensor was used, or freed again, after it was freed. `nbytes` is its size, `freed_by` the place."""

    nbytes: int = 0
    freed_by: str = ""


class CopySizeError(DeviceError, ValueError):
    """An array and a tensor whose sizes do not fit: `copy_nbytes` from `offset` of `tensor_nbytes`."""

    tensor_nbytes: int = 0
    offset: int = 0
    copy_nbytes: int = 0


class UnknownKernelError(DeviceError, KeyError):
    """An object without a kernel of that name (`kernel`)."""

    kernel: str = ""

    def __str__(self) -> str:  # KeyError would show the message quoted
        return str(self.args[0]) if self.args else ""


class WrongDeviceError(DeviceError):
    """Tensors, streams or events of one device were given to another."""


class LaunchInterrupted(DeviceError):
    """A kernel was ended by Ctrl-C, by `Device.interrupt()` or by the end of the program."""


class KernelError(PtoError):
    """A kernel ended before its time. Raised where the host waits for the launch.

    `kernel`: its name; `status`: "fault", "deadlock" or "limit"; `kind`: "out_of_bounds", "trap", ...;
    `reason`: the message alone; `file`, `line`, `column`, `place`: where in the source (None where
    unknown); `instruction`: its text; `block`, `core`, `warp`, `lane`: who (`lane` within the warp, None
    where all of them); `address` (bytes) and `allocation`; `trap_code` of a trap, `assertion` the text of
    the `assert` that failed; `details`: further lines.
    """

    kernel: str = ""
    status: str = ""
    kind: str = ""
    reason: str = ""
    file: str | None = None
    line: int | None = None
    column: int | None = None
    place: str = ""
    pc: int | None = None
    instruction: str = ""
    block: int | None = None
    core: int | None = None
    warp: int | None = None
    lane: int | None = None
    address: int | None = None
    allocation: str = ""
    trap_code: int | None = None
    details: str = ""
    program_key: int = 0

    @property
    def assertion(self) -> str | None:
        """What a failed `assert` of the kernel says; None for every other error."""
        from pypto.programs import assertion_text

        return assertion_text(self.program_key, self.trap_code)

    def __str__(self) -> str:
        text = super().__str__()
        assertion = self.assertion
        return f"{text}\n  assertion failed: {assertion}" if assertion else text


class InternalError(PtoError):
    """A bug of pypto's own. The message says where; please report it."""


class DebugError(PtoError, ValueError):
    """A debugger was asked for what is not there: a location, a register, memory, a block that does not run."""
