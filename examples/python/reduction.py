# SPDX-License-Identifier: Apache-2.0
"""Sums: of an array through scratchpad, of matrix rows by a warp. Compare ../reduction."""
import numpy as np

import pypto as pto


@pto.func
def block_tree(partial, lane, count):
    """Adds `count` values in scratchpad pairwise; the sum is the first."""
    while count > 1:
        pto.barrier_block()
        half = (count + 1) // 2
        if lane < count - half:
            pto.store(partial + lane, pto.load(partial + lane) + pto.load(partial + lane + half))
        count = half


@pto.kernel
def block_sum(x, sums, n):
    partial = pto.shared(1024)
    lane = pto.get_local_id()
    total = 0.0
    for i in range(pto.get_global_id(), n, pto.get_global_size()):
        total += pto.load(x + i)
    pto.store(partial + lane, total)
    block_tree(partial, lane, pto.get_block_size())
    if lane == 0:
        pto.store(sums + pto.get_block_id(), pto.load(partial))


@pto.kernel
def warp_sum(x, sums, rows, cols):
    row = pto.get_global_id() // 32
    if row >= rows:
        return
    lane = pto.get_lane_id()
    total = 0.0
    for i in range(row * cols + lane, row * cols + cols, 32):
        total += pto.load(x + i)
    total = pto.reduce_add(total)
    if lane == 0:
        pto.store(sums + row, total)


def main():
    rng = np.random.default_rng(2)
    x = rng.random((50, 77), dtype=np.float32)
    d_x, d_sums = pto.Tensor.from_numpy(x), pto.alloc_tensor(50 * 4)
    pto.launch(warp_sum, grid=(7, 1, 1), block=(256, 1, 1), args=(d_x, d_sums, 50, 77))
    assert np.allclose(d_sums.numpy(), x.sum(axis=1), rtol=1e-5)
    pto.launch(block_sum, grid=(1, 1, 1), block=(200, 1, 1), args=(d_x, d_sums, x.size))
    assert np.isclose(d_sums.numpy()[0], x.sum(), rtol=1e-5)
    print("warp_sum, block_sum passed")


if __name__ == "__main__":
    main()
