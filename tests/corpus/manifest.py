# SPDX-License-Identifier: Apache-2.0
"""All cases of the corpus.

    for entry in manifest.select(tags={"smoke"}, without={"large"}):
        case = entry.build()        # a case.Case: file, launches, buffers, expected, rtol, atol
        ptosim.run(case)            # see ptosim.py; or case.launches and case.mismatch by yourself

Tags: smoke (one size of every kernel), large (512 x 512 x 512), f16, mma, block-scoped (uses copies
or the matrix unit), atomics, divergent, multi-launch.
"""

from __future__ import annotations

from collections.abc import Iterable

from . import cases_elementwise, cases_matrix, cases_memory, cases_reductions
from .case import Entry

_MODULES = (cases_elementwise, cases_reductions, cases_memory, cases_matrix)


def entries() -> list[Entry]:
    """Every entry, in the order of the topics."""
    return [entry for module in _MODULES for topic in module.TOPICS for entry in topic.entries]


def select(pattern: str = "", tags: Iterable[str] = (), without: Iterable[str] = ()) -> list[Entry]:
    """Entries whose name contains pattern, with all of `tags` and none of `without`."""
    wanted, unwanted = frozenset(tags), frozenset(without)
    return [
        entry
        for entry in entries()
        if pattern in entry.name and wanted <= entry.tags and not unwanted & entry.tags
    ]
