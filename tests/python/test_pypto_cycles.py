# SPDX-License-Identifier: Apache-2.0
"""Kernels of the corpus written in Python take at most 20 % more cycles than the hand-written ones,
and compute the same. `pytest -s` prints the table."""

from __future__ import annotations

import importlib.util
import sys

import numpy as np
import pypto_ptosim as ptosim
import pytest

EXAMPLES = ptosim.ROOT / "examples"
RNG = np.random.default_rng(0)


def example(name: str):
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / "python" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # inspect.getsource looks for it
    spec.loader.exec_module(module)
    return module


def floats(*shape) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def ints(low, high, *shape) -> np.ndarray:
    return RNG.integers(low, high, shape).astype(np.int32)


def csr(rows, cols):
    dense = floats(rows, cols) * (RNG.random((rows, cols)) < 0.1)
    starts = np.concatenate([[0], np.cumsum((dense != 0).sum(axis=1))]).astype(np.int32)
    return dense[dense != 0], np.nonzero(dense)[1].astype(np.int32), starts


def cases():
    """name, Python kernel, hand-written file and kernel, arguments, grid, block, tolerance"""
    n = 6000
    x = floats(n)
    yield "saxpy", "saxpy", "saxpy/saxpy", "saxpy", [x, floats(n), 1.5, n], 4, 256, 0
    yield "saxpy", "saxpy_x4", "saxpy/saxpy", "saxpy_x4", [x, floats(n), 1.5, n - 1], 4, 256, 0
    yield "reduction", "block_sum", "reduction/block_sum", "block_sum", [x, floats(4), n], 4, 256, 0
    rows = [floats(40, 150), floats(40), 40, 150]
    yield "reduction", "warp_sum", "reduction/warp_sum", "warp_sum_reduce", rows, 5, 256, 0
    yield "softmax", "softmax", "softmax/softmax", "softmax_warp", [floats(40, 150), floats(40, 150), 40, 150], 5, 256, 0
    yield "layernorm", "layernorm", "layernorm/layernorm", "layernorm", [
        floats(6, 700), floats(700), floats(700), floats(6, 700), 700, 1e-5], 6, 256, 1e-5  # fmt: skip
    data = RNG.integers(0, 256, n).astype(np.uint8)
    yield "histogram", "histogram_global", "histogram/histogram", "histogram_global", [data, np.zeros(256, np.uint32), n], 4, 256, 0
    yield "histogram", "histogram_shared", "histogram/histogram", "histogram_shared", [data, np.zeros(256, np.uint32), n - 2], 4, 256, 0
    yield "transpose", "transpose", "transpose/transpose", "transpose_padded", [
        floats(90, 75), np.zeros((75, 90), np.float32), 90, 75], (3, 3, 1), (32, 8, 1), 0  # fmt: skip
    sparse = csr(200, 90)
    for kernel, grid in (("spmv_lane", 1), ("spmv_warp", 25)):
        yield "spmv", kernel, "spmv/spmv", kernel, [*sparse, floats(90), floats(200), 200], grid, 256, 0
    yield "mandelbrot", "mandelbrot", "mandelbrot/mandelbrot", "mandelbrot", [
        np.zeros((24, 64), np.int32), 64, 24, -2.0, -1.0, 3 / 64, 2 / 24, 60], (2, 3, 1), (32, 8, 1), 0  # fmt: skip
    yield "gather", "gather", "gather/gather", "gather_coalesced", [
        floats(50, 130), ints(0, 50, 30), floats(30, 130), 30, 130], 2, 256, 0  # fmt: skip
    divisors = ints(1, 90, 40, 64) * RNG.choice([-1, 1], (40, 64)).astype(np.int32)
    yield "floormod", "floor_mod", "floormod/floormod", "floor_mod", [
        ints(-9999, 9999, 40, 64), divisors, np.zeros((40, 64), np.int32), 40, 60, 64], (2, 5, 1), (32, 8, 1), 0  # fmt: skip
    yield "scan", "block_scan", "scan/block_scan", "block_scan", [ints(-99, 99, 1500), ints(0, 1, 1500), 1500], 1, 256, 0
    yield "matmul", "matmul", "matmul/matmul_mma", "matmul_mma_f32", [
        floats(100, 200), floats(200, 80), floats(100, 80), 100, 80, 200], (2, 2, 1), 32, 0  # fmt: skip
    yield "matmul_lanes", "matmul_lanes", "matmul/matmul_lanes", "matmul_lanes", [
        floats(128, 96), floats(96, 128), floats(128, 128), 128, 128, 96], (2, 2, 1), 256, 0  # fmt: skip


CASES = list(cases())
PROFILES = ("reference", "ascend950")


@pytest.mark.parametrize("case", CASES, ids=[case[1] for case in CASES])
def test_within_a_fifth_of_hand_written(case):
    name, kernel_name, file, hand, values, grid, block, tolerance = case
    kernel = getattr(example(name), kernel_name)
    text = (EXAMPLES / f"{file}.pto").read_text()
    head = next(line for line in text.splitlines() if line.startswith(f".kernel {hand}("))
    names = [part.split()[-1] for part in head.split("(")[1].rstrip(")").split(",")]
    for profile in PROFILES:
        by_hand = [v.copy() if isinstance(v, np.ndarray) else v for v in values]
        for i, part in enumerate(head.split("(")[1].split(",")):
            if part.split()[0] == "ptr.u32":
                by_hand[i] = by_hand[i].view(np.uint32)
        by_python = [v.copy() if isinstance(v, np.ndarray) else v for v in values]
        options = ["--profile", profile]
        expected = ptosim.run_file(EXAMPLES / f"{file}.pto", hand, names, by_hand, grid, block, options)
        got = ptosim.run(kernel, by_python, grid, block, options)
        for a, b in zip(by_hand, by_python):
            if isinstance(a, np.ndarray):
                assert np.allclose(a.view(b.dtype), b, rtol=tolerance, atol=tolerance), kernel_name
        ratio = got["cycles"] / expected["cycles"]
        print(f"{kernel_name:18} {profile:10} hand {expected['cycles']:6} python {got['cycles']:6} {ratio:6.3f}")
        assert ratio <= 1.2, ptosim.compiled(kernel, values).asm
