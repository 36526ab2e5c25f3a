# SPDX-License-Identifier: Apache-2.0
"""pypto: write PTO kernels in Python, launch them, step them and time them.

    import numpy as np
    import pypto as pto

    @pto.kernel
    def vector_add(a, b, o, n):
        i = pto.get_global_id()
        if i < n:
            pto.fma(o + i, pto.load(a + i), 1.0, pto.load(b + i))

    a = pto.Tensor.from_numpy(np.arange(1024, dtype=np.float32))
    o = pto.alloc_tensor(1024 * 4)
    pto.launch(vector_add, grid=(4, 1, 1), block=(256, 1, 1), args=(a, a, o, 1024))
    print(o.numpy())

Host side: `Tensor`, `alloc_tensor`, `memcpy_h2d`, `memcpy_d2h`, `launch`, `sync`, `device`, `Stream`.
Kernel side: `kernel`, `func`, `pipeline` and a function for each instruction.
`pypto.debug` steps through kernels and looks inside.
"""
from __future__ import annotations

from pypto.installed import check_installation as _check_installation

_check_installation()

from pypto.language import *  # noqa: E402, F403
from pypto._pypto import __version__  # noqa: E402
from pypto.device import (  # noqa: E402
    Device,
    Event,
    Stream,
    current_device,
    device,
    devices,
    sync,
)
from pypto.errors import (  # noqa: E402
    AllocationError,
    CompileError,
    CopySizeError,
    DebugError,
    DeviceError,
    DeviceUnavailableError,
    FreedTensorError,
    InputError,
    InternalError,
    KernelError,
    LaunchError,
    LaunchInterrupted,
    PtoError,
    PtoWarning,
    UnknownKernelError,
    WrongDeviceError,
)
from pypto.findings import Finding, Site  # noqa: E402
from pypto.launch import Launch, launch  # noqa: E402
from pypto.machine import Machine, machine_names  # noqa: E402
from pypto.profile import CycleBreakdown, Profile, profile_on_npu  # noqa: E402
from pypto.programs import ObjectKernel, assemble, load_kernel  # noqa: E402
from pypto.tensor import Tensor, alloc_tensor, memcpy_d2h, memcpy_h2d  # noqa: E402
from pypto.timeline import Timeline, TimelineEntry  # noqa: E402
