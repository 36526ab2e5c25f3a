# SPDX-License-Identifier: Apache-2.0
"""A kernel under the debugger."""
from __future__ import annotations

import json
import math
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pypto import _pypto
from pypto.checked import U32, U64, flag, instance, optional_whole, shown, text, whole
from pypto.checked import path as checked_path
from pypto.debug.report import Bubble, Report, Stalls
from pypto.errors import DebugError
from pypto.findings import Finding, make_findings
from pypto.launch import CHECKS_EXPECTED, Dim, as_dim, bind, device_of, raw_arguments
from pypto.machine import Machine
from pypto.programs import program_of
from pypto.tensor import Tensor, as_host_dtype
from pypto.timeline import Timeline, make_timeline, stage_finder
from pypto.types import ALL, DType, f32

_PREDICATES = 8
_MOST_HISTORY_MB = 1 << 20
_MOST_BYTES = 1 << 30  # of on-chip memory in one look: more than any machine has
_AN_EXPRESSION = 'an expression such as "$r1" or "a[3]"'


@dataclass(frozen=True)
class Stop:
    """Why a kernel stands still. `str()` is what a debugger prints."""

    reason: str
    """"step", "breakpoint", "watchpoint", "catchpoint", "finished", "limit", ..."""
    cycle: int
    position: int
    """Warp instructions executed since the launch."""
    block: int
    warp: int
    lane: int
    """Of the focus after the stop; lane within the warp."""
    file: str | None
    line: int | None
    instruction: str | None
    """The next one of the focused warp; None if it has ended."""
    stop_points: list[int]
    """Ids of the breakpoints, watchpoints and catchpoints that fired."""
    watches: list[dict[str, Any]]
    """What watchpoints saw: expression, old and new value, warp, lanes."""
    note: str
    text: str = field(repr=False)

    def __str__(self) -> str:
        return self.text.rstrip("\n")


@dataclass
class Breakpoint:
    """A breakpoint, watchpoint or catchpoint of a session."""

    id: int
    text: str
    _session: "Session" = field(repr=False)

    def delete(self) -> None:
        """Removes it."""
        self._session._impl.delete_stop(self.id)

    def enable(self, is_enabled: bool = True) -> None:
        """Lets it stop the kernel, or (False) not."""
        self._session._impl.enable_stop(self.id, is_enabled)

    @property
    def hits(self) -> int:
        """How often it was reached."""
        for id, _, _, _, hits in self._session._impl.stops():
            if id == self.id:
                return hits
        return 0


class Session:
    """A launch under the debugger; made by `debug_kernel`.

    Time: `cycle` of the machine, and `position`, the number of warp instructions executed. A fault or
    deadlock raises KernelError from whatever ran the kernel; the state can still be looked at.
    Locations are labels ("loop"), lines ("kernel.py:12", 12) or instructions ("*7").
    Expressions are the debugger's: "$r1", "a[5]", "$r0@*" (all lanes), "l1:64", "n + 1". They know registers,
    parameters and scratchpad by name, but not the variables of a Python kernel: `Kernel.asm` shows where
    those are.

    Methods raise DebugError for what is not there, TypeError for arguments of the wrong kind, ValueError for
    numbers out of range.
    """

    def __init__(
        self,
        kernel: Any,
        args: tuple[Any, ...],
        grid: Dim,
        block: Dim,
        *,
        checks: str | None,
        profile: Any,
        schedule: str | None,
        dynamic_l1: int,
        max_instructions: int | None,
        max_cycles: int | None,
        history_mb: int,
        lanes_shown: int,
        verbose: bool,
    ) -> None:
        if schedule not in (None, "", "timed", "lockstep"):
            raise DebugError(f'schedule is {shown(schedule)}; the debugger has "timed" (the default) and "lockstep"')
        options = {
            "checks": None if checks is None else text("checks", checks, CHECKS_EXPECTED),
            "lockstep": schedule == "lockstep",
            "dynamic_l1": whole("dynamic_l1", dynamic_l1, high=U32),
            "max_instructions": optional_whole("max_instructions", max_instructions),
            "max_cycles": optional_whole("max_cycles", max_cycles),
            "history_bytes": whole("history_mb", history_mb, high=_MOST_HISTORY_MB) << 20,
        }
        lanes_shown = whole("lanes_shown", lanes_shown)
        compiled, bound = bind(kernel, args)
        self.device = device_of(bound, None)
        self.kernel: str = compiled.name
        self.verbose = flag("verbose", verbose)
        self._program = program_of(compiled)
        self._stage_of = stage_finder(self._program, getattr(compiled, "stages", None))
        self._lock = threading.RLock()
        self._lines_shown = 0
        if profile is not None and not isinstance(profile, Machine):
            profile = Machine(profile)
        self._impl = _pypto.Session(
            self.device._impl,
            self._program,
            as_dim("grid", grid),
            as_dim("block", block),
            raw_arguments(bound),
            {
                **options,
                "checks": self.device.checks if checks is None else checks,
                "profile": None if profile is None else profile._impl,
            },
        )
        self._impl.show_lanes(lanes_shown)

    # ------------------------------------------------ running

    def step(self, n: int = 1) -> Stop:
        """One PTO instruction (or `n`) of every warp of the focused block; prints and returns what happened."""
        return self._resume("step", n)

    def step_warp(self, n: int = 1) -> Stop:
        """As `step`, the focused warp alone."""
        return self._resume("step_warp", n)

    def next(self, n: int = 1) -> Stop:
        """As `step`, over a call."""
        return self._resume("next", n)

    def finish(self) -> Stop:
        """Until the focused warp leaves its function, or the block ends."""
        return self._resume("finish")

    def continue_(self) -> Stop:
        """Until a breakpoint, watchpoint or catchpoint, or the end."""
        return self._resume("continue")

    def run_to(self, location: "str | int | None" = None, *, cycle: int | None = None) -> Stop:
        """To a location (a warp of the focused block stands there) or to a cycle, which may lie behind."""
        if cycle is not None:
            cycle = whole("cycle", cycle)
            if cycle < self.cycle:
                return self._reverse("cycle", cycle)
            return self._resume("cycle", cycle)
        if location is None:
            raise DebugError("run_to() takes a location or cycle=")
        return self._resume("location", 1, _as_location(location))

    def step_back(self, n: int = 1) -> Stop:
        """Undoes `n` steps."""
        return self._reverse("step", n)

    def continue_back(self) -> Stop:
        """Back to where a breakpoint or watchpoint was hit last, else to the launch."""
        return self._reverse("continue")

    def interrupt(self) -> None:
        """Stops a call that runs in another thread; its state stays whole."""
        self._impl.interrupt()

    @property
    def finished(self) -> bool:
        """Nothing more can run: the grid is done, or a fault or deadlock ended it."""
        return self._impl.is_over

    @property
    def cycle(self) -> int:
        """Of the next issue where it is known, else of the latest."""
        return self._impl.cycle

    @property
    def position(self) -> int:
        """Warp instructions executed since the launch."""
        return self._impl.position

    # ------------------------------------------------ stop points

    def break_at(self, location: "str | int", condition: str | None = None) -> Breakpoint:
        """Stops in front of a label or line, where `condition` (an expression) holds in some lane."""
        place = _as_location(location)
        id = self._impl.add_break(place, _as_condition(condition))
        return Breakpoint(id, place, self)

    def watch(self, expression: str, condition: str | None = None, access: str = "change") -> Breakpoint:
        """Stops behind an instruction that changes ("change"), reads ("read") or touches ("any") it.

        expression: one with a place, such as "a[3]", "a[0]@16", "$r1", "l1:64".
        """
        if access not in ("change", "read", "any"):
            raise DebugError(f'access is {shown(access)}; expected "change", "read" or "any"')
        text("what is watched", expression, _AN_EXPRESSION)
        return Breakpoint(self._impl.add_watch(expression, access, _as_condition(condition)), expression, self)

    def catch(self, event: str) -> Breakpoint:
        """Stops behind what causes an event: "nan", "race", "init", "sync", "barrier", "trap", "launch", "fault"."""
        text("the event", event, 'a name such as "nan"')
        return Breakpoint(self._impl.add_catch(event), event, self)

    # ------------------------------------------------ looking

    def focus(
        self, block: int | None = None, warp: int | None = None, lane: int | None = None
    ) -> tuple[int, int, int]:
        """Sets what is given, and returns the focus: (block, warp, lane within the warp)."""
        block = optional_whole("block", block)
        warp, lane = optional_whole("warp", warp, high=U32), optional_whole("lane", lane, high=U32)
        with self._use():
            now = self._impl.focus
            if (block, warp, lane) != (None, None, None):
                wanted = [old if new is None else new for old, new in zip(now, (block, warp, lane))]
                if block is not None and block != now[0]:
                    wanted[1] = warp or 0
                self._impl.set_focus(*wanted)
            return self._impl.focus

    def register(self, name: str, dtype: Any = None) -> np.ndarray:
        """One register ("r3", "d0", "p1", "t0") in every lane of the focused block, by lane.

        dtype: how to read the bits; default as the instruction that wrote it. Predicates are bool, tiles
        their byte offset in scratchpad. Raises DebugError if the block does not run.
        """
        text("the register", name, 'a name such as "r3"')
        with self._use():
            block = self._impl.focus[0]
            bits = np.array(self._impl.read_register(name, block, 0, self._impl.block_lanes), np.uint64)
            if name.startswith("p"):
                return bits.astype(np.bool_)
            if dtype is None:
                kind = self._impl.register_type(name, self._impl.pc or 0)
            elif isinstance(dtype, DType):
                kind = dtype.name
            else:
                host = as_host_dtype(dtype)
                width = 8 if name.startswith("d") else 4
                if host.itemsize not in (1, 2, 4, 8) or host.itemsize > width:
                    raise DebugError(f"register {name} has {width} bytes; a {host} has {host.itemsize}")
                return bits.astype(np.dtype(f"u{host.itemsize}")).view(host)
            return _typed(bits, kind)

    def registers(self, lane: int | None = None) -> dict[str, Any]:
        """Every register of the focused block by name: an array over its lanes, or one lane's values.

        lane: counted in the block, so that 32 is the first lane of warp 1.
        """
        lane = optional_whole("lane", lane)
        with self._use():
            reg32, reg64 = self._impl.register_counts
            names = [f"r{i}" for i in range(reg32)] + [f"d{i}" for i in range(reg64)]
            names += [f"p{i}" for i in range(_PREDICATES)]
            values = {name: self.register(name) for name in names}
            if lane is None:
                return values
            if lane >= self._impl.block_lanes:
                raise DebugError(f"there is no lane {lane}; the block has {self._impl.block_lanes}")
            return {name: value[lane] for name, value in values.items()}

    def memory(self, tensor: Any, dtype: Any = None) -> np.ndarray:
        """What the kernel sees in a tensor now, as `Tensor.numpy` gives it.

        Raises DebugError for a tensor that was made after the session began."""
        instance("what memory() reads", tensor, Tensor, "a Tensor")
        host = as_host_dtype(dtype if dtype is not None else tensor.dtype or f32)
        if tensor.nbytes % host.itemsize != 0:
            raise ValueError(f"{tensor.nbytes} bytes are no whole number of {host} ({host.itemsize} bytes each)")
        with self._use():
            raw = self._impl.read_memory("hbm", 0, tensor.address, tensor.nbytes)
            array = np.frombuffer(raw, host).copy()
            return array.reshape(tensor.shape) if array.size == math.prod(tensor.shape) else array

    def inspect_l1(
        self, start: int = 0, count: int = 16, dtype: Any = f32, *, block: int | None = None
    ) -> np.ndarray:
        """`count` elements of on-chip memory from element `start`, of the core that runs `block`.

        Scratchpad first, then the data cache with the lines that it holds; 0 where nothing is held (see
        `l1_held`). dtype: numpy or PTO type; `bytes` gives raw bytes as uint8. block: default the focused.
        """
        host = np.dtype(np.uint8) if dtype is bytes else as_host_dtype(dtype)
        for name, number in (("start", start), ("count", count)):
            if isinstance(number, int) and number < 0:
                raise DebugError(f"{name} is {shown(number)}; it must not be negative")
        start = whole("start", start, high=U64 // host.itemsize)
        count = whole("count", count, high=_MOST_BYTES // host.itemsize)
        block = optional_whole("block", block)
        with self._use():
            at = self._impl.focus[0] if block is None else block
            raw, _ = self._impl.read_l1(at, start * host.itemsize, count * host.itemsize)
            return np.frombuffer(raw, host).copy()

    def l1_held(self, offset: int, nbytes: int, *, block: int | None = None) -> np.ndarray:
        """Which bytes of on-chip memory hold something, as bool."""
        offset, nbytes = whole("offset", offset), whole("nbytes", nbytes, high=_MOST_BYTES)
        block = optional_whole("block", block)
        with self._use():
            at = self._impl.focus[0] if block is None else block
            return np.frombuffer(self._impl.read_l1(at, offset, nbytes)[1], np.bool_).copy()

    def evaluate(self, expression: str) -> Any:
        """A number, or an array where the expression has several elements ("a[0]@8", "$r0@*")."""
        text("what is evaluated", expression, _AN_EXPRESSION)
        with self._use():
            value = json.loads(self._impl.evaluate(expression))["value"]
        if isinstance(value, list):
            return np.array([_as_number(item) for item in value])
        return _as_number(value)

    def assign(self, place: str, value: Any) -> None:
        """Writes a number or an expression's value to a place: `assign("$r0", 1)`, `assign("a[3]", 2.5)`.

        True and False are for predicates. Raises DebugError for a number that the place cannot hold.
        """
        text("the place", place, _AN_EXPRESSION)
        if isinstance(value, (str, np.str_)):
            value = text("the value", str(value))
        elif isinstance(value, np.generic):
            value = value.item()
        with self._use():
            if isinstance(value, str):
                self._impl.assign(place, value)
            elif isinstance(value, bool):
                self._impl.assign_truth(place, value)
            elif isinstance(value, float):
                self._impl.assign_real(place, value)
            elif hasattr(value, "__index__"):
                self._impl.assign(place, str(whole("the value", value, -(1 << 63))))
            else:
                raise TypeError(f"the value is {shown(value)}; expected a number or an expression")

    def warps(self, block: int | None = None) -> list[dict[str, Any]]:
        """The warps of a block that runs: state, where each stands, why it does not issue.

        Empty for a block that does not run yet or any more. Raises DebugError for one that the grid lacks."""
        block = optional_whole("block", block)
        with self._use():
            return self._impl.warps(self._impl.focus[0] if block is None else block)

    # ------------------------------------------------ results so far

    def checks(self) -> list[Finding]:
        """What the checks have found, in order."""
        with self._use():
            return make_findings(self._impl.findings())

    def get_instruction_timeline(self) -> Timeline:
        """Every instruction so far with its cycles; empty without timing."""
        with self._use():
            return make_timeline(self._impl.timeline(), self._stage_of, self._impl.timeline_dropped)

    def counters(self) -> dict[str, Any]:
        """Cycles, stalls, bytes and counts by instruction so far; empty without timing."""
        with self._use():
            return self._impl.counters()

    def stalls(self) -> Stalls:
        """Cycles that warps have waited, by reason. `print` it for the table with lines."""
        with self._use():
            (table,) = self._texts("stalls")
            return Stalls(self._impl.counters().get("stalls", {}), table)

    def bubbles(self) -> list[Bubble]:
        """Stretches in which a unit had nothing to do, longest first: cause and what to do."""
        with self._use():
            return [Bubble(**row) for row in self._impl.bubbles()]

    def report(self, path: "str | os.PathLike[str] | None" = None) -> Report:
        """The report of the run so far; in a notebook it shows itself. `path`: writes the page too.

        Raises OSError where it cannot be written."""
        if path is not None:
            path = checked_path("path", path)
        with self._use():
            page, counters, stalls = self._texts("html", "counters", "stalls")
        report = Report(page, counters + stalls)
        if path is not None:
            report.save(path)
        return report

    def trace(self, path: "str | os.PathLike[str]") -> None:
        """Writes a trace for Perfetto (ui.perfetto.dev) or chrome://tracing. OSError where it cannot."""
        where = checked_path("path", path)
        with self._use():
            (events,) = self._texts("trace")
        with open(where, "w", encoding="utf-8") as file:
            file.write(events)

    # ------------------------------------------------ inside

    def _texts(self, *kinds: str) -> list[str]:
        """Forms of one report of the run so far."""
        stages = [self._stage_of(pc) for pc in range(self._program.size)]
        return self._impl.reports(kinds, stages if any(stages) else [])

    @contextmanager
    def _use(self) -> Iterator[None]:
        if not self._lock.acquire(blocking=False):
            raise DebugError(
                "the kernel runs in another thread: wait for it, or end it with Session.interrupt()"
            )
        try:
            yield
        finally:
            self._lock.release()

    def _resume(self, kind: str, count: int = 1, location: str = "") -> Stop:
        with self._use():
            return self._stopped(self._impl.resume(kind, _as_count(count), location))

    def _reverse(self, kind: str, count: int = 1) -> Stop:
        with self._use():
            return self._stopped(self._impl.reverse(kind, _as_count(count)))

    def _stopped(self, result: dict[str, str]) -> Stop:
        data = json.loads(result["json"])
        lines = self._impl.prints()
        said = result["trace"] + result["text"]
        if not result["trace"] and len(lines) > self._lines_shown:
            said = "".join(f"{line}\n" for line in lines[self._lines_shown :]) + said
        self._lines_shown = len(lines)
        stop = Stop(
            data["reason"],
            data["cycle"],
            data["position"],
            data["block"],
            data["warp"],
            data["lane"],
            data.get("file"),
            data.get("line"),
            data.get("insn"),
            data["stop_points"],
            data.get("watches", []),
            data.get("note", ""),
            said,
        )
        if self.verbose:
            print(stop)
        return stop

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __repr__(self) -> str:
        state = "finished" if self.finished else f"at cycle {self.cycle}"
        return f"<pypto.debug.Session of {self.kernel} on {self.device.name}, {state}>"


def _as_number(value: Any) -> Any:
    """JSON has no NaN and no infinity: they come as text."""
    return float(value) if isinstance(value, str) else value


def _as_count(count: Any) -> int:
    return whole("the number of steps", count)


def _as_location(location: Any) -> str:
    if isinstance(location, int) and not isinstance(location, bool):
        return str(whole("the line", location, 1))
    return text("the location", location, "a label, a line or *PC")


def _as_condition(condition: Any) -> str:
    return "" if condition is None else text("the condition", condition, _AN_EXPRESSION)


def _typed(bits: np.ndarray, kind: str) -> np.ndarray:
    """Register bits as the numpy type that shows them best; bf16 as float32."""
    if kind == "bf16":
        return (bits.astype(np.uint32) << 16).view(np.float32)
    dtype = ALL.get(kind)
    if dtype is None:
        return bits
    host = dtype.numpy()
    return bits.astype(np.dtype(f"u{host.itemsize}")).view(host)
