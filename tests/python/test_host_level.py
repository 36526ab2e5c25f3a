# SPDX-License-Identifier: Apache-2.0
"""PTO_HOST_LEVEL: which levels this computer has, that the variable chooses, what is refused, and
that kernels give the same bytes in every level."""

import os
import pathlib
import platform
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("PTO_BIN_DIR", ROOT / "build/release/bin"))
sys.path.insert(0, str(ROOT / "tests"))

from corpus import manifest, ptosim  # noqa: E402

FEATURES = {
    "avx2": {"avx2", "fma", "bmi1", "bmi2"},
    "avx512": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
}


def host_levels():
    """By what the operating system says of the processor."""
    levels = ["baseline"]
    if platform.machine() != "x86_64":
        return levels
    text = pathlib.Path("/proc/cpuinfo").read_text()
    flags = set(re.search(r"^flags\s*:(.*)$", text, re.MULTILINE).group(1).split())
    for level, features in FEATURES.items():
        if not features <= flags:
            break
        levels.append(level)
    return levels


LEVELS = host_levels()
UNASKED = "avx2" if "avx2" in LEVELS else "baseline"  # AVX-512 only on request


def run(level, *command):
    environment = {key: value for key, value in os.environ.items() if key != "PTO_HOST_LEVEL"}
    if level is not None:
        environment["PTO_HOST_LEVEL"] = level
    return subprocess.run([BIN / command[0], *command[1:]], env=environment, capture_output=True,
                          text=True, timeout=120)


@pytest.mark.parametrize("asked", [None, "", *LEVELS])
def test_the_variable_chooses_the_level(asked):
    done = run(asked, "ptosim", "--version")
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(f" (host level {asked or UNASKED})\n")


REFUSED = ["avx", "AVX2", "1", "avx2 ", *(level for level in FEATURES if level not in LEVELS)]


@pytest.mark.parametrize("program", ["ptoas", "ptosim", "ptodbg", "ptoprof"])
@pytest.mark.parametrize("asked", REFUSED)
def test_a_level_that_is_not_there_is_refused(program, asked):
    if not (BIN / program).exists():
        pytest.skip(f"built without {program}")
    done = run(asked, program, "--version")
    reason = "the processor does not have that level" if asked in FEATURES else "no such level"
    assert done.stderr == (f"{program}: error: PTO_HOST_LEVEL={asked}: {reason}; "
                           f"this computer has {', '.join(LEVELS)}\n")
    assert done.stdout == ""
    assert done.returncode == 2


SCRIPT = """
import pypto as pto

@pto.kernel
def k(o: pto.ptr(pto.s32)):
    pto.store(o + pto.get_global_id(), 1)

o = pto.alloc_tensor(128)
try:
    pto.launch(k, grid=(1, 1, 1), block=(32, 1, 1), args=(o,))
except pto.PtoError as error:
    print(error)
"""


def test_python_refuses_it_at_the_launch(tmp_path):
    pytest.importorskip("pypto")
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run([sys.executable, tmp_path / "script.py"], capture_output=True, text=True,
                          timeout=120, env=os.environ | {"PTO_HOST_LEVEL": "avx3"})
    expected = f"PTO_HOST_LEVEL=avx3: no such level; this computer has {', '.join(LEVELS)}\n"
    assert done.stdout == expected, done.stderr


@pytest.mark.parametrize("entry", manifest.select(tags={"smoke"}), ids=lambda entry: entry.name)
def test_kernels_give_the_same_bytes_in_every_level(entry, tmp_path, monkeypatch):
    case = entry.build()
    results = {}
    for level in LEVELS:
        monkeypatch.setenv("PTO_HOST_LEVEL", level)
        prepared = ptosim.PreparedCase(case, tmp_path / level)
        result = prepared.run(str(BIN / "ptosim"), ["--functional"])
        assert not case.mismatch(result.outputs)
        results[level] = {name: array.tobytes() for name, array in result.outputs.items()}
    for level in LEVELS[1:]:
        assert results[level] == results["baseline"]
