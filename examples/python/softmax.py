# SPDX-License-Identifier: Apache-2.0
"""Softmax of each row, one warp a row. Compare softmax_warp in ../softmax/softmax.pto."""
import math

import numpy as np

import pypto as pto


@pto.kernel
def softmax(x, y, rows, cols):
    row = pto.get_global_id() // 32
    if row >= rows:
        return
    first = row * cols + pto.get_lane_id()
    end = row * cols + cols
    top = -math.inf
    for i in range(first, end, 32):
        top = max(top, pto.load(x + i))
    top = pto.reduce_max(top)
    total = 0.0
    for i in range(first, end, 32):
        e = pto.exp(pto.load(x + i) - top)
        total += e
        pto.store(y + i, e)
    scale = 1.0 / pto.reduce_add(total)
    for i in range(first, end, 32):
        pto.store(y + i, pto.load(y + i) * scale)


def main():
    x = np.random.default_rng(3).standard_normal((20, 100)).astype(np.float32)
    d_x, d_y = pto.Tensor.from_numpy(x), pto.alloc_tensor(x.nbytes)
    pto.launch(softmax, grid=(5, 1, 1), block=(128, 1, 1), args=(d_x, d_y, 20, 100))
    expected = np.exp(x - x.max(axis=1, keepdims=True))
    expected /= expected.sum(axis=1, keepdims=True)
    assert np.allclose(d_y.numpy(np.float32, x.shape), expected, rtol=1e-5)
    print("softmax passed")


if __name__ == "__main__":
    main()
