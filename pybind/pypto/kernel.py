# SPDX-License-Identifier: Apache-2.0
"""`@pypto.kernel` and `@pypto.func`: Python functions as PTO code.

A kernel is compiled when it is first launched with arguments of certain types, and again for others;
its function is parsed, never executed.
"""
from __future__ import annotations

import functools
import inspect
import os
import re
import threading
import warnings
from dataclasses import dataclass
from typing import Any, Callable

import numpy as np

from pypto import _pypto, types
from pypto.checked import path as checked_path
from pypto.checked import shown
from pypto.compiler.combine import combine
from pypto.compiler.emit import Line, emit
from pypto.compiler.captured import Captured, image_of
from pypto.compiler.ir import Ptr, Value, constant_of
from pypto.compiler.lower import Lowering, lower
from pypto.compiler.regalloc import allocate
from pypto.compiler.source import Source
from pypto.errors import CompileError, PtoWarning
from pypto.types import DType, Pointer, TypedConstant

__all__ = ["Compiled", "Func", "Kernel", "Param", "func", "kernel", "static"]


class _Static:
    """The annotation of a parameter whose value is compiled in: `def k(a, n: pypto.static)`."""

    def __repr__(self) -> str:
        return "pypto.static"


static = _Static()

_compiling = threading.RLock()


def _after_fork() -> None:
    """A thread that held the lock is not there in the child."""
    global _compiling
    _compiling = threading.RLock()


os.register_at_fork(after_in_child=_after_fork)


@dataclass(frozen=True)
class Param:
    """A parameter of a compiled kernel. `type` is the element's of a pointer, else the scalar's own."""

    name: str
    is_pointer: bool
    type: DType

    def __str__(self) -> str:
        return f"ptr.{self.type.name} {self.name}" if self.is_pointer else f"{self.type.name} {self.name}"


@dataclass(eq=False)
class Compiled:
    """A kernel compiled for one list of argument types."""

    name: str
    params: tuple[Param, ...]
    asm: str
    text: str
    asserts: dict[int, str]
    stages: dict[str, str]
    warnings: list[str]
    registers: int
    scratchpad_bytes: int
    file: str
    _positions: tuple[int, ...] = ()  # arguments that are parameters (not static)
    _defaults: tuple[Any, ...] = ()  # of each argument
    _sources: tuple[Source, ...] = ()  # of the kernel and the functions that it calls
    _object: bytes | None = None

    @property
    def object(self) -> bytes:
        """The assembled object (`.ptobj`). Raises CompileError for what the assembler refuses."""
        with _compiling:
            if self._object is None:
                try:
                    self._object = _pypto.assemble(self.text, f"<kernel {self.name}>")
                except ValueError as error:
                    raise _at_python_line(self.text, str(error), self._sources) from None
            return self._object

    def bind(self, args: tuple[Any, ...]) -> list[tuple]:
        """What a launch needs of each parameter: ("tensor", object) or ("scalar", bits, type name).

        TypeError for a number that its parameter cannot hold.
        """
        args = (*args, *self._defaults[len(args) :])
        bound: list[tuple] = []
        for position, param in zip(self._positions, self.params):
            value = args[position]
            if param.is_pointer:
                bound.append(("tensor", value))
                continue
            if isinstance(value, TypedConstant):
                value = value.value
            if isinstance(value, (bool, np.bool_)):
                value = int(value)
            try:
                bits = param.type.pack(value)
            except (OverflowError, ValueError) as error:
                raise TypeError(f"argument {param.name} of kernel {self.name}: {error}") from None
            bound.append(("scalar", bits, param.type.name))
        return bound


class Func:
    """A function that kernels call; made by `@pypto.func`. It is inlined where it is called."""

    _pto_function_ = True

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._source = Source(function)

    def source(self) -> Source:
        """The function's source. Its `tree` raises CompileError where it cannot be had."""
        return self._source

    def parameters(self) -> tuple[list[str], dict[str, Any]]:
        """Names, and defaults by name."""
        return _parameters(self._function, self.source())

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError(
            f"{self.__name__} is a @pypto.func: it can be called in kernels only "
            f"({self.__name__}.__wrapped__ is the Python function)"
        )

    def __repr__(self) -> str:
        return f"<pypto.func {self.__name__}>"


class Kernel:
    """A kernel; made by `@pypto.kernel`, started by `pypto.launch`.

    `asm` is its PTO text with Python lines beside, `object` its assembled form, both of the signature
    used last (or of a guessed one: what is used as a pointer is a pointer to f32, the rest s32).
    """

    _pto_kernel_ = True

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._source = Source(function)
        self._cache: dict[Any, tuple[Compiled, list[Captured]]] = {}
        self._last: Any = None
        self._annotations = _annotations(function)
        self._names, self._defaults = _signature_of(function)

    # ------------------------------------------------------------ compiling

    def compile(self, args: tuple[Any, ...]) -> Compiled:
        """The kernel for these arguments, from the cache where their types were met before.

        TypeError: wrong number or kind of arguments. CompileError: the source.
        """
        return self._compile(self._signature(tuple(args)))

    def compile_types(self, *kinds: Any) -> Compiled:
        """The kernel for parameter types: `k.compile_types(pypto.ptr(pypto.f32), pypto.s32)`.

        A number stands for a parameter that is annotated `pypto.static`.
        """
        if len(kinds) != len(self._names):
            raise TypeError(
                f"kernel {self.__name__} has {len(self._names)} parameters ({', '.join(self._names)}); "
                f"{len(kinds)} types are given"
            )
        for name, kind in zip(self._names, kinds):
            if self._annotations.get(name) is static or isinstance(kind, (DType, Pointer)):
                continue
            raise TypeError(f"parameter {name}: a type such as pypto.s32 or pypto.ptr(), not {kind!r}")
        return self._compile(tuple(kinds))

    def _signature(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        if len(args) < len(self._names):
            missing = self._names[len(args) :]
            if all(name in self._defaults for name in missing):
                args += tuple(self._defaults[name] for name in missing)
        if len(args) != len(self._names):
            raise TypeError(
                f"kernel {self.__name__} takes {len(self._names)} arguments "
                f"({', '.join(self._names)}); {len(args)} are given"
            )
        return tuple(self._kind(name, arg) for name, arg in zip(self._names, args))

    def _kind(self, name: str, value: Any) -> Any:
        """The type of an argument: Pointer, DType, or the number of a static parameter. TypeError for what
        the parameter does not take."""
        where = f"argument {name} of kernel {self.__name__}"
        wanted = self._annotations.get(name)
        if wanted is static:
            if constant_of(value) is None and not isinstance(value, (str, tuple)):
                raise TypeError(f"{where} is compiled in and must be a number, not {type(value).__name__}")
            return value
        if getattr(value, "_pto_is_tensor_", False):
            if isinstance(wanted, DType):
                raise TypeError(f"{where} is a tensor; its annotation says {wanted!r}")
            dtype = getattr(value, "dtype", None)
            if isinstance(wanted, Pointer):
                if dtype is not None and not types.stores_as(wanted.element, types.from_numpy_dtype(dtype)):
                    held = types.from_numpy_dtype(dtype)
                    raise TypeError(
                        f"{where} is a tensor of {held.name}; its annotation says {wanted!r}: make a tensor of "
                        f"that type, or read the bits in the kernel with pto.bitcast({name}, pto.{wanted.element.name})"
                    )
                return wanted
            return Pointer(types.f32 if dtype is None else types.from_numpy_dtype(dtype))
        if isinstance(wanted, Pointer):
            raise TypeError(f"{where} must be a tensor, not {_a(value)}; see Tensor.from_numpy")
        if isinstance(value, TypedConstant):
            kind = value.dtype
        elif isinstance(value, (bool, np.bool_)):
            kind = types.u32
        elif isinstance(value, np.generic):
            try:
                kind = types.f32 if value.dtype == np.float64 else types.from_numpy_dtype(value.dtype)
            except TypeError as error:
                raise TypeError(f"{where}: {error}") from None
        elif isinstance(value, int):
            kind = next(
                (t for t in (types.s32, types.s64, types.u64) if t.low <= value <= t.high), None
            )
            if kind is None:
                raise TypeError(f"{where} is {shown(value)}, which has more than 64 bits")
        elif isinstance(value, float):
            kind = types.f32
        else:
            hint = ""
            if isinstance(value, np.ndarray) or hasattr(value, "__array__"):
                hint = ": copy it to the device first, with pypto.Tensor.from_numpy(array)"
            raise TypeError(f"{where} must be a tensor or a number, not {_a(value)}{hint}")
        if isinstance(wanted, DType):
            if kind.is_float and not wanted.is_float:
                raise TypeError(f"{where} is annotated {wanted!r} and given {_a(value)}")
            return wanted
        return kind

    def _compile(self, signature: tuple[Any, ...]) -> Compiled:
        key = tuple(
            (kind.element.name, "ptr") if isinstance(kind, Pointer) else
            kind.name if isinstance(kind, DType) else ("static", image_of(kind))
            for kind in signature
        )  # fmt: skip
        with _compiling:
            found = self._cache.get(key)
            if found is not None and all(captured.is_same() for captured in found[1]):
                self._last = found[0]
                return found[0]
            try:
                compiled, captured = self._build(signature)
            except CompileError as error:
                raise error.with_traceback(None) from None
            self._cache[key] = (compiled, captured)
            self._last = compiled
        for text in compiled.warnings:
            warnings.warn(text, PtoWarning, stacklevel=4)
        return compiled

    def source(self) -> Source:
        """The function's source. Raises CompileError where it cannot be had."""
        _parameters(self._function, self._source)
        return self._source

    def _build(self, signature: tuple[Any, ...]) -> tuple[Compiled, list[Captured]]:
        source = self.source()
        params: list[Param] = []
        positions: list[int] = []

        def make_env(lowering: Lowering) -> dict[str, Any]:
            env: dict[str, Any] = {}
            params.clear()
            positions.clear()
            for position, (name, kind) in enumerate(zip(self._names, signature)):
                if not isinstance(kind, (Pointer, DType)):
                    env[name] = lowering.host(kind)
                    continue
                text = lowering.symbol_name(name)
                positions.append(position)
                if isinstance(kind, Pointer):
                    params.append(Param(text, True, kind.element))
                    env[name] = Ptr("hbm", text, kind.element)
                else:
                    params.append(Param(text, False, kind))
                    env[name] = Value(kind, text)
            return env

        lowering = lower(self.__name__, source, make_env)
        program = lowering.program
        combine(program)
        try:
            allocation = allocate(program)
        except CompileError as error:
            raise source.error(source.tree, error.text, error.hint) from None
        name = lowering.reserved.legal(self.__name__)
        head = f".kernel {name}({', '.join(map(str, params))})"
        lines = emit(program, allocation, head)
        sources = tuple(lowering.sources.values())
        compiled = Compiled(
            name=name,
            params=tuple(params),
            asm=_listing(lines, sources),
            text=_assembly(lines),
            asserts=program.asserts,
            stages=program.stages,
            warnings=program.warnings,
            registers=allocation.registers,
            scratchpad_bytes=program.scratch_bytes,
            file=source.file,
            _positions=tuple(positions),
            _defaults=tuple(self._defaults.get(n) for n in self._names),
            _sources=sources,
        )
        return compiled, [captured for captured, _ in lowering.captured.values()]

    # ------------------------------------------------------------ what it became

    def _latest(self) -> Compiled:
        if self._last is not None:
            return self._last
        kinds: list[Any] = []
        for name in self._names:
            wanted = self._annotations.get(name)
            if wanted is static:
                raise TypeError(
                    f"kernel {self.__name__} has not been launched, and its parameter {name} is compiled in: "
                    "use k.compile_types(...)"
                )
            default = self._defaults.get(name)
            if wanted is None and default is not None:
                wanted = self._kind(name, default)
            kinds.append(wanted if isinstance(wanted, (DType, Pointer)) else types.s32)
        for _ in range(len(kinds) + 1):
            try:
                compiled = self._compile(tuple(kinds))
            except CompileError as error:
                name = getattr(error, "parameter", "")
                if name not in self._names or isinstance(kinds[self._names.index(name)], Pointer):
                    raise
                kinds[self._names.index(name)] = Pointer(types.f32)
                continue
            return compiled
        raise AssertionError("unreachable")

    @property
    def asm(self) -> str:
        """PTO text with the Python lines beside."""
        return self._latest().asm

    @property
    def object(self) -> bytes:
        """The assembled object (`.ptobj`)."""
        return self._latest().object

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the object, or the PTO text where the name ends in `.pto`.

        Raises CompileError, OSError where the file cannot be written.
        """
        where = checked_path("path", path)
        compiled = self._latest()
        data = compiled.asm.encode() if where.endswith(".pto") else compiled.object
        with open(where, "wb") as file:
            file.write(data)

    def emit(self, form: str) -> str:
        """The kernel in another form: "asm", or "ascendc" (a C++ file for the NPU's compiler).

        ValueError: an unknown form, or an instruction that has no lowering there.
        """
        if form == "asm":
            return self.asm
        if form == "ascendc":
            return _pypto.emit_ascendc(self.object)
        raise ValueError(f"emit knows \"asm\" and \"ascendc\", not {form!r}")

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise TypeError(
            f"{self.__name__} is a kernel: start it with pypto.launch({self.__name__}, grid=..., block=..., "
            "args=(...))"
        )

    def __repr__(self) -> str:
        return f"<pypto.kernel {self.__name__}({', '.join(self._names)})>"


def kernel(function: Callable[..., Any]) -> Kernel:
    """Decorator: makes a PTO kernel of a Python function. See docs/python.md for the language."""
    return Kernel(_plain(function, "kernel"))


def func(function: Callable[..., Any]) -> Func:
    """Decorator: makes a function that kernels (and other such functions) can call."""
    return Func(_plain(function, "func"))


def _plain(function: Any, what: str) -> Callable[..., Any]:
    if inspect.isfunction(function):
        return function
    raise TypeError(f"@pypto.{what} decorates a Python function, not {_a(function)}; it takes no arguments")


def _a(value: Any) -> str:
    return f"a {type(value).__name__} ({shown(value)})" if isinstance(value, (int, float, str)) else f"a {type(value).__name__}"


def _annotations(function: Callable[..., Any]) -> dict[str, Any]:
    """Annotations that are types of ours; others are left to other readers."""
    found: dict[str, Any] = {}
    for name, annotation in function.__annotations__.items():
        if isinstance(annotation, str):
            try:
                annotation = eval(annotation, function.__globals__)
            except Exception:  # noqa: BLE001 a name that only exists for type checkers
                continue
        if isinstance(annotation, (DType, Pointer)) or annotation is static:
            found[name] = annotation
    return found


def _signature_of(function: Callable[..., Any]) -> tuple[list[str], dict[str, Any]]:
    names, defaults = [], {}
    for name, parameter in inspect.signature(function).parameters.items():
        names.append(name)
        if parameter.default is not inspect.Parameter.empty:
            defaults[name] = parameter.default
    return names, defaults


def _parameters(function: Callable[..., Any], source: Source) -> tuple[list[str], dict[str, Any]]:
    arguments = source.tree.args
    for odd in (arguments.vararg, arguments.kwarg, *arguments.kwonlyargs):
        if odd is not None:
            source.fail(odd, "parameters are plain names: no *, ** and keyword-only ones")
    return _signature_of(function)


# ---------------------------------------------------------------- text


def _assembly(lines: list[Line]) -> str:
    """The text for the assembler, with the Python place of each insn."""
    out = [".pto 1"]
    last = None
    for line in lines:
        if line.is_insn and line.place is not None and line.place != last:
            last = line.place
            file = last.file.replace("\\", "\\\\").replace('"', '\\"')
            out.append(f'.loc "{file}" {last.line} {last.column}')
        out.append(line.text)
    return "\n".join(out) + "\n"


def _listing(lines: list[Line], sources: tuple[Source, ...]) -> str:
    """The text for people: the Python line stands beside its first insn."""
    out = [".pto 1"]
    last = None
    for line in lines:
        text = line.text
        if line.is_insn and line.place is not None and (line.place.file, line.place.line) != last:
            last = (line.place.file, line.place.line)
            note = _python_line(line.place.file, line.place.line, sources).strip()
            text = f"{text:<46}  // {line.place.line}: {note}".rstrip()
        out.append(text)
    return "\n".join(out) + "\n"


def _python_line(file: str, line: int, sources: tuple[Source, ...]) -> str:
    """As it was when the function was decorated."""
    for source in sources:
        row = line - source.first_line
        if file == source.file and 0 <= row < len(source.lines):
            return source.lines[row]
    return ""


def _at_python_line(text: str, message: str, sources: tuple[Source, ...]) -> CompileError:
    """What the assembler refuses, said of the Python line that it came from."""
    found = re.search(r":(\d+):\d+: error: (.*)", message)
    if found is None:
        return CompileError(message)
    number, reason = int(found[1]), found[2]
    lines = text.splitlines()
    insn = lines[number - 1].strip() if number <= len(lines) else ""
    for line in reversed(lines[:number]):
        place = re.match(r'\.loc "(.*)" (\d+) (\d+)$', line)
        if place:
            file, row, column = place[1], int(place[2]), int(place[3])
            source = _python_line(file, row, sources)
            return CompileError(reason, file, row, column, source, 1, f"it became `{insn}`")
    return CompileError(f"{reason} (`{insn}`)")
