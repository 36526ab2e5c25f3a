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


IN_PLACE = pto.assemble(
    """
.kernel in_place(ptr.u32 a, ptr.u32 o)
    mov.u32      r0, 1
    store.u32    hbm[o], r0
    load.u32     r1, hbm[a]
    cmp.eq.u32   p0, r1, 0
@p0 exit
    tanh.f32     r2, 0.5
    exit
.end
"""
)


def test_profile_recovers_what_the_clock_was_told(npu, monkeypatch):
    """Cycles per call of the interface's functions, as the emulation's clock counts them."""
    monkeypatch.setenv("PTO_HOST_CYCLES", "fmaf=7,load=20,store=5,clock=3")
    x = np.linspace(1, 2, 128, dtype=np.float32)
    d_x, d_o = pto.Tensor.from_numpy(x), pto.alloc_tensor(x.nbytes)
    kernel = pto.assemble(
        """
.kernel fused(ptr.f32 x, ptr.f32 o)
    mov.u32      r0, %gid.x
    load.f32     r1, hbm[x + r0*4]
    fma.f32      r2, r1, r1, r1
    fma.f32      r2, r2, r1, r1
    store.f32    hbm[o + r0*4], r2
    exit
.end
"""
    )
    profile = pto.profile_on_npu(kernel, args=(d_x, d_o), grid=2, block=64, device="npu:0", runs=3)
    assert profile.device == "npu:0" and not profile.is_emulated
    breakdown = profile.cycle_breakdown()
    assert breakdown["FMA"].cycles == 7 and breakdown["FMA"].count == 8
    assert breakdown["LOAD"].cycles == 20 and breakdown["LOAD"].count == 4
    assert breakdown["STORE"].cycles == 5
    assert breakdown["FMA"].simulated == 8  # of the machine profile `reference`
    pairs = {(pair.first, pair.second): pair for pair in breakdown.pairs}
    assert pairs["LOAD", "FMA"].cycles == 27 and pairs["LOAD", "FMA"].count == 4
    assert pairs["FMA", "FMA"].cycles == 14 and pairs["FMA", "STORE"].cycles == 12
    assert not d_o.numpy().any()  # runs work on copies
    machine = profile.calibrate("reference")
    assert machine.to_dict()["latency"]["FMA"]["latency"] == 7
    assert "clock read" in machine.to_dict()["latency"]["FMA"]["definition"]


def test_profile_keeps_a_tensor_given_twice_one(npu):
    a, b = pto.alloc_tensor(4, pto.u32), pto.alloc_tensor(4, pto.u32)

    def rows(*args):
        profile = pto.profile_on_npu(IN_PLACE, args=args, block=1, device="npu:0", runs=1, compare=None)
        return [row.key for row in profile.cycle_breakdown().rows]

    assert "TANH" in rows(a, a)
    assert "TANH" not in rows(a, b)
    assert not a.numpy().any() and not b.numpy().any()


def test_profile_tells_what_fails(npu, monkeypatch):
    a = pto.alloc_tensor(4, pto.u32)
    kernel = pto.assemble(".kernel unseen(ptr.u32 a)\n    store.u32 hbm[a], 77\n    exit\n.end\n")
    monkeypatch.setenv("PTO_FAKE_BISHENG_FAIL", "1")
    with pytest.raises(pto.DeviceError, match="told to fail"):
        pto.profile_on_npu(kernel, args=(a,), block=1, device="npu:0", runs=1)
    monkeypatch.delenv("PTO_FAKE_BISHENG_FAIL")
    profile = pto.profile_on_npu(kernel, args=(a,), block=1, device="npu:0", runs=1)
    assert profile.cycle_breakdown()["STORE"].count == 1
