# SPDX-License-Identifier: Apache-2.0
"""What the checks find in a run."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Site:
    """One side of a finding."""

    place: str
    """"kernel.py:12"."""
    file: str | None
    line: int | None
    column: int | None
    pc: int
    instruction: str
    block: int
    """Linear index in the grid."""
    warp: int
    lanes: list[int]
    """Lanes of the warp; empty: the warp or a copy as a whole."""
    what: str
    """"store of 4 bytes", "copy from hbm"."""


@dataclass(frozen=True)
class Finding:
    """One thing that a check found. `str()` is the whole message."""

    kind: str
    """"mem", "init", "race", "sync" or "nan"."""
    message: str
    hint: str
    """A way out; may be empty."""
    kernel: str
    here: Site
    """Where the run noticed it."""
    there: Site | None
    """The earlier conflicting access, or where a value came from."""
    space: str | None
    """"hbm", "l1" or "const"."""
    address: int | None
    """Bytes, in that space."""
    nbytes: int
    location: str
    """"allocation a + 16"."""
    count: int
    """How often it was seen between the same two instructions."""
    text: str = field(repr=False, compare=False)

    @property
    def addresses(self) -> list[int]:
        """The address, if there is one, as a list."""
        return [] if self.address is None else [self.address]

    def __str__(self) -> str:
        return self.text.rstrip("\n")


def make_findings(items: list[dict[str, Any]]) -> list[Finding]:
    """Findings from what the module gives."""
    return [
        Finding(**{**item, "here": Site(**item["here"]),
                   "there": None if item["there"] is None else Site(**item["there"])})
        for item in items
    ]  # fmt: skip
