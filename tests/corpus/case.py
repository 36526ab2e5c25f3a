# SPDX-License-Identifier: Apache-2.0
"""A kernel of the corpus at one size: what to launch, on what, and what must come out.

A Case is plain data and knows nothing of any program that runs it. Entries stand for cases that are
not built yet: their names and tags are cheap, inputs and expected results are computed on build().
"""

from __future__ import annotations

import dataclasses
import pathlib
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"

Scalar = int | float | np.number
Extent = tuple[int, int, int]


def extent(value: int | Sequence[int]) -> Extent:
    """A grid or block size with three parts: 4 -> (4, 1, 1)."""
    parts = (value,) if isinstance(value, int) else tuple(value)
    return parts + (1,) * (3 - len(parts))


@dataclasses.dataclass(frozen=True)
class Launch:
    """One launch. args maps each parameter to the name of a buffer (str) or to a scalar value."""

    kernel: str
    grid: Extent
    block: Extent
    args: Mapping[str, str | Scalar]
    writes: tuple[str, ...]  # the buffers that the kernel may change

    def __post_init__(self):
        buffers = [value for value in self.args.values() if isinstance(value, str)]
        if len(set(buffers)) != len(buffers):  # a command line has no way to say it
            raise ValueError(f"{self.kernel}: one buffer for two parameters in {dict(self.args)}")
        if not set(self.writes) <= set(buffers):
            raise ValueError(f"{self.kernel} cannot write {self.writes}: its buffers are {buffers}")


@dataclasses.dataclass(frozen=True)
class Case:
    """Launches in order over named buffers, and the expected contents of some of them afterwards.

    rtol = atol = 0 asks for equal values (NaN equals NaN, -0 equals 0): the arithmetic is exact, or
    its order is documented and the reference follows it.
    """

    name: str
    file: pathlib.Path
    launches: tuple[Launch, ...]
    buffers: Mapping[str, np.ndarray]
    expected: Mapping[str, np.ndarray]
    rtol: float = 0.0
    atol: float = 0.0
    tags: frozenset[str] = frozenset()

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple(self.expected)

    @property
    def only_launch(self) -> Launch:
        """The launch of a case that has one; ValueError for a case of several."""
        (launch,) = self.launches
        return launch

    def mismatch(self, results: Mapping[str, np.ndarray]) -> str | None:
        """None if all outputs agree, otherwise the first difference in words."""
        for name, want in self.expected.items():
            got = np.asarray(results[name]).reshape(want.shape)
            if got.dtype != want.dtype:
                return f"{name}: type {got.dtype}, expected {want.dtype}"
            exact = self.rtol == 0 and self.atol == 0
            if exact:
                same = (got == want) | ((got != got) & (want != want))
            else:
                same = np.isclose(got, want, rtol=self.rtol, atol=self.atol, equal_nan=True)
            if not np.all(same):
                where = np.argwhere(~same)
                at = tuple(int(i) for i in where[0])
                tolerance = "exactly" if exact else f"within rtol {self.rtol:g}, atol {self.atol:g}"
                return (
                    f"{name}{list(at)} = {got[at]!s}, expected {want[at]!s} {tolerance}; "
                    f"{len(where)} of {want.size} elements differ"
                )
        return None


@dataclasses.dataclass(frozen=True)
class Entry:
    """A case that is not built yet."""

    name: str
    file: pathlib.Path
    tags: frozenset[str]
    build: Callable[[], Case]


class Topic:
    """Collects the entries of one source file of examples/.

    The decorated function takes one size and returns the parts of the case; each size of the list
    becomes an entry named <file>/<function>-<size>. The entry of the size `smoke` also gets the tag
    "smoke": one case a kernel, for modes in which all sizes would take too long.
    """

    def __init__(self, file: str, *tags: str):
        self.path = EXAMPLES / file
        self.stem = file.removesuffix(".pto").replace("/", ".")
        self.tags = frozenset(tags)
        self.entries: list[Entry] = []

    def sizes(self, sizes: Iterable, smoke, tags: Iterable[str] = ()):
        sizes = list(sizes)
        if smoke not in sizes:
            raise ValueError(f"{self.stem}: the smoke size {smoke} is not one of {sizes}")

        def decorate(function):
            for size in sizes:
                parts = size if isinstance(size, tuple) else (size,)
                name = f"{self.stem}/{function.__name__}-{'x'.join(map(str, parts))}"
                all_tags = self.tags | frozenset(tags) | ({"smoke"} if size == smoke else set())
                self.entries.append(self._entry(name, function, parts, all_tags))
            return function

        return decorate

    def _entry(self, name, function, parts, tags) -> Entry:
        def build() -> Case:
            rng = np.random.default_rng(zlib.crc32(name.encode()))
            return dataclasses.replace(function(rng, *parts), name=name, file=self.path, tags=tags)

        return Entry(name, self.path, tags, build)


def single(kernel, grid, block, buffers, scalars, expected, rtol=0.0, atol=0.0) -> Case:
    """A case of one launch whose pointer parameters are named like their buffers."""
    args = {name: name for name in buffers} | dict(scalars)
    launch = Launch(kernel, extent(grid), extent(block), args, tuple(expected))
    return several([launch], buffers, expected, rtol, atol)


def several(launches, buffers, expected, rtol=0.0, atol=0.0) -> Case:
    return Case("", EXAMPLES, tuple(launches), buffers, expected, rtol, atol)


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)
