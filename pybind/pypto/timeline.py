# SPDX-License-Identifier: Apache-2.0
"""The timeline of a run: one entry for each instruction of neighbouring warps."""
from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class TimelineEntry:
    """Warps of one block that issued one instruction in one cycle."""

    cycle: int
    """Of the issue."""
    end: int
    """When its result can be used."""
    core: int
    block: int
    """Linear index in the grid."""
    warp: str
    """"0-7" or "3"."""
    lane: str
    """Lanes of the block that took part: "0-255", "7", "0-2,5"; "none" where a guard held for none."""
    inst: str
    """Mnemonic: "LOAD"."""
    text: str
    """The instruction: "load.f32 r1, hbm[a + r0*4]"."""
    source: str
    """"kernel.py:12"."""
    unit: str
    """Letter of the pipe: S, V, X, M, D or C."""
    stall: int
    """Cycles before the issue that the one of its warps waited which waited longest."""
    reason: str
    """The largest part of them, "" if none: see `pypto.debug.stall_reasons()`."""
    pc: int
    """Index of the instruction in the object."""
    lanes: int
    """Number of active lanes."""
    is_fused: bool
    """It issued as one with the instruction before it."""
    stage: str = ""
    """Pipeline stage, if the kernel has any."""
    least_stall: int = 0
    """Cycles that the one of its warps waited which waited least."""


FIELDS = tuple(TimelineEntry.__dataclass_fields__)


class Timeline(list[TimelineEntry]):
    """A list of entries in the order of their issue, with other forms of the same.

    `dropped`: warp instructions past the limit of what is kept, for which there are no entries.
    """

    dropped: int = 0

    def to_dict(self) -> dict[str, list[Any]]:
        """A column a field: `pandas.DataFrame(timeline.to_dict())` works where pandas is installed."""
        return {name: [getattr(entry, name) for entry in self] for name in FIELDS}

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame` with a row an entry. ImportError, with what to install, without pandas."""
        try:
            import pandas
        except ImportError:
            raise ImportError(
                "Timeline.to_pandas() needs pandas (Debian: python3-pandas); to_dict() does without"
            ) from None
        return pandas.DataFrame(self.to_dict(), columns=list(FIELDS))

    def __str__(self) -> str:
        lines = [f"{'cycle':>7} {'end':>7} {'block':>5} {'lanes':>9}  unit  instruction"]
        for e in self:
            waited = e.stall if e.stall == e.least_stall else f"{e.least_stall}-{e.stall}"
            stall = f"   (waited {waited}: {e.reason})" if e.stall else ""
            lines.append(f"{e.cycle:>7} {e.end:>7} {e.block:>5} {e.lane:>9}  {e.unit:<4}  {e.text}{stall}")
        if self.dropped:
            lines.append(f"... and {self.dropped} warp instructions more, past the limit of what is kept")
        return "\n".join(lines)


def stage_finder(program: Any, stages: dict[str, str] | None) -> Callable[[int], str]:
    """pc -> name of the pipeline stage. `stages`: label -> name; a stage lasts to the next label."""
    if not stages:
        return lambda pc: ""
    starts = sorted((pc, stages[label]) for label, pc in program.labels() if label in stages)
    pcs = [pc for pc, _ in starts]

    def find(pc: int) -> str:
        index = bisect_right(pcs, pc) - 1
        return starts[index][1] if index >= 0 else ""

    return find


def make_timeline(
    rows: list[tuple[Any, ...]], stage_of: Callable[[int], str], dropped: int = 0
) -> Timeline:
    """Entries from what the module gives."""
    result = Timeline()
    result.dropped = dropped
    for row in rows:
        (cycle, end, core, block, warps, lane, inst, text, source, unit, stall, reason, pc, lanes, fused,
         least_stall) = row
        warp = str(warps[0]) if warps[0] == warps[1] else f"{warps[0]}-{warps[1]}"
        result.append(
            TimelineEntry(cycle, end, core, block, warp, lane, inst, text, source, unit, stall, reason, pc,
                          lanes, fused, stage_of(pc), least_stall)
        )  # fmt: skip
    return result
