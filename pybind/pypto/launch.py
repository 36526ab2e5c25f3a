# SPDX-License-Identifier: Apache-2.0
"""Launching kernels."""
from __future__ import annotations

from typing import Any, Union

from pypto import _pypto
from pypto.checked import U32, flag, instance, optional_whole, shown, text, whole
from pypto.device import Device, Stream, current_device
from pypto.errors import WrongDeviceError
from pypto.findings import Finding, make_findings
from pypto.place import caller
from pypto.programs import Compiled, program_of
from pypto.timeline import Timeline, make_timeline, stage_finder

Dim = Union[int, tuple[int, ...]]

CHECKS_EXPECTED = 'names such as "mem,race", or "all"'
DEFAULT_GRID = (1, 1, 1)
DEFAULT_BLOCK = (256, 1, 1)


class Launch:
    """A launch that was made; returned by `launch`.

    Attributes and methods that say what came of it wait until it is done.
    """

    def __init__(self, device: Device, ticket: _pypto.Ticket, program: _pypto.Program, compiled: Compiled):
        self.device = device
        self.kernel = compiled.name
        self._ticket = ticket
        self._program = program
        self._stages = getattr(compiled, "stages", None)
        self._result: Any = None

    @property
    def is_done(self) -> bool:
        """True once the kernel has ended; does not wait."""
        return self._ticket.is_done()

    def wait(self) -> "Launch":
        """Until the kernel has ended. Raises KernelError if it failed and nobody was told yet,
        LaunchInterrupted if it was ended."""
        try:
            self._ticket.wait()
        finally:
            self.device._show_prints()
        return self

    @property
    def _outcome(self) -> Any:
        if self._result is None:
            self._result = self._ticket.result()
            self.device._show_prints()
        return self._result

    @property
    def status(self) -> str:
        """"completed", "fault", "deadlock", "limit" or "interrupted"."""
        return self._outcome.status

    @property
    def cycles(self) -> float:
        """What the device's clock says, noise included; 0 where nothing was timed."""
        return self._outcome.cycles

    @property
    def microseconds(self) -> float:
        """The same in microseconds."""
        return self._outcome.microseconds

    @property
    def warp_instructions(self) -> int:
        """Instructions that warps issued."""
        return self._outcome.warp_instructions

    def checks(self) -> list[Finding]:
        """What the checks that the launch was made with have found, early frees included."""
        return make_findings(self._outcome.findings())

    def timeline(self) -> Timeline:
        """The timeline of a launch made with `timeline=True`; empty without."""
        stage_of = stage_finder(self._program, self._stages)
        return make_timeline(self._outcome.timeline(), stage_of, self._outcome.timeline_dropped)

    def counters(self) -> dict[str, Any]:
        """Cycles, stalls by reason, bytes and per-instruction counts of a timed launch; else empty."""
        return self._outcome.counters()

    def __repr__(self) -> str:
        state = self.status if self.is_done else "running"
        return f"<pypto.Launch of {self.kernel} on {self.device.name}: {state}>"


def launch(
    kernel: Any,
    grid: Dim = DEFAULT_GRID,
    block: Dim = DEFAULT_BLOCK,
    args: tuple[Any, ...] = (),
    stream: Stream | None = None,
    *,
    checks: str | None = None,
    schedule: str = "",
    timed: bool | None = None,
    timeline: bool = False,
    dynamic_l1: int = 0,
    max_instructions: int | None = None,
    max_cycles: int | None = None,
) -> Launch:
    """Launches a kernel asynchronously on the device of its tensors (the current one without any).

    kernel: a `@pypto.kernel` function, or what `load_kernel` and `assemble` return.
    grid, block: blocks and lanes, up to three extents each.
    args: tensors and numbers, one a parameter.
    stream: order relative to other launches; default the device's own.
    checks: "mem,race,init,sync,nan" or "all"; findings are in `Launch.checks()`. Default the device's.
    schedule: an order of execution ("lockstep", "greedy", "random:7"): results of kernels without races
        do not depend on it. timed: with the timing model or without; default as the device does.
    timeline: keep the timeline of a timed launch.
    dynamic_l1: bytes of scratchpad behind the kernel's own.
    max_instructions, max_cycles: limits after which the launch ends with KernelError.

    Raises TypeError for arguments of the wrong kind, ValueError for numbers out of range, CompileError,
    InputError for the names of checks and schedules, LaunchError for what does not fit the machine,
    FreedTensorError, WrongDeviceError. A kernel that fails raises KernelError
    where the host next waits for it: `sync()`, `Launch.wait()`, a copy of one of its tensors.
    """
    options = {
        "checks": None if checks is None else text("checks", checks, CHECKS_EXPECTED),
        "schedule": text("schedule", schedule, 'a name such as "lockstep"'),
        "timed": None if timed is None else flag("timed", timed),
        "timeline": flag("timeline", timeline),
        "dynamic_l1": whole("dynamic_l1", dynamic_l1, high=U32),
        "max_instructions": optional_whole("max_instructions", max_instructions),
        "max_cycles": optional_whole("max_cycles", max_cycles),
        "launched_by": caller(),
    }
    if stream is not None:
        instance("stream", stream, Stream, "a pypto.Stream")
    compiled, bound = bind(kernel, args)
    device = device_of(bound, stream)
    if options["checks"] is None:
        options["checks"] = device.checks
    if timeline:
        options["timed"] = True
    program = program_of(compiled)
    ticket = device._impl.launch(
        program,
        as_dim("grid", grid),
        as_dim("block", block),
        raw_arguments(bound),
        None if stream is None else stream._impl,
        options,
    )
    return Launch(device, ticket, program, compiled)


def as_dim(name: str, value: Dim) -> list[int]:
    """Three extents. TypeError and ValueError for what is none."""
    expected = f"{name} is {shown(value)}; expected an integer or up to three of them"
    if isinstance(value, (str, bytes)):
        raise TypeError(expected)
    try:
        given = [value] if hasattr(value, "__index__") else list(value)
        if any(isinstance(n, bool) for n in given):
            raise TypeError
        extents = [n.__index__() for n in given]
    except (TypeError, AttributeError):
        raise TypeError(expected) from None
    if not 1 <= len(extents) <= 3:
        raise ValueError(f"{name} is {shown(value)}, with {len(extents)} extents; expected one to three")
    for extent in extents:
        if not 0 < extent <= U32:
            raise ValueError(f"{name} is {shown(value)}; each extent must be from 1 to {U32}")
    return extents + [1] * (3 - len(extents))


def raw_arguments(bound: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Arguments for the module: (buffer, offset) or (bits, type name)."""
    return [(item[1]._buffer, 0) if item[0] == "tensor" else (item[1], item[2]) for item in bound]


def bind(kernel: Any, args: Any) -> tuple[Any, list[tuple[Any, ...]]]:
    """The kernel compiled for the arguments, and what a launch needs of each of them.

    TypeError for what is no kernel and for arguments that it does not take, CompileError.
    """
    if not isinstance(args, (tuple, list)):
        raise TypeError(f"args is {type(args).__name__}; expected a tuple of the kernel's arguments")
    if not hasattr(kernel, "compile") or isinstance(kernel, type):
        name = getattr(kernel, "__name__", type(kernel).__name__)
        hint = "; decorate the function with @pypto.kernel" if callable(kernel) else ""
        raise TypeError(f"{name} is no kernel: expected a @pypto.kernel function or load_kernel()'s result{hint}")
    compiled = kernel.compile(tuple(args))
    return compiled, compiled.bind(tuple(args))


def device_of(bound: list[tuple[Any, ...]], stream: Stream | None) -> Device:
    """The device of the tensors and the stream; the current one without any. WrongDeviceError where they
    are on several."""
    device = None if stream is None else stream.device
    for item in bound:
        if item[0] != "tensor":
            continue
        if device is None:
            device = item[1].device
        elif item[1].device is not device:
            raise WrongDeviceError(
                f"tensor {item[1].name} is on device {item[1].device.name}, the launch on {device.name}: copy it there"
            )
    return device if device is not None else current_device()
