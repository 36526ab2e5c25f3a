# SPDX-License-Identifier: Apache-2.0
"""A trap: a tensor dropped while its kernel runs.

Launches are asynchronous: `launch` returns at once, and the last reference to a tensor may go while the
kernel still writes to it. Elsewhere that is a crash, or somebody else's data. Here a launch holds its
tensors: the memory is given back when the last user is done.
"""
import gc

import numpy as np

import pypto as pto


@pto.kernel
def count_up(x, rounds):
    i = pto.get_global_id()
    value = pto.load(x + i)
    for _ in range(rounds):
        value += 1
    pto.store(x + i, value)


def start(n):
    """Launches on a tensor that nobody holds when it returns."""
    d_x = pto.Tensor.from_numpy(np.zeros(n, np.float32))
    pto.launch(count_up, grid=(n // 256, 1, 1), block=(256, 1, 1), args=(d_x, 2000))


for _ in range(4):
    start(1024)
gc.collect()
d_y = pto.Tensor.from_numpy(np.zeros(1024, np.float32))  # may not get memory that is still in use
pto.launch(count_up, grid=(4, 1, 1), block=(256, 1, 1), args=(d_y, 10))
pto.sync()
assert (d_y.numpy() == 10).all()
print("five launches, four tensors dropped while in use: all safe")

with pto.Tensor(1024 * 4) as d_t:  # leaving the block waits for the kernels that use the tensor
    pto.memcpy_h2d(d_t, np.zeros(1024, np.float32))
    pto.launch(count_up, grid=(4, 1, 1), block=(256, 1, 1), args=(d_t, 1000))
print("ok")
