# SPDX-License-Identifier: Apache-2.0
"""z = x % y elementwise in a pitched matrix: Python's % floors. Compare ../floormod."""
import numpy as np

import pypto as pto


@pto.kernel
def floor_mod(x, y, z, rows, cols, pitch):
    column, row = pto.get_global_id(0), pto.get_global_id(1)
    if column >= cols or row >= rows:
        return
    at = row * pitch + column
    pto.store(z + at, pto.load(x + at) % pto.load(y + at))


def main():
    rng = np.random.default_rng(9)
    x = rng.integers(-1000, 1000, (20, 48)).astype(np.int32)
    y = rng.integers(1, 50, (20, 48)).astype(np.int32) * rng.choice([-1, 1], (20, 48)).astype(np.int32)
    d_z = pto.Tensor.from_numpy(np.zeros_like(x))
    args = (pto.Tensor.from_numpy(x), pto.Tensor.from_numpy(y), d_z, 20, 45, 48)
    pto.launch(floor_mod, grid=(2, 3, 1), block=(32, 8, 1), args=args)
    z = d_z.numpy(np.int32, x.shape)
    assert (z[:, :45] == (x % y)[:, :45]).all() and (z[:, 45:] == 0).all()
    print("floor_mod passed")


if __name__ == "__main__":
    main()
