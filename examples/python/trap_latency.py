# SPDX-License-Identifier: Apache-2.0
"""A trap: latencies that only the simulator has.

On the textbook machine (`reference`) LOAD takes 4 cycles and FMA 8. Somebody who reads that fills the gaps
with NOPs, so that "the pipeline is aligned": in the simulator it costs nothing, since the lanes would have
waited anyway. The machine as measured (`reference-fused`) is faster, and does every NOP: the tuned
kernel is the slower one. Measure, or calibrate a profile, before tuning by cycles.
"""
import numpy as np

import pypto as pto


@pto.kernel
def plain(a, b, o):
    i = pto.get_global_id()
    x = pto.load(a + i)
    y = pto.load(b + i)
    pto.fma(o + i, x, 2.0, y)


@pto.kernel
def aligned(a, b, o):
    i = pto.get_global_id()
    x = pto.load(a + i)
    y = pto.load(b + i)
    pto.nop(2)  # "LOAD takes 4 cycles"
    z = pto.fma(x, 2.0, y)
    pto.nop(7)  # "FMA takes 8 cycles"
    pto.store(o + i, z)


def cycles(kernel, profile):
    """Cycles of one block on a machine."""
    with pto.device("sim", profile=profile):
        a = pto.Tensor.from_numpy(np.ones(256, np.float32))
        o = pto.alloc_tensor(256 * 4)
        launch = pto.launch(kernel, grid=(1, 1, 1), block=(256, 1, 1), args=(a, a, o), timed=True)
        launch.wait()
        assert (o.numpy() == 3).all()
        return launch.cycles


for profile in ("reference", "reference-fused"):
    counts = [int(cycles(kernel, profile)) for kernel in (plain, aligned)]
    print(f"{profile:16} plain {counts[0]} cycles, aligned with NOPs {counts[1]} cycles")
    if profile == "reference":
        assert counts[0] == counts[1], "in the textbook machine the NOPs are free"
    else:
        assert counts[0] < counts[1], "on the measured one they are not"
print("ok")
