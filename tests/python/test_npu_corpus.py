# SPDX-License-Identifier: Apache-2.0
"""Kernels of the corpus by `ptosim --device npu` on the tests' own toolkit: the whole way from emission
to results, which are the simulator's bit for bit. One case a kernel; PTO_NPU_CORPUS=all runs every case.
"""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from corpus import manifest, ptosim  # noqa: E402

TOOLKIT = pathlib.Path(os.environ["PTO_BIN_DIR"]).parent / "tests" / "npu" / "toolkit"
TAGS = [] if os.environ.get("PTO_NPU_CORPUS") == "all" else ["smoke"]
ENTRIES = [  # the large matrices are launches of kernels that smaller ones have shown already
    entry for entry in manifest.select(tags=TAGS) if not TAGS or "_large-" not in entry.name
]


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("npu-cache")


@pytest.fixture
def npu(monkeypatch, cache):
    monkeypatch.setenv("ASCEND_HOME_PATH", str(TOOLKIT))
    monkeypatch.setenv("PTO_NPU_CACHE", str(cache))


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_kernel_gives_the_simulator_bits(entry, npu, tmp_path):
    case = entry.build()
    program = str(ptosim.find_program())
    simulated = ptosim.PreparedCase(case, tmp_path / "sim").run(program, ["--functional"])
    on_npu = ptosim.PreparedCase(case, tmp_path / "npu").run(program, ["--device", "npu"])
    assert case.mismatch(on_npu.outputs) is None
    for name, want in simulated.outputs.items():
        assert np.array_equal(want.view(np.uint8), on_npu.outputs[name].view(np.uint8)), name


def run(*options, **environment):
    return subprocess.run(
        [ptosim.find_program(), ROOT / "examples" / "vector_add.pto", "--block", "64", *options]
        + ["--arg=a=iota:f32[64]", "--arg=b=ones:f32[64]", "--arg=o=zeros:f32[64]", "--arg=n=64"],
        capture_output=True,
        text=True,
        env=os.environ | environment,
    )


def test_report_names_the_device(npu):
    done = run("--device", "npu")
    assert done.returncode == 0, done.stderr
    assert "FakeAscend950" in done.stdout
    assert "125 us" in done.stdout.replace("µ", "u")


@pytest.mark.parametrize(
    "function", ["aclInit", "aclrtSetDevice", "aclrtMalloc", "aclrtMemcpy", "aclrtSynchronizeStream"]
)
def test_failure_is_told_with_the_message_of_the_vendor(function, npu, tmp_path):
    log = tmp_path / "log"
    done = run("--device", "npu", PTO_FAKE_ACL_FAIL=f"{function}:1", PTO_FAKE_ACL_LOG=str(log))
    assert done.returncode == 1
    assert f"EZ9999: told to fail in {function}" in done.stderr
    assert "507899" in done.stderr
    if function != "aclInit":
        assert log.read_text().splitlines()[-1] == "held: memory 0, streams 0, events 0"


def test_without_a_toolkit_every_place_is_listed():
    done = run("--device", "npu", ASCEND_HOME_PATH="/nowhere")
    assert done.returncode == 1
    assert "ASCEND_HOME_PATH=/nowhere: no such folder" in done.stderr
    assert "/usr/local/Ascend/cann" in done.stderr


def test_options_of_the_simulator_are_refused():
    done = run("--device", "npu", "--functional")
    assert done.returncode == 2
    assert "--device" in done.stderr
