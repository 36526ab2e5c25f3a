# SPDX-License-Identifier: Apache-2.0
"""pto.device("npu") from Python on the tests' own toolkit, with failures injected."""

import os
import pathlib

import numpy as np
import pytest

pto = pytest.importorskip("pypto")

TOOLKIT = pathlib.Path(os.environ["PTO_BIN_DIR"]).parent / "tests" / "npu" / "toolkit"


@pto.kernel
def twice(x, o, n):
    i = pto.get_global_id()
    if i < n:
        pto.store(o + i, pto.load(x + i) * 2.0)


@pto.kernel
def thrice(x, o, n):
    i = pto.get_global_id()
    if i < n:
        pto.store(o + i, pto.load(x + i) * 3.0)


@pytest.fixture
def npu(monkeypatch, tmp_path):
    monkeypatch.setenv("ASCEND_HOME_PATH", str(TOOLKIT))
    monkeypatch.setenv("PTO_NPU_CACHE", str(tmp_path))


def run(kernel=twice):
    """In a device opened for the purpose, closed afterwards."""
    x = np.arange(100, dtype=np.float32)
    with pto.device("npu:0"):
        d_x, d_o = pto.Tensor.from_numpy(x), pto.Tensor.from_numpy(np.zeros_like(x))
        pto.launch(kernel, grid=(2, 1, 1), block=(64, 1, 1), args=(d_x, d_o, 100))
        pto.sync()
        return d_o.numpy(np.float32, (100,))


def test_kernel_runs(npu):
    assert np.array_equal(run(), np.arange(100, dtype=np.float32) * 2)


def test_emit_is_ascend_c(npu):
    run()
    assert "__global__" in twice.emit("ascendc")


def test_no_toolkit_is_an_error_with_the_places(monkeypatch):
    monkeypatch.setenv("ASCEND_HOME_PATH", "/nowhere")
    with pytest.raises(pto.DeviceUnavailableError, match="ASCEND_HOME_PATH=/nowhere: no such folder"):
        pto.device("npu:7")


def test_failed_compile_is_an_error(npu, monkeypatch):
    monkeypatch.setenv("PTO_FAKE_BISHENG_FAIL", "1")
    with pytest.raises(pto.DeviceError, match="told to fail"):
        run(thrice)
