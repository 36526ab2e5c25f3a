# SPDX-License-Identifier: Apache-2.0
"""Mutants of the corpus with one barrier, wait or fence less are found by the checks.

Which of them change a result is decided by tests/mutation/mutate.py under many schedules, which takes
minutes; here every mutant runs with the checks alone, on cases until one finds it.
"""

import json
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(HERE / "mutation"))
sys.path.insert(0, str(HERE))
import mutate  # noqa: E402


def test_mutants_are_found_but_for_the_explained_ones():
    reasons = json.loads(mutate.MISSED.read_text())
    mutants = mutate.all_mutants([""])
    assert len(mutants) >= 80
    assert set(reasons) <= {mutant.key for mutant in mutants}
    sought = [mutant for mutant in mutants if mutant.key not in reasons]
    program = str(pathlib.Path(os.environ["PTO_BIN_DIR"]) / "ptosim")
    verdicts = mutate.judge_all(sought, program, with_schedules=False, jobs=2)
    assert [v.mutant.key for v in verdicts if not v.is_found] == []
