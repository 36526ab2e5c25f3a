"""The planted faults of tests/checks are found and their corrected twins are clean."""

import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "checks"))
import run_checks  # noqa: E402

CASES = run_checks.load_cases()


def test_there_are_at_least_sixty():
    assert len(CASES) >= 60
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fault_is_found_and_twin_is_clean(case):
    assert run_checks.verdict(os.environ["PTO_BIN_DIR"], case) == ""
