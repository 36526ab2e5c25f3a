# SPDX-License-Identifier: Apache-2.0
"""C = A*B of any size with the matrix unit: a tile of C a block, copies of the next slice while the
matrix unit works on this one. Compare matmul_mma_f32 in ../matmul.

Block 32, grid ceil(n/64) x ceil(m/64). DEPTH is the only difference between serial and overlapped.
"""
import numpy as np

import pypto as pto

TILE = 64


def make_matmul(depth):
    """The kernel with `depth` slices in flight."""

    @pto.kernel
    def matmul(a, b, c, m, n, k):
        row, col = pto.get_block_id(1) * TILE, pto.get_block_id(0) * TILE
        rows, cols = min(m - row, TILE), min(n - col, TILE)
        c_tile = pto.alloc_local(TILE * TILE)
        with pto.pipeline(depth=depth) as pl:
            with pl.stage("load"):
                a_tile = pto.alloc_local(TILE * TILE)
                b_tile = pto.alloc_local(TILE * TILE)
                some = min(k - pl.index, TILE)
                pto.async_load(a_tile, a + (row * k + pl.index), rows, some * 4, k * 4, TILE * 4)
                pto.async_load(b_tile, b + (pl.index * n + col), some, cols * 4, n * 4, TILE * 4)
            with pl.stage("multiply", after="load"):
                pto.mma(c_tile, a_tile, b_tile, rows, cols, min(k - pl.index, TILE), TILE, TILE, TILE)
            pl.run(range(0, k, TILE))
        done = pto.event()
        pto.async_store(c + (row * n + col), c_tile, rows, cols * 4, n * 4, TILE * 4, done)
        pto.wait(done)

    return matmul


matmul_serial = make_matmul(1)
matmul = make_matmul(2)


def main():
    rng = np.random.default_rng(11)
    m, n, k = 100, 70, 200
    a, b = rng.standard_normal((m, k)), rng.standard_normal((k, n))
    a, b = a.astype(np.float32), b.astype(np.float32)
    for kernel in (matmul_serial, matmul):
        d_c = pto.alloc_tensor(m * n * 4)
        args = (pto.Tensor.from_numpy(a), pto.Tensor.from_numpy(b), d_c, m, n, k)
        pto.launch(kernel, grid=(2, 2, 1), block=(32, 1, 1), args=args)
        assert np.allclose(d_c.numpy(np.float32, (m, n)), a @ b, rtol=1e-4, atol=1e-4)
    print("matmul, serial and overlapped, passed")


if __name__ == "__main__":
    main()
