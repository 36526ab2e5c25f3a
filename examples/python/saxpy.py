# SPDX-License-Identifier: Apache-2.0
"""y = alpha*x + y: a grid-stride loop, and one with vectors of four. Compare ../saxpy/saxpy.pto."""
import numpy as np

import pypto as pto


@pto.kernel
def saxpy(x, y, alpha, n):
    for i in range(pto.get_global_id(), n, pto.get_global_size()):
        pto.store(y + i, pto.fma(alpha, pto.load(x + i), pto.load(y + i)))


@pto.kernel
def saxpy_x4(x, y, alpha, n):
    lane = pto.get_global_id()
    lanes = pto.get_global_size()
    for i in range(lane, n // 4, lanes):
        a = pto.load(x + i * 4, vector=4)
        b = pto.load(y + i * 4, vector=4)
        pto.store(y + i * 4, (pto.fma(alpha, a[0], b[0]), pto.fma(alpha, a[1], b[1]),
                              pto.fma(alpha, a[2], b[2]), pto.fma(alpha, a[3], b[3])))
    for i in range(n // 4 * 4 + lane, n, lanes):  # at most three elements are left
        pto.store(y + i, pto.fma(alpha, pto.load(x + i), pto.load(y + i)))


def main():
    rng = np.random.default_rng(1)
    n = 10_001
    x, y = (rng.standard_normal(n).astype(np.float32) for _ in range(2))
    for kernel in (saxpy, saxpy_x4):
        d_x, d_y = pto.Tensor.from_numpy(x), pto.Tensor.from_numpy(y)
        pto.launch(kernel, grid=(4, 1, 1), block=(256, 1, 1), args=(d_x, d_y, 2.5, n))
        got = d_y.numpy()
        assert np.allclose(got, np.float32(2.5) * x + y, rtol=1e-6, atol=1e-6)
        print(f"{kernel.__name__}: {n} elements passed")


if __name__ == "__main__":
    main()
