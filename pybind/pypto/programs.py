# SPDX-License-Identifier: Apache-2.0
"""From what `launch` is given to a program that the devices run, once per compiled signature."""
from __future__ import annotations

import json
import os
import threading
from dataclasses import dataclass, field
from typing import Any, Protocol

from pypto import _pypto
from pypto.checked import path as checked_path
from pypto.checked import shown
from pypto.checked import text as checked_text
from pypto.types import ALL, DType, f32

_lock = threading.Lock()


def _after_fork() -> None:
    """A thread that held the lock is not there in the child."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
_programs: dict[tuple[bytes, str], _pypto.Program] = {}
_asserts: dict[int, dict[int, str]] = {}


class Param(Protocol):
    """A parameter of a compiled kernel; `type` is the element's for a pointer."""

    name: str
    is_pointer: bool
    type: DType


class Compiled(Protocol):
    """What a kernel is once the types of its arguments are known."""

    name: str
    object: bytes
    params: tuple[Param, ...]

    def bind(self, args: tuple[Any, ...]) -> list[tuple[Any, ...]]: ...


def program_of(compiled: Compiled) -> _pypto.Program:
    """The program of a compiled kernel; the same object every time."""
    key = (compiled.object, compiled.name)
    with _lock:
        program = _programs.get(key)
        if program is None:
            program = _pypto.Program(compiled.object, compiled.name)
            _programs[key] = program  # for good: errors of launches refer to it by its key
            asserts = getattr(compiled, "asserts", None)
            if asserts:
                _asserts[program.key] = dict(asserts)
        return program


def assertion_text(program_key: int, trap_code: int | None) -> str | None:
    """The message of the `assert` that a trap code stands for, if it does."""
    if trap_code is None:
        return None
    return _asserts.get(program_key, {}).get(trap_code)


@dataclass(frozen=True)
class ObjectParam:
    """A parameter of a kernel that was assembled."""

    name: str
    is_pointer: bool
    type: DType


@dataclass
class ObjectKernel:
    """A kernel from PTO text or an object file, for `launch`, `debug_kernel` and `profile_on_npu`.

    Made by `load_kernel` and `assemble`. It is its own compiled form: the types are those of its
    parameters, and Python numbers are converted to them.
    """

    name: str
    object: bytes = field(repr=False)
    params: tuple[ObjectParam, ...] = ()
    registers: int = 0
    l1_bytes: int = 0

    @property
    def asm(self) -> str:
        """The object as PTO text."""
        return _pypto.disassemble(self.object)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the object file (`.ptobj`). OSError where it cannot be written."""
        with open(checked_path("path", path), "wb") as file:
            file.write(self.object)

    def compile(self, args: tuple[Any, ...]) -> "ObjectKernel":
        """Itself: an assembled kernel has one signature."""
        return self

    def bind(self, args: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """One ("tensor", t) or ("scalar", bits, type name) a parameter. TypeError where they do not fit."""
        if len(args) != len(self.params):
            shown = ", ".join(_shown(param) for param in self.params)
            raise TypeError(
                f"{self.name}() takes {len(self.params)} arguments ({shown}); {len(args)} given"
            )
        return [self._bind_one(param, arg) for param, arg in zip(self.params, args)]

    def _bind_one(self, param: ObjectParam, arg: Any) -> tuple[Any, ...]:
        is_tensor = bool(getattr(arg, "_pto_is_tensor_", False))
        if is_tensor != param.is_pointer:
            raise TypeError(
                f"{self.name}(): argument {param.name} is {_kind(arg)}; expected "
                f"{'a Tensor (Tensor.from_numpy makes one)' if param.is_pointer else 'a number'}"
            )
        if is_tensor:
            return ("tensor", arg)
        value = getattr(arg, "value", arg) if hasattr(arg, "dtype") else arg
        try:
            if param.type.kind in ("int", "bits") and int(value) != value:
                raise TypeError
            bits = param.type.pack(value)
        except (TypeError, ValueError, OverflowError) as error:
            reason = f": {error}" if str(error) else ""
            raise TypeError(
                f"{self.name}(): argument {param.name} is {shown(value)}; expected a value of type "
                f"{param.type.name}{reason}"
            ) from None
        return ("scalar", bits, param.type.name)


def load_kernel(path: str | os.PathLike[str], name: str = "") -> ObjectKernel:
    """A kernel of a `.ptobj` or `.pto` file. `name` may be left out where there is one only.

    Raises InputError (what is wrong in the file, with its lines), UnknownKernelError, TypeError.
    """
    where, name = checked_path("path", path), checked_text("name", name)
    return _object_kernel(_pypto.load_file(where), name)


def assemble(text: str, name: str = "", filename: str = "<text>") -> ObjectKernel:
    """A kernel of PTO text. `filename` is what messages call it.

    Raises InputError (with the lines and carets of the assembler), UnknownKernelError, TypeError.
    """
    if not isinstance(text, str):
        raise TypeError(f"the PTO text is {shown(text)}; expected a string")
    name, filename = checked_text("name", name), checked_text("filename", filename)
    return _object_kernel(_pypto.assemble(text, filename), name)


def _object_kernel(data: bytes, name: str) -> ObjectKernel:
    found = _pypto.Program(data, name).name  # UnknownKernelError
    info = next(kernel for kernel in json.loads(_pypto.object_info(data)) if kernel["name"] == found)
    params = tuple(
        ObjectParam(p["name"], p["is_pointer"], ALL.get(p["type"], f32)) for p in info["params"]
    )
    return ObjectKernel(found, data, params, info["registers"], info["l1_bytes"])


def _shown(param: ObjectParam) -> str:
    return f"{param.name}: {'pointer' if param.is_pointer else param.type.name}"


def _kind(arg: Any) -> str:
    return "a Tensor" if getattr(arg, "_pto_is_tensor_", False) else f"of type {type(arg).__name__}"
