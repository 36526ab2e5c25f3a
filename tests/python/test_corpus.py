# SPDX-License-Identifier: Apache-2.0
"""The commands on the pages of examples/ work, and a dumped case checks itself.

The results of all cases are compared by tests/corpus/run_corpus.py, a test of its own.
"""

import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from corpus import manifest, ptosim  # noqa: E402

EXAMPLES = ROOT / "examples"
PAGES = sorted(EXAMPLES.rglob("README.md"))


def commands_of(page):
    return "\n".join(re.findall(r"^```sh\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name)
def test_commands_of_page_run(page, tmp_path):
    """The commands run as shown from the root of the repository and end with status 0."""
    for folder in ("examples", "tests"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    program = ptosim.find_program()
    # Pages speak of build/release, wherever the tests' build is, and of the Python that has numpy.
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "release").symlink_to(program.parent.parent)
    (tmp_path / "python").mkdir()
    (tmp_path / "python" / "python3").symlink_to(sys.executable)
    path = f"{program.parent}:{tmp_path / 'python'}:{os.environ['PATH']}"
    environment = os.environ | {"PATH": path}
    done = subprocess.run(
        ["/bin/bash", "-euc", commands_of(page)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_dumped_case_checks_itself(tmp_path):
    """run.sh of a dumped case runs all launches; with a wrong expected file it fails."""
    (entry,) = manifest.select("multi_block_scan-4099")
    prepared = ptosim.PreparedCase(entry.build(), tmp_path)
    script = prepared.write_script(program=str(ptosim.find_program()))
    assert subprocess.run([script], capture_output=True).returncode == 0
    wrong = np.load(tmp_path / "expected.y.npy")
    wrong[-1] += 1
    np.save(tmp_path / "expected.y.npy", wrong)
    done = subprocess.run([script], capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert "4098" in done.stdout + done.stderr
