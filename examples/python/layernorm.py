# SPDX-License-Identifier: Apache-2.0
"""Layer normalisation, a block a row, with a block-wide sum as a function. Compare ../layernorm."""
import numpy as np

import pypto as pto


@pto.func
def block_total(value, sums):
    """The sum over the block, in every lane; `sums` has room for one value a warp."""
    value = pto.reduce_add(value)
    lane = pto.get_lane_id()
    if lane == 0:
        pto.store(sums + pto.get_warp_id(), value)
    pto.barrier_block()
    part = 0.0
    if lane < (pto.get_block_size() + 31) // 32:
        part = pto.load(sums + lane)
    pto.barrier_block()  # the next sum overwrites these
    return pto.reduce_add(part)


@pto.kernel
def layernorm(x, gamma, beta, y, cols, eps):
    sums = pto.shared(32)
    lane = pto.get_local_id()
    lanes = pto.get_block_size()
    x += pto.get_block_id() * cols
    y += pto.get_block_id() * cols
    total = 0.0
    for i in range(lane, cols, lanes):
        total += pto.load(x + i)
    mean = block_total(total, sums) / cols
    squares = 0.0
    for i in range(lane, cols, lanes):
        off = pto.load(x + i) - mean
        squares = pto.fma(off, off, squares)
    variance = block_total(squares, sums) / cols
    scale = 1.0 / pto.sqrt(variance + eps)
    for i in range(lane, cols, lanes):
        v = pto.load(x + i)
        g = pto.load(gamma + i)
        b = pto.load(beta + i)
        pto.store(y + i, pto.fma((v - mean) * scale, g, b))


def main():
    rng = np.random.default_rng(4)
    x = rng.standard_normal((6, 300)).astype(np.float32)
    gamma, beta = (rng.standard_normal(300).astype(np.float32) for _ in range(2))
    tensors = [pto.Tensor.from_numpy(a) for a in (x, gamma, beta)]
    d_y = pto.alloc_tensor(x.nbytes)
    pto.launch(layernorm, grid=(6, 1, 1), block=(128, 1, 1), args=(*tensors, d_y, 300, 1e-5))
    mean, var = x.mean(axis=1, keepdims=True), x.var(axis=1, keepdims=True)
    expected = (x - mean) / np.sqrt(var + 1e-5) * gamma + beta
    assert np.allclose(d_y.numpy(np.float32, x.shape), expected, rtol=1e-4, atol=1e-5)
    print("layernorm passed")


if __name__ == "__main__":
    main()
