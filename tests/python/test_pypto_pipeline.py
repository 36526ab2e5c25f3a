# SPDX-License-Identifier: Apache-2.0
"""Pipelines of the kernel language: what they compute, what they emit, and that copies overlap."""

from __future__ import annotations

import numpy as np
import pypto as pto
import pypto_ptosim as ptosim
import pytest
from test_pypto_cycles import example
from pypto_kernels import compiled, insns, out

CHECKED = ("--functional", "--checks", "all")


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
@pytest.mark.parametrize("rounds", [0, 1, 2, 3, 7])
def test_lanes_compute_on_rotating_buffers(depth, rounds):
    @pto.kernel
    def k(x, o, n):
        lane = pto.get_local_id()
        total = 0.0
        with pto.pipeline(depth=depth) as pl:
            with pl.stage("load"):
                t = pto.alloc_local(64)
                pto.async_load(t, x + pl.index * 64, 256)
            with pl.stage("sum", after="load"):
                total += pto.load(t + lane) * (pl.index + 1)
            pl.run(range(n))
        pto.store(o + lane, total)

    x = np.arange(64 * 8, dtype=np.float32)
    o = out(np.float32, 64)
    ptosim.run(k, [x, o, rounds], 1, 64, CHECKED)
    parts = x.reshape(8, 64)[:rounds]
    assert (o == (parts * np.arange(1, rounds + 1)[:, None]).sum(axis=0)).all()


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_results_are_stored_from_rotating_buffers(depth):
    @pto.kernel
    def k(a, b, c, n):
        with pto.pipeline(depth=depth) as pl:
            with pl.stage("load_a"):
                ta = pto.alloc_local(16 * 8)
                pto.async_load(ta, a + pl.index * 128, 512)
            with pl.stage("load_b"):
                tb = pto.alloc_local(8 * 16)
                pto.async_load(tb, b + pl.index * 128, 512)
            with pl.stage("multiply", after=("load_a", "load_b")):
                tc = pto.alloc_local(16 * 16)
                pto.mma(tc, ta, tb, 16, 16, 8)
            with pl.stage("store", after="multiply"):
                pto.store(c + pl.index * 256, tc, 1024)
            pl.run(range(1, n, 2))

    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((9, 16, 8)).astype(np.float32) for _ in range(2))
    b = b.reshape(9, 8, 16)
    c = np.zeros((9, 16, 16), np.float32)
    ptosim.run(k, [a, b, c, 9], 1, 64, CHECKED)
    expected = np.matmul(a, b)
    expected[::2] = 0
    assert np.allclose(c, expected, atol=1e-5)


def test_stages_run_in_the_order_of_after_copies_first():
    @pto.kernel
    def k(x, y, o):
        lane = pto.get_local_id()
        with pto.pipeline() as pl:
            with pl.stage("two", after=("one", "load")):
                pto.store(o + lane, pto.load(o + lane) + pto.load(t + lane))
            with pl.stage("one"):
                pto.store(o + lane, 100.0)
            with pl.stage("load"):
                t = pto.alloc_local(32)
                pto.async_load(t, x, 128)
            pl.run()

    x, o = np.arange(32, dtype=np.float32), out(np.float32)
    code = insns(k, x, x, o)
    assert code.index("async_load") < code.index("store.f32") < code.index("wait") < code.index("barrier_block")
    ptosim.run(k, [x, x, o], 1, 32, CHECKED)
    assert (o == x + 100).all()


def test_stage_names_are_labels():
    @pto.kernel
    def k(x, o):
        with pto.pipeline() as pl:
            with pl.stage("bring in"):
                t = pto.alloc_local(32)
                pto.async_load(t, x, 128)
            with pl.stage("take out", after="bring in"):
                pto.store(o, t, 128)
            pl.run()

    code = compiled(k, out(np.float32), out(np.float32))
    named = {label: stage for label, stage in code.stages.items() if stage}
    assert sorted(named.values()) == ["bring in", "take out"]
    for label in named:
        assert f"\n{label}:\n" in code.asm


def test_a_pipeline_inside_a_loop_and_a_condition():
    @pto.kernel
    def k(x, o, n):
        lane = pto.get_local_id()
        t = pto.alloc_local(32)
        total = 0.0
        for i in range(n):
            with pto.pipeline() as pl:
                with pl.stage("load"):
                    pto.async_load(t, x + i * 32, 128)
                with pl.stage("sum", after="load"):
                    total += pto.load(t + lane)
                pl.run()
        pto.store(o + lane, total)

    x, o = np.arange(160, dtype=np.float32), out(np.float32)
    ptosim.run(k, [x, o, 5], 1, 32, CHECKED)
    assert (o == x.reshape(5, 32).sum(axis=0)).all()


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_loading_stage_keeps_its_own_variables(depth):
    @pto.kernel
    def k(x, o, n):
        lane = pto.get_local_id()
        p = x
        total = 0.0
        for again in range(2):
            with pto.pipeline(depth=depth) as pl:
                with pl.stage("load"):
                    t = pto.shared(64)
                    pto.async_load(t, p, 256)
                    p += 64
                with pl.stage("sum", after="load"):
                    total = total * 0.5 + pto.load(t + lane)
                pl.run(range(n))
        pto.store(o + lane, total)

    x = np.random.default_rng(3).integers(0, 9, 64 * 8).astype(np.float32)
    for rounds in (0, 1, 3, 4):
        o = out(np.float32, 64)
        ptosim.run(k, [x, o, rounds], 1, 64, CHECKED)
        expected = np.zeros(64, np.float32)
        for part in x.reshape(8, 64)[: 2 * rounds]:
            expected = expected * np.float32(0.5) + part
        assert (o == expected).all()


def test_copies_with_events_of_their_own():
    @pto.kernel
    def k(x, y, o):
        lane = pto.get_local_id()
        mine = pto.event()
        with pto.pipeline() as pl:
            with pl.stage("load"):
                t = pto.alloc_local(64)
                u = pto.alloc_local(64)
                pto.async_load(t, x, 256, mine)
                pto.async_load(u, y, 256)
            with pl.stage("sum", after="load"):
                pto.wait(mine)
                pto.barrier_block()
                pto.store(o + lane, pto.load(t + lane) + pto.load(u + lane))
            pl.run()

    x, y, o = np.arange(64, dtype=np.float32), np.ones(64, np.float32), out(np.float32, 64)
    ptosim.run(k, [x, y, o], 1, 64, CHECKED)
    assert (o == x + 1).all()


def test_double_buffering_hides_the_copies():
    """Copy and multiplication both take 256 cycles a slice: the second buffer must save 30 % at least."""
    matmul = example("matmul")
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((64, 512)), rng.standard_normal((512, 64))
    values = [a.astype(np.float32), b.astype(np.float32), np.zeros((64, 64), np.float32), 64, 64, 512]
    options = ["--profile", "reference", "--set", "latency.MMA.latency=256"]
    cycles = {}
    for kernel in (matmul.matmul_serial, matmul.matmul):
        values[2][:] = 0
        cycles[kernel] = ptosim.run(kernel, values, 1, 32, options)["cycles"]
        assert np.allclose(values[2], a @ b, atol=1e-3)
    serial, overlapped = cycles.values()
    print(f"serial {serial} cycles, overlapped {overlapped}: {overlapped / serial:.2f}")
    assert overlapped <= 0.7 * serial
