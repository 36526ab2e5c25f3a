# SPDX-License-Identifier: Apache-2.0
"""Step through kernels and look inside: everything that ptodbg does, as Python objects.

    import pypto.debug as dbg

    ctx = dbg.debug_kernel(vector_add, args=(d_a, d_b, d_o, n), grid=(4, 1, 1), block=(256, 1, 1))
    ctx.break_at("vector_add.py:12", condition="$lane == 3")
    ctx.continue_()
    print(ctx.registers(lane=3), ctx.inspect_l1(0, 16))
    while not ctx.finished:
        ctx.step()
    for e in ctx.get_instruction_timeline():
        print(f"Cycle {e.cycle}: Lane {e.lane}: {e.inst}")
    ctx.report()            # in a notebook: the report with its picture
"""
from __future__ import annotations

from typing import Any

from pypto import _pypto
from pypto.debug.report import Bubble, Report, Stalls
from pypto.debug.session import Breakpoint, Session, Stop
from pypto.findings import Finding, Site
from pypto.launch import DEFAULT_BLOCK, DEFAULT_GRID, Dim
from pypto.timeline import Timeline, TimelineEntry

__all__ = [
    "Breakpoint", "Bubble", "Finding", "Report", "Session", "Site", "Stalls", "Stop", "Timeline",
    "TimelineEntry", "debug_kernel", "stall_reasons",
]  # fmt: skip


def debug_kernel(
    kernel: Any,
    args: tuple[Any, ...] = (),
    grid: Dim = DEFAULT_GRID,
    block: Dim = DEFAULT_BLOCK,
    *,
    checks: "str | None" = None,
    profile: Any = None,
    schedule: "str | None" = None,
    dynamic_l1: int = 0,
    max_instructions: "int | None" = None,
    max_cycles: "int | None" = None,
    history_mb: int = 512,
    lanes_shown: int = 2,
    verbose: bool = True,
) -> Session:
    """A launch under the debugger; nothing has been executed yet.

    kernel, args, grid, block: as of `pypto.launch`. The kernel works on the tensors themselves.
    checks: "mem,race,init,sync,nan" or "all"; `Session.checks()` has what they find.
    profile: the machine, by name, path or as a `pypto.Machine`; default the device's.
    schedule: None for the machine's own timing; "lockstep" for one without time.
    max_instructions, max_cycles: limits at which it stops.
    history_mb: memory for going back.
    lanes_shown: lanes that a step prints of each group. verbose=False prints nothing.

    Waits for launches that use the tensors. Raises what `pypto.launch` raises, and
    DeviceUnavailableError on a device that is not simulated.
    """
    return Session(
        kernel,
        args,
        grid,
        block,
        checks=checks,
        profile=profile,
        schedule=schedule,
        dynamic_l1=dynamic_l1,
        max_instructions=max_instructions,
        max_cycles=max_cycles,
        history_mb=history_mb,
        lanes_shown=lanes_shown,
        verbose=verbose,
    )


def stall_reasons() -> dict[str, tuple[str, str]]:
    """Every reason for a stall: what it means, and what may be done about it."""
    return {name: (meaning, hint) for name, meaning, hint in _pypto.stall_reasons}
