# SPDX-License-Identifier: Apache-2.0
"""A trap: a copy that is read before its wait.

`async_load` starts a copy and returns. Without `wait` the lanes read what lay in the scratchpad before. A
simulator that copies at once hides the mistake, and on the hardware it depends on how busy the copy
engine is. The race check reports it every time, with the place of the copy and of the read.
"""
import numpy as np

import pypto as pto
import pypto.debug as dbg


@pto.kernel
def double_wrong(x, y):
    i = pto.get_local_id()
    t = pto.alloc_local(256)
    pto.async_load(t, x, 256 * 4)
    pto.store(y + i, pto.load(t + i) * 2)  # the copy may still be on its way


@pto.kernel
def double_right(x, y):
    i = pto.get_local_id()
    t = pto.alloc_local(256)
    done = pto.event()
    pto.async_load(t, x, 256 * 4, done)
    pto.wait(done)  # warp 0 has started the copy, and knows that it is over;
    pto.barrier_block()  # now the other warps know it too
    pto.store(y + i, pto.load(t + i) * 2)


x = np.arange(256, dtype=np.float32)
d_x, d_y = pto.Tensor.from_numpy(x), pto.alloc_tensor(256 * 4)

right = dbg.debug_kernel(double_right, args=(d_x, d_y), checks="all")
right.continue_()
assert right.checks() == []
assert (d_y.numpy() == 2 * x).all()

wrong = dbg.debug_kernel(double_wrong, args=(d_x, d_y), checks="all")
wrong.continue_()
found = wrong.checks()
assert found, "the check must report the read"
print(found[0])
print("ok")
