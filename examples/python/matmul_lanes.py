# SPDX-License-Identifier: Apache-2.0
"""C = A*B without the matrix unit: a block of 256 lanes makes a 64x64 tile of C, each lane a 4x4 piece in
registers. Compare matmul_lanes in ../matmul. Block 256, grid ceil(n/64) x ceil(m/64).
"""
import numpy as np

import pypto as pto

TILE = 64
SLICE = 16  # k of a slice
PITCH = TILE + 4  # of the slice of A, which lies transposed: [k][row]


@pto.func
def multiply_slice(sums, a_cell, b_cell):
    """sums += the 4x4 outer products of a slice; sums row by row."""
    for k in pto.static_range(4):
        a = pto.load(a_cell + k * PITCH, vector=4)
        b = pto.load(b_cell + k * TILE, vector=4)
        made = ()
        for i in pto.static_range(16):
            made = made + (pto.fma(a[i // 4], b[i % 4], sums[i]),)
        sums = made
    return sums


@pto.kernel
def matmul_lanes(a, b, c, m, n, k):
    a_slice = pto.tile(SLICE, PITCH)
    b_slice = pto.tile(SLICE, TILE)
    lane = pto.get_local_id()
    row0, col0 = pto.get_block_id(1) * TILE, pto.get_block_id(0) * TILE
    piece_row, piece_col = lane // 16 * 4, lane % 16 * 4
    # What this lane loads: of A column a_k of four rows, of B column b_col of four k.
    a_k, a_row = lane % 16, lane // 16
    b_col, b_k = lane % 64, lane // 64
    has_column = col0 + b_col < n
    sums = (0.0,) * 16
    for k0 in range(0, k, SLICE):
        # All loads first, then the stores: eight requests are under way at once.
        from_a, from_b = (), ()
        for i in pto.static_range(4):
            v = 0.0  # what does not exist is zero
            if row0 + a_row + 16 * i < m and k0 + a_k < k:
                v = pto.load(a + ((row0 + a_row + 16 * i) * k + (k0 + a_k)))
            from_a = from_a + (v,)
        for i in pto.static_range(4):
            v = 0.0
            if k0 + b_k + 4 * i < k and has_column:
                v = pto.load(b + ((k0 + b_k + 4 * i) * n + (col0 + b_col)))
            from_b = from_b + (v,)
        for i in pto.static_range(4):
            pto.store(a_slice + (a_k * PITCH + a_row + 16 * i), from_a[i])
            pto.store(b_slice + ((b_k + 4 * i) * TILE + b_col), from_b[i])
        pto.barrier_block()
        for j in range(0, SLICE, 4):
            sums = multiply_slice(sums, a_slice + (j * PITCH + piece_row), b_slice + (j * TILE + piece_col))
        pto.barrier_block()  # the next slice overwrites this one
    for i in pto.static_range(4):
        row = row0 + piece_row + i
        if row < m:
            for j in pto.static_range(4):
                col = col0 + piece_col + j
                if col < n:
                    pto.store(c + (row * n + col), sums[4 * i + j])


def main():
    rng = np.random.default_rng(12)
    m, n, k = 100, 70, 50
    a, b = rng.standard_normal((m, k)).astype(np.float32), rng.standard_normal((k, n)).astype(np.float32)
    d_c = pto.alloc_tensor(m * n * 4)
    args = (pto.Tensor.from_numpy(a), pto.Tensor.from_numpy(b), d_c, m, n, k)
    pto.launch(matmul_lanes, grid=(2, 2, 1), block=(256, 1, 1), args=args)
    assert np.allclose(d_c.numpy(np.float32, (m, n)), a @ b, rtol=1e-4, atol=1e-4)
    print("matmul_lanes passed")


if __name__ == "__main__":
    main()
