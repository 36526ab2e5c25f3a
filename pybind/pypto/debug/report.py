# SPDX-License-Identifier: Apache-2.0
"""Reports of a run: HTML with the picture of its timeline, stalls, bubbles."""
from __future__ import annotations

import html
import os
from dataclasses import dataclass

from pypto.checked import path as checked_path


class Report:
    """A report. In a notebook it shows itself; `save` writes the page; `str()` is the text form."""

    def __init__(self, page: str, text: str) -> None:
        self._page = page
        self._text = text

    @property
    def html(self) -> str:
        """The page: complete, without other files or the network."""
        return self._page

    def save(self, path: "str | os.PathLike[str]") -> None:
        """Writes the page. OSError where it cannot."""
        with open(checked_path("path", path), "w", encoding="utf-8") as file:
            file.write(self.html)

    def _repr_html_(self) -> str:
        # A frame of its own: the page's styles and scripts must not meet the notebook's.
        return (
            f'<iframe srcdoc="{html.escape(self.html)}" width="100%" height="640" '
            'style="border: 1px solid #ccc"></iframe>'
        )

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__


class Stalls(dict[str, int]):
    """Reason -> cycles that warps waited for it, all warps together, most first. `str()` is a table."""

    def __init__(self, cycles: dict[str, int], text: str) -> None:
        super().__init__(sorted(cycles.items(), key=lambda item: -item[1]))
        self._text = text

    def __str__(self) -> str:
        return self._text


@dataclass(frozen=True)
class Bubble:
    """Stretches of a core in which a unit had nothing to do, of one kind. `str()` is the sentence about it."""

    unit: str
    """"issue" (no warp issued) or the unit's letter."""
    cycles: int
    """Of all of them."""
    count: int
    longest: int
    """Cycles of the longest one."""
    start: int
    """Cycle where the longest one begins."""
    core: int
    block: int
    warp: int
    place: str
    """The instruction that ended it."""
    cause: str
    """Where the awaited result or copy comes from; "" if nothing was awaited."""
    reason: str
    text: str
    hint: str
    """What a programmer may do."""

    def __str__(self) -> str:
        return f"{self.text}\n  hint: {self.hint}" if self.hint else self.text
