# SPDX-License-Identifier: Apache-2.0
"""Stepping, breakpoints and going back end in the bytes and cycles of a free run, over the corpus."""

import json
import os
import pathlib
import random
import subprocess
import sys

import numpy as np
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from corpus import manifest, ptosim  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("PTO_BIN_DIR", ROOT / "build" / "release" / "bin"))
PTODBG = BIN / "ptodbg"

pytestmark = pytest.mark.skipif(not PTODBG.exists(), reason="built without readline")

CASES = manifest.select(tags={"smoke"}, without={"large"})
# The smallest of each kernel: stepping costs a command a step.
LIMIT_INSNS = 60000


@pytest.mark.parametrize("profile", ["reference", "ascend950"])
@pytest.mark.parametrize("entry", CASES, ids=[entry.name for entry in CASES])
def test_ways_of_running_agree(entry, profile, tmp_path):
    case = entry.build()
    prepared = ptosim.PreparedCase(case, tmp_path)
    line = prepared.command(0, str(BIN / "ptosim"), ["--profile", profile, "--json"])
    free = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert free.returncode == 0, free.stderr
    run = json.loads(free.stdout)
    if run["warp_instructions"] > LIMIT_INSNS:
        pytest.skip("long: other cases of the kernel are stepped")
    launch = case.launches[0]
    rng = random.Random(case.name)
    keep, options = [], iter(line[1:])
    for option in options:
        if option in ("--out", "--expect", "--rtol", "--atol"):
            next(options)
        elif option != "--json":
            keep.append(option)
    saves = [f"save {value}.dbg.bin {parameter}" for parameter, value in launch.args.items()
             if isinstance(value, str) and value in launch.writes]
    walk = []
    for _ in range(12):
        n = rng.randrange(1, 9)
        walk.append(rng.choice([f"step {n}", f"stepw {n}", f"reverse-step {n}",
                                f"reverse-stepw {n}", f"tbreak *{rng.randrange(4)}\nc",
                                f"goto #{rng.randrange(run['warp_instructions'])}"]))
    scripts = {
        "steps": ["start"] + ["step"] * 8 + ["step 100000000", "c"],
        "walk": ["start", *walk, "delete", "c"],
    }
    for name, commands in scripts.items():
        text = "\n".join(["set lanes-shown 0", *commands, "info launch", *saves]) + "\n"
        done = subprocess.run([PTODBG, "-nx", *keep], cwd=tmp_path, input=text, text=True,
                              capture_output=True, timeout=240)
        finished = [l for l in done.stdout.splitlines() if l.startswith("The kernel has finished")]
        assert finished, (name, done.stdout[-500:], done.stderr[-500:])
        assert f" {run['cycles']} cycles, {run['warp_instructions']} warp insns" in finished[-1], (
            name, finished[-1], run["cycles"])
        for parameter, value in launch.args.items():
            if isinstance(value, str) and value in launch.writes:
                want = np.load(tmp_path / f"{value}.0.npy").tobytes()
                assert (tmp_path / f"{value}.dbg.bin").read_bytes() == want, (name, value)
