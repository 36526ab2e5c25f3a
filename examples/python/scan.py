# SPDX-License-Identifier: Apache-2.0
"""Inclusive prefix sum in one block: shuffles in a warp, scratchpad between warps. Compare ../scan."""
import numpy as np

import pypto as pto


@pto.func
def warp_scan(value, lane):
    for distance in (1, 2, 4, 8, 16):
        below = pto.shfl_up(value, distance)
        if lane >= distance:
            value += below
    return value


@pto.kernel
def block_scan(x, y, n):
    warp_sums = pto.shared(32, pto.s32)
    lane, warp, lanes = pto.get_lane_id(), pto.get_warp_id(), pto.get_block_size()
    last_warp = lanes // 32 - 1
    before = 0  # total of all elements before this round's
    i = pto.get_local_id()
    for base in range(0, n, lanes):
        value = 0  # lanes past the end take part with zero
        if i < n:
            value = pto.load(x + i)
        value = warp_scan(value, lane)
        if lane == 31:
            pto.store(warp_sums + warp, value)
        pto.barrier_block()
        if warp == 0:
            total = 0
            if lane <= last_warp:
                total = pto.load(warp_sums + lane)
            total = warp_scan(total, lane)
            if lane <= last_warp:
                pto.store(warp_sums + lane, total)
        pto.barrier_block()
        if warp > 0:
            value += pto.load(warp_sums + warp - 1)
        value += before
        if i < n:
            pto.store(y + i, value)
        before += pto.load(warp_sums + last_warp)
        pto.barrier_block()  # the next round overwrites the sums
        i += lanes


def main():
    x = np.random.default_rng(10).integers(-100, 100, 1000).astype(np.int32)
    d_x, d_y = pto.Tensor.from_numpy(x), pto.Tensor.from_numpy(np.zeros_like(x))
    pto.launch(block_scan, grid=(1, 1, 1), block=(256, 1, 1), args=(d_x, d_y, x.size))
    assert (d_y.numpy() == np.cumsum(x, dtype=np.int32)).all()
    print("block_scan passed")


if __name__ == "__main__":
    main()
