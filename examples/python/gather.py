# SPDX-License-Identifier: Apache-2.0
"""Rows of a table by index, a warp a row. Compare gather_coalesced in ../gather."""
import numpy as np

import pypto as pto


@pto.kernel
def gather(table, index, out, count, cols):
    lane = pto.get_lane_id()
    for row in range(pto.get_global_id() // 32, count, pto.get_global_size() // 32):
        source = table + pto.load(index + row) * cols
        target = out + row * cols
        for c in range(lane, cols, 32):
            pto.store(target + c, pto.load(source + c))


def main():
    rng = np.random.default_rng(8)
    table = rng.random((30, 70), dtype=np.float32)
    index = rng.integers(0, 30, 25).astype(np.int32)
    d_out = pto.alloc_tensor(25 * 70 * 4)
    args = (pto.Tensor.from_numpy(table), pto.Tensor.from_numpy(index), d_out, 25, 70)
    pto.launch(gather, grid=(2, 1, 1), block=(128, 1, 1), args=args)
    assert (d_out.numpy(np.float32, (25, 70)) == table[index]).all()
    print("gather passed")


if __name__ == "__main__":
    main()
