# SPDX-License-Identifier: Apache-2.0
"""No check says anything about the corpus, at any size, and its results do not depend on the order of
warps or on stale data caches."""

import concurrent.futures
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from corpus import manifest, ptosim  # noqa: E402

# Where a key lands depends on who comes first; the sums of the keys do not.
ORDER_DEPENDENT = {"hash.hash_insert/hash_insert-2000x2048x700"}


def failures(entries, options):
    program = str(ptosim.find_program().resolve())

    def problem(entry):
        try:
            ptosim.run(entry.build(), program, options)
        except (AssertionError, ptosim.RunError) as error:
            return f"{entry.name}: {error}"
        return None

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return [text for text in pool.map(problem, entries) if text]


@pytest.mark.parametrize("mode", [["--functional"], []], ids=["functional", "timed"])
def test_all_checks_are_silent(mode):
    """A finding ends ptosim with status 1."""
    assert failures(manifest.select(without={"large"}), [*mode, "--checks=all"]) == []


def test_no_kernel_needs_coherent_caches():
    options = ["--functional", "--cache=incoherent"]
    assert failures(manifest.select(without={"large"}), options) == []


def test_schedules_agree():
    entries = manifest.select(tags={"smoke"}, without={"large"})
    wrong = failures(entries, ["--functional", "--schedule-fuzz", "4"])
    assert {text.split(": ")[0] for text in wrong} == ORDER_DEPENDENT
    assert all("schedules disagree: slot_keys" in text for text in wrong)
