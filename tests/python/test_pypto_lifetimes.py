# SPDX-License-Identifier: Apache-2.0
"""How long pypto's devices, tensors, streams and launches live: every order of their ends, exit, Ctrl-C."""

import gc
import itertools
import re

import numpy as np
import pytest
from host_kernels import ONE, SPIN, WILD, run_script, sim_device

import pypto as pto


def test_context_manager_waits_then_frees():
    with pto.Tensor(4) as d:
        launch = pto.launch(SPIN, **ONE, args=(d, 100_000), checks="mem")
    assert d.is_freed and launch.is_done
    assert launch.checks() == []
    with pytest.raises(ZeroDivisionError):
        with pto.Tensor(4) as d:
            pto.launch(SPIN, **ONE, args=(d, 1000))
            raise ZeroDivisionError
    assert d.is_freed
    with pto.Tensor(4) as d:
        d.free()  # twice would be an error


def test_failure_leaves_the_with():
    with pytest.raises(pto.KernelError):
        with pto.Tensor(4) as d:
            pto.launch(WILD, **ONE, args=(d,))
    assert d.is_freed


def test_dropping_a_tensor_while_a_kernel_runs():
    gc.collect()
    before = pto.current_device().allocated
    d = pto.alloc_tensor(1 << 16)
    pto.launch(SPIN, **ONE, args=(d, 200_000))
    del d
    gc.collect()
    assert pto.current_device().allocated == before
    pto.sync()


def test_early_free_is_a_finding_with_both_places():
    d = pto.alloc_tensor(4, name="d_x")
    launch = pto.launch(SPIN, **ONE, args=(d, 1), checks="mem")
    del d
    (finding,) = launch.checks()
    here = r"test_pypto_lifetimes\.py:\d+"
    assert finding.kind == "mem" and "sync" in finding.hint
    assert finding.here.instruction == "load.u32 r1, hbm[x]"
    pattern = rf"d_x \(4 bytes, allocated at {here}\) was freed at {here} while kernel spin \(launched at {here}\)"
    assert re.search(pattern, str(finding)), str(finding)


NAMES = ["device", "tensor", "stream", "launch"]


@pytest.mark.parametrize("order", list(itertools.permutations(NAMES)), ids="-".join)
def test_every_order_of_del(order):
    """Objects of a device of their own, dropped while the kernel runs."""
    device = pto.device("sim:ascend950")
    with device:
        tensor = pto.alloc_tensor(4)
        stream = device.stream()
        launch = pto.launch(SPIN, **ONE, args=(tensor, 5000), stream=stream)
        objects = {"device": device, "tensor": tensor, "stream": stream, "launch": launch}
    del device, tensor, stream, launch
    for name in order:
        del objects[name]
        gc.collect()
    pto.sync()


def test_raw_handles_in_every_order_of_del():
    """The module's own objects: there the device really ends with its last handle."""
    from pypto import _pypto
    from pypto.programs import program_of

    options = {"checks": "", "schedule": "", "timed": None, "timeline": False, "dynamic_l1": 0,
               "max_instructions": None, "max_cycles": None, "launched_by": ""}  # fmt: skip
    for order in itertools.permutations(range(4)):
        device = _pypto.Device("sim", "", None, 0.0, 0, 1)
        tensor = device.alloc(4, "", "")
        stream = device.make_stream()
        ticket = device.launch(program_of(SPIN), [1, 1, 1], [1, 1, 1], [(tensor, 0), (20_000, "u32")], stream, options)
        objects = {0: device, 1: tensor, 2: stream, 3: ticket}
        del device, tensor, stream, ticket
        for index in order:
            del objects[index]


EXITS = {
    "running": ("pto.launch(SPIN, **ONE, args=(pto.alloc_tensor(4), 300_000))", 0, ""),
    "kept": ("d = pto.alloc_tensor(4)\nl = pto.launch(SPIN, **ONE, args=(d, 300_000))\ns = pto.Stream()", 0, ""),
    "cycle": ("class A: pass\na = A(); a.a = a; a.d = pto.alloc_tensor(4)\nl = pto.launch(SPIN, **ONE, args=(a.d, 300_000))", 0, ""),
    "exception": ("d = pto.alloc_tensor(4)\npto.launch(SPIN, **ONE, args=(d, 300_000))\nraise ValueError('mine')", 1, "mine"),
    "failed": ("pto.launch(SPIN, args=(pto.alloc_tensor(0), 1))", 0, "KernelError of a launch that nobody waited for"),
    "thread": ("import threading\nd = pto.alloc_tensor(4)\npto.launch(SPIN, **ONE, args=(d, 500_000))\n"
               "threading.Thread(target=pto.sync, daemon=True).start()", 0, ""),
    "measurement": ("import sys, threading, time\nsys.modules['pypto.device']._EXIT_SECONDS = 0.2\n"
                    "spin = dict(ONE, args=(pto.alloc_tensor(4), 0xffffffff), device='emulated:reference')\n"
                    "threading.Thread(target=pto.profile_on_npu, args=(SPIN,), kwargs=spin, daemon=True).start()\n"
                    "time.sleep(0.3)", 0, ""),
    "sys.exit": ("import sys\nd = pto.alloc_tensor(4)\npto.launch(SPIN, **ONE, args=(d, 300_000))\nsys.exit(3)", 3, ""),
    "endless": ("import sys\nsys.modules['pypto.device']._EXIT_SECONDS = 0.2\npto.launch(SPIN, **ONE, args=(pto.alloc_tensor(4), 0xffffffff))",
                0, "ends while kernels run"),
}  # fmt: skip


@pytest.mark.parametrize("case", EXITS)
def test_interpreter_exit(case):
    text, status, message = EXITS[case]
    done = run_script(text)
    assert done.returncode == status, done.stderr
    if message:
        assert message in done.stderr
    else:
        assert done.stderr == ""


def test_ctrl_c_ends_a_wait_and_the_kernel():
    done = run_script(
        """
        import os, signal, threading
        d = pto.alloc_tensor(4)
        for wait in (pto.sync, d.numpy, lambda: launch.wait(), lambda: launch.status):
            launch = pto.launch(SPIN, **ONE, args=(d, 0xffffffff))
            threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            try:
                wait()
            except KeyboardInterrupt:
                print("interrupted")
        print(d.numpy(np.uint32)[0])
        """
    )
    assert done.stdout.split() == ["interrupted"] * 4 + ["0"], done.stdout + done.stderr
    assert done.returncode == 0
