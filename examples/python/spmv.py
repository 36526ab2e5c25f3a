# SPDX-License-Identifier: Apache-2.0
"""Sparse matrix (CSR) times vector: a row a lane, and a row a warp. Compare ../spmv."""
import numpy as np

import pypto as pto


@pto.kernel
def spmv_lane(values, columns, row_start, x, y, rows):
    row = pto.get_global_id()
    if row >= rows:
        return
    total = 0.0
    for k in range(pto.load(row_start + row), pto.load(row_start + row + 1)):
        column = pto.load(columns + k)
        total = pto.fma(pto.load(values + k), pto.load(x + column), total)
    pto.store(y + row, total)


@pto.kernel
def spmv_warp(values, columns, row_start, x, y, rows):
    row = pto.get_global_id() // 32
    if row >= rows:
        return
    lane = pto.get_lane_id()
    begin, end = pto.load(row_start + row), pto.load(row_start + row + 1)
    total = 0.0
    for k in range(begin + lane, end, 32):
        column = pto.load(columns + k)
        total = pto.fma(pto.load(values + k), pto.load(x + column), total)
    total = pto.reduce_add(total)
    if lane == 0:
        pto.store(y + row, total)


def main():
    rng = np.random.default_rng(7)
    dense = rng.random((40, 60), dtype=np.float32) * (rng.random((40, 60)) < 0.2)
    row_start = np.concatenate([[0], np.cumsum((dense != 0).sum(axis=1))]).astype(np.int32)
    columns = np.nonzero(dense)[1].astype(np.int32)
    x = rng.random(60, dtype=np.float32)
    tensors = [pto.Tensor.from_numpy(a) for a in (dense[dense != 0], columns, row_start, x)]
    for kernel, lanes in ((spmv_lane, 40), (spmv_warp, 40 * 32)):
        d_y = pto.alloc_tensor(40 * 4)
        grid = ((lanes + 127) // 128, 1, 1)
        pto.launch(kernel, grid=grid, block=(128, 1, 1), args=(*tensors, d_y, 40))
        assert np.allclose(d_y.numpy(), dense @ x, rtol=1e-5)
        print(f"{kernel.__name__} passed")


if __name__ == "__main__":
    main()
