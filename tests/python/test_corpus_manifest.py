# SPDX-License-Identifier: Apache-2.0
"""The manifest of the corpus is complete, its references are right, and the pages name all kernels."""

import dataclasses
import fractions
import pathlib
import re
import sys

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from corpus import manifest, reference  # noqa: E402

EXAMPLES = ROOT / "examples"
TOPICS = sorted(path for path in EXAMPLES.iterdir() if list(path.glob("*.pto")))


def ids(paths):
    return [str(path.relative_to(EXAMPLES)) for path in paths]


def kernels_of(path):
    return set(re.findall(r"^\.kernel\s+(\w+)", path.read_text(), re.MULTILINE))


def test_every_kernel_has_cases():
    """Each kernel of examples/ runs in a smoke case, at a size of 1, and at another odd size."""
    smoke, sizes = set(), {}
    for entry in manifest.select(without={"large"}):
        case = entry.build()
        for launch in case.launches:
            key = (case.file, launch.kernel)
            smoke |= {key} if "smoke" in case.tags else set()
            sizes.setdefault(key, set()).update(
                array.size for name, array in case.buffers.items() if name in case.expected
            )
    for path in EXAMPLES.rglob("*.pto"):
        for kernel in kernels_of(path):
            assert (path, kernel) in smoke, f"{path}: {kernel} has no smoke case"
            at = sizes[path, kernel]
            assert 1 in at or "histogram" in kernel or "hash" in kernel, f"{kernel}: sizes {at}"


def test_names_are_unique():
    names = [entry.name for entry in manifest.entries()]
    assert len(names) == len(set(names))


def test_cases_do_not_depend_on_the_order_in_which_they_are_built():
    forwards = [entry.build() for entry in manifest.select("saxpy")]
    backwards = [entry.build() for entry in reversed(manifest.select("saxpy"))]
    for first, second in zip(forwards, reversed(backwards)):
        for name, array in first.buffers.items():
            assert np.array_equal(array, second.buffers[name])


@pytest.mark.parametrize("topic", TOPICS, ids=ids(TOPICS))
def test_page_names_every_kernel(topic):
    page = (topic / "README.md").read_text() if topic != EXAMPLES / "common" else ""
    for path in topic.glob("*.pto"):
        for kernel in kernels_of(path):
            family = kernel.rsplit("_", 1)[0] + "_*"  # a page may speak of tile_serial_*
            is_named = re.search(rf"\b{kernel}\b", page) or family in page
            assert is_named, f"{topic.name}/README.md does not speak of {kernel}"


def test_index_links_every_topic():
    index = (EXAMPLES / "README.md").read_text()
    for topic in TOPICS:
        assert f"[{topic.name}]({topic.name})" in index


def test_wrong_results_are_found():
    """A comparison that passes everything would prove nothing: break each output by the least."""
    for entry in manifest.select(tags={"smoke"}, without={"large"}):
        case = entry.build()
        assert case.mismatch(case.expected) is None
        for name, want in case.expected.items():
            broken = want.copy()
            if case.rtol or case.atol:
                broken.flat[-1] += 2 * (case.atol + case.rtol * abs(want.flat[-1]))
            else:
                bits = broken.reshape(-1).view(f"u{want.itemsize}")
                bits[-1] ^= 1
            found = case.mismatch(dict(case.expected) | {name: broken})
            assert found is not None and found.startswith(name), entry.name


def test_nan_compares_by_place():
    (entry,) = manifest.select("add_f16-33")
    case = entry.build()
    (want,) = case.expected.values()
    assert np.isnan(want).any()
    moved = dataclasses.replace(case, expected={"o": want})
    assert moved.mismatch({"o": np.roll(want, 1)}) is not None


def exact_fma(a, b, c):
    """a*b + c by rational arithmetic, rounded to the nearest f32, ties to even."""
    a, b, c = (fractions.Fraction(float(term)) for term in (a, b, c))
    value = a * b + c
    near = np.float32(float(value))
    around = [np.nextafter(near, np.float32(end)) for end in (-np.inf, np.inf)]

    def distance(x):
        return abs(fractions.Fraction(float(x)) - value), int(x.view(np.uint32)) & 1

    return min([near, *around], key=distance)


def test_reference_fma_rounds_once():
    rng = np.random.default_rng(1)
    near_one = 2.0 ** -rng.integers(12, 24, 3000)
    a = 1 + near_one
    b = 2.0**-24 * (1 - near_one) * rng.choice([-1, 1], 3000)  # the sum is beside the middle of two
    c = 1 + rng.integers(0, 2**23, 3000) * 2.0**-23
    a, b, c = (v.astype(np.float32) for v in (a, b, c))
    want = np.array([exact_fma(*terms) for terms in zip(a, b, c)])
    twice = (a.astype(np.float64) * b + c).astype(np.float32)
    assert (twice != want).any()  # the inputs are hard: rounding twice goes wrong
    assert np.array_equal(reference.fma32(a, b, c), want)


def test_reference_divisor_is_exact():
    rng = np.random.default_rng(2)
    edges = [1, 2, 3, 2**16 - 1, 2**16, 2**31 - 1, 2**31, 2**31 + 1, 2**32 - 1]
    for divisor in edges + rng.integers(1, 2**32, 200).tolist():
        magic, shift1, shift2 = reference.magic_divisor(divisor)
        assert 0 <= magic < 2**32 and shift1 < 32 and shift2 < 32
        multiples = [divisor * k + d for k in (1, 2, 2**32 // divisor) for d in (-1, 0, 1)]
        for a in multiples + [0, 2**32 - 1] + rng.integers(0, 2**32, 20).tolist():
            if 0 <= a < 2**32:
                t = a * magic >> 32
                q = (t + ((a - t) % 2**32 >> shift1)) % 2**32 >> shift2
                assert q == a // divisor, (a, divisor)
