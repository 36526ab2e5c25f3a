# SPDX-License-Identifier: Apache-2.0
"""Histogram of bytes: atomics in hbm, and in scratchpad first. Compare ../histogram."""
import numpy as np

import pypto as pto

BINS = 256


@pto.kernel
def histogram_global(x, bins, n):
    for i in range(pto.get_global_id(), n, pto.get_global_size()):
        pto.atomic_add(bins + pto.load(x + i), 1)


@pto.kernel
def histogram_shared(x, bins, n):
    counts = pto.shared(BINS, pto.u32)
    first, lanes = pto.get_local_id(), pto.get_block_size()
    for i in range(first, BINS, lanes):
        pto.store(counts + i, 0)
    pto.barrier_block()
    words = pto.bitcast(x, pto.u32)  # four bytes at a time
    for i in range(pto.get_global_id(), n // 4, pto.get_global_size()):
        word = pto.load(words + i)
        for byte in pto.static_range(4):
            pto.atomic_add(counts + (word >> (8 * byte) & 0xFF), 1)
    for i in range(n // 4 * 4 + pto.get_global_id(), n, pto.get_global_size()):
        pto.atomic_add(counts + pto.load(x + i), 1)
    pto.barrier_block()
    for i in range(first, BINS, lanes):
        count = pto.load(counts + i)
        if count != 0:  # empty bins cost no atomic
            pto.atomic_add(bins + i, count)


def main():
    x = np.random.default_rng(5).integers(0, 256, 9999).astype(np.uint8)
    for kernel in (histogram_global, histogram_shared):
        d_x, d_bins = pto.Tensor.from_numpy(x), pto.Tensor.from_numpy(np.zeros(BINS, np.uint32))
        pto.launch(kernel, grid=(4, 1, 1), block=(128, 1, 1), args=(d_x, d_bins, x.size))
        assert (d_bins.numpy() == np.bincount(x, minlength=BINS)).all()
        print(f"{kernel.__name__} passed")


if __name__ == "__main__":
    main()
