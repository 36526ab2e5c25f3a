# SPDX-License-Identifier: Apache-2.0
"""out[c][r] = in[r][c] through a padded tile in scratchpad. Compare transpose_padded in ../transpose.

Block 32x8, grid ceil(cols/32) x ceil(rows/32).
"""
import numpy as np

import pypto as pto

TILE, STEP = 32, 8
PITCH = TILE + 1  # a column of the tile then lies in different banks


@pto.kernel
def transpose(src, out, rows, cols):
    tile = pto.shared(TILE * PITCH)
    tx, ty = pto.get_local_id(0), pto.get_local_id(1)
    col0, row0 = pto.get_block_id(0) * TILE, pto.get_block_id(1) * TILE
    if col0 + tx < cols:
        for r in range(ty, TILE, STEP):
            if row0 + r >= rows:
                break
            pto.store(tile + (r * PITCH + tx), pto.load(src + ((row0 + r) * cols + (col0 + tx))))
    pto.barrier_block()
    if row0 + tx < rows:
        for r in range(ty, TILE, STEP):
            if col0 + r >= cols:
                break
            pto.store(out + ((col0 + r) * rows + (row0 + tx)), pto.load(tile + (tx * PITCH + r)))


def main():
    x = np.random.default_rng(6).random((70, 45), dtype=np.float32)
    d_x, d_y = pto.Tensor.from_numpy(x), pto.alloc_tensor(x.nbytes)
    pto.launch(transpose, grid=(2, 3, 1), block=(32, 8, 1), args=(d_x, d_y, 70, 45))
    assert (d_y.numpy(np.float32, (45, 70)) == x.T).all()
    print("transpose passed")


if __name__ == "__main__":
    main()
