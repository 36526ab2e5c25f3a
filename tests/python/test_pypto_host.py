# SPDX-License-Identifier: Apache-2.0
"""pypto's host side: devices, tensors, copies, launches, streams, their errors."""

import array
import os
import threading
import time

import numpy as np
import pytest
from host_kernels import ONE, SPIN, SPIN_TEXT, WILD, run_script, sim_device

import pypto as pto

AXPY = pto.assemble(
    """
.kernel axpy(ptr.f32 x, ptr.f32 y, f32 a, u32 n)
    mov.u32    r0, %gid.x
    cmp.ge.u32 p0, r0, n
@p0 exit
    load.f32   r1, hbm[x + r0*4]
    load.f32   r2, hbm[y + r0*4]
    fma.f32    r2, r1, a, r2
    store.f32  hbm[y + r0*4], r2
    exit
.end
"""
)
FOREVER = 0xFFFFFFFF


def word(tensor: pto.Tensor) -> int:
    return int(tensor.numpy(np.uint32)[0])


# ---------------------------------------------------------------- launches


@pytest.mark.parametrize("name", ["sim", "sim:ascend950", "emulated:reference"])
def test_launch_computes_and_copies_wait(name):
    with pto.device(name) as device:
        assert pto.current_device() is device
        x = np.arange(1000, dtype=np.float32)
        d_x = pto.Tensor.from_numpy(x)
        d_y = pto.alloc_tensor(4000)
        first = pto.launch(AXPY, grid=(4, 1, 1), block=(256, 1, 1), args=(d_x, d_y, 2.0, 1000))
        pto.launch(AXPY, grid=4, args=(d_x, d_y, 0.5, 1000))
        y = np.empty(1000, np.float32)
        pto.memcpy_d2h(y, d_y)
        assert (y == 2.5 * x).all()
        assert first.is_done and first.status == "completed"
        assert (first.cycles > 0) == device.is_emulated
        assert first.warp_instructions > 0
    assert pto.current_device().name == "sim"


def test_launch_defaults_and_shapes():
    count = pto.assemble(
        """
.kernel count(ptr.u32 x)
    atom.add.u32 _, hbm[x], 1
    exit
.end
"""
    )
    d = pto.alloc_tensor(4, dtype=pto.u32)
    pto.launch(count, args=(d,))
    assert word(d) == 256
    pto.launch(count, grid=(2, 3), block=(4, 2, 2), args=(d,))
    assert word(d) == 256 + 6 * 16


def test_timeline_and_counters_of_a_timed_launch():
    d = pto.alloc_tensor(4000)
    launch = pto.launch(AXPY, grid=4, args=(d, d, 1.0, 1000), timeline=True)
    timeline = launch.timeline()
    assert timeline[0].cycle == 0
    load = next(e for e in timeline if e.inst == "LOAD")
    assert load.lane == "0-255" and load.warp == "0-7" and load.unit == "M" and load.end > load.cycle
    assert load.text == "load.f32 r1, hbm[x + r0*4]"
    assert len(timeline.to_dict()["cycle"]) == len(timeline)
    assert "load.f32" in str(timeline)
    counters = launch.counters()
    assert counters["cycles"] == launch.cycles
    assert sum(row["issues"] for row in counters["instructions"]) == counters["warp_instructions"]
    assert pto.launch(AXPY, args=(d, d, 1.0, 1)).timeline() == []


def test_timeline_as_a_table():
    pytest.importorskip("pandas")
    d = pto.alloc_tensor(4)
    frame = pto.launch(SPIN, **ONE, args=(d, 3), timeline=True).timeline().to_pandas()
    assert list(frame["inst"])[:2] == ["MOV", "ADD"]


def test_schedules_agree():
    results = []
    for schedule in ["", "lockstep", "greedy", "random:3"]:
        x, y = pto.Tensor.from_numpy(np.ones(64, np.float32)), pto.alloc_tensor(256)
        pto.launch(AXPY, block=64, args=(x, y, 3.0, 64), schedule=schedule)
        results.append(y.numpy().tobytes())
    assert len(set(results)) == 1


def test_noise_is_seeded():
    def cycles(**options):
        device = pto.device("emulated:reference", **options)
        with device:
            d = pto.alloc_tensor(4)
            return [pto.launch(SPIN, **ONE, args=(d, 10)).cycles for _ in range(5)]

    exact = cycles()
    assert len(set(exact)) <= 2  # the first finds L2 cold
    noisy = cycles(noise=0.05, seed=7)
    assert noisy != exact and all(abs(a / b - 1) < 0.5 for a, b in zip(noisy, exact))


def test_print_reaches_stdout(capsys):
    show = pto.assemble('.kernel show(u32 n)\n    print "n is %u", n\n    exit\n.end\n')
    pto.launch(show, **ONE, args=(7,))
    pto.sync()
    assert "n is 7" in capsys.readouterr().out
    pto.sync()
    assert capsys.readouterr().out == ""


# ---------------------------------------------------------------- arrays


class OnlyDlpack:
    """Speaks DLPack and nothing else."""

    def __init__(self, values):
        self._values = values

    def __dlpack__(self, stream=None):
        return self._values.__dlpack__()

    def __dlpack_device__(self):
        return self._values.__dlpack_device__()


@pytest.mark.parametrize(
    "values",
    [
        np.arange(6, dtype=np.int32).reshape(2, 3),
        np.arange(6, dtype=np.float16),
        np.arange(24, dtype=np.float32).reshape(2, 3, 4)[:, :, ::2],
        np.asfortranarray(np.arange(6, dtype=np.int64).reshape(2, 3)),
        np.array([True, False]),
        np.float32(3.5),
        np.empty((0, 4), np.float32),
    ],
    ids=["2d", "f16", "strided", "fortran", "bool", "scalar", "empty"],
)
def test_from_numpy_round_trip(values):
    tensor = pto.Tensor.from_numpy(values)
    back = tensor.numpy()
    assert back.shape == np.shape(values)
    assert (back == np.asarray(values)).all()
    assert tensor.nbytes == np.asarray(values).nbytes


def test_everything_with_a_buffer_is_an_array():
    assert pto.Tensor.from_numpy(array.array("i", [1, 2, 3])).numpy().tolist() == [1, 2, 3]
    assert pto.Tensor.from_numpy(b"\x01\x02").dtype is pto.u8
    dlpack = pto.Tensor.from_numpy(OnlyDlpack(np.arange(4, dtype=np.float32)))
    assert dlpack.numpy().tolist() == [0, 1, 2, 3]
    d = pto.alloc_tensor(8)
    target = bytearray(8)
    pto.memcpy_h2d(d, b"12345678")
    pto.memcpy_d2h(target, d)
    assert target == b"12345678"
    target = array.array("f", [0, 0])
    pto.memcpy_h2d(d, array.array("f", [1.5, 2.5]))
    pto.memcpy_d2h(target, d)
    assert target.tolist() == [1.5, 2.5]


def test_copies_into_strided_arrays():
    d = pto.Tensor.from_numpy(np.arange(6, dtype=np.int32))
    wide = np.full((3, 4), -1, np.int32)
    pto.memcpy_d2h(wide[:, ::2], d)
    assert wide.tolist() == [[0, -1, 1, -1], [2, -1, 3, -1], [4, -1, 5, -1]]


def test_partial_copies():
    d = pto.alloc_tensor(16, dtype=np.int32)
    pto.memcpy_h2d(d, np.array([1, 2], np.int32), offset=8)
    pto.memcpy_h2d(d, np.array([9, 9, 9], np.int32), nbytes=4)
    assert d.numpy().tolist() == [9, 0, 1, 2]
    out = np.zeros(4, np.int32)
    pto.memcpy_d2h(out, d, offset=8, nbytes=8)
    assert out.tolist() == [1, 2, 0, 0]


def test_an_untyped_tensor_takes_the_type_that_fills_it():
    d = pto.alloc_tensor(16)
    assert d.dtype is None
    pto.memcpy_h2d(d, bytes(16))
    assert d.dtype is None
    pto.memcpy_h2d(d, np.array([1, 2, 3, 4], np.int32))
    assert d.dtype is pto.s32 and d.numpy().dtype == np.int32
    assert d.numpy(np.uint8, (4, 4)).shape == (4, 4)
    assert d.numpy(pto.u16).dtype == np.uint16


ERRORS = {
    "not an array": (lambda d: pto.Tensor.from_numpy("abc"), TypeError, "not a str"),
    "float64": (lambda d: pto.Tensor.from_numpy(np.zeros(3)), TypeError, "float64.*use float32"),
    "tensor as array": (lambda d: pto.memcpy_h2d(d, d), TypeError, "not a Tensor"),
    "array as tensor": (lambda d: pto.memcpy_h2d(np.zeros(1), d), TypeError, "expected a Tensor"),
    "too long": (lambda d: pto.memcpy_h2d(d, bytes(65)), pto.CopySizeError, "65 bytes.*64"),
    "too short": (lambda d: pto.memcpy_d2h(np.zeros(3, "f4"), d), pto.CopySizeError, "12 bytes.*64"),
    "outside": (lambda d: pto.memcpy_h2d(d, bytes(8), offset=60), pto.CopySizeError, "8 bytes from offset 60.*at most 4"),
    "negative": (lambda d: pto.memcpy_h2d(d, b"", offset=-1), ValueError, "must not be negative"),
    "read-only": (lambda d: pto.memcpy_d2h(bytes(64), d), TypeError, "read-only"),
    "size": (lambda d: pto.alloc_tensor("64"), TypeError, "number of bytes"),
    "negative size": (lambda d: pto.alloc_tensor(-1), ValueError, "-1 bytes"),
    "huge": (lambda d: pto.alloc_tensor(1 << 50), pto.AllocationError, "1125899906842624 bytes"),
    "odd": (lambda d: pto.alloc_tensor(6, dtype=pto.f32), ValueError, "6 bytes.*f32"),
    "shape": (lambda d: pto.alloc_tensor(64, pto.f32, shape=(3, 5)), ValueError, "takes 60 bytes.*has 64"),
    "reshape": (lambda d: d.numpy(shape=(3, 5)), ValueError, "16 elements.*no shape"),
    "reading": (lambda d: pto.alloc_tensor(6).numpy(), ValueError, "6 bytes.*float32"),
    "no kernel": (lambda d: pto.launch(lambda x: x, args=(d,)), TypeError, "decorate"),
    "args": (lambda d: pto.launch(SPIN, args=d), TypeError, "expected a tuple"),
    "count": (lambda d: pto.launch(SPIN, args=(d,)), TypeError, r"takes 2 arguments \(x: pointer, rounds: u32\); 1 given"),
    "kind": (lambda d: pto.launch(SPIN, args=(1, 1)), TypeError, "argument x is of type int"),
    "array argument": (lambda d: pto.launch(SPIN, args=(np.zeros(1), 1)), TypeError, "Tensor.from_numpy"),
    "value": (lambda d: pto.launch(SPIN, args=(d, -1)), TypeError, "-1.*u32"),
    "fraction": (lambda d: pto.launch(SPIN, args=(d, 1.5)), TypeError, "1.5.*u32"),
    "grid": (lambda d: pto.launch(SPIN, grid=(1, 0), args=(d, 1)), ValueError, "from 1 to"),
    "extents": (lambda d: pto.launch(SPIN, grid=(1,) * 4, args=(d, 1)), ValueError, "4 extents"),
    "grid type": (lambda d: pto.launch(SPIN, grid="4", args=(d, 1)), TypeError, "expected an integer"),
    "block": (lambda d: pto.launch(SPIN, block=2048, args=(d, 1)), pto.LaunchError, "2048 lanes.*1024"),
    "checks": (lambda d: pto.launch(SPIN, args=(d, 1), checks="mam"), pto.InputError, "mem"),
    "schedule": (lambda d: pto.launch(SPIN, args=(d, 1), schedule="fast"), pto.InputError, "fast"),
    "timed schedule": (lambda d: pto.launch(SPIN, args=(d, 1), schedule="greedy", timed=True), pto.DeviceError, "leave one"),
    "device": (lambda d: pto.device("smi"), pto.DeviceUnavailableError, "did you mean 'sim'"),
    "profile": (lambda d: pto.device("emulated:refrence"), pto.DeviceUnavailableError, "refrence"),
    "noise": (lambda d: pto.device("sim", noise=0.1), pto.DeviceUnavailableError, "no noise"),
    "npu": (lambda d: pto.device("npu"), pto.DeviceUnavailableError, "npu"),
    "file": (lambda d: pto.load_kernel("/no/such.pto"), pto.InputError, "/no/such.pto"),
    "text": (lambda d: pto.assemble(".kernel k()\n    frob r1\n.end\n"), pto.InputError, r"<text>:2:5: error"),
    "kernel": (lambda d: pto.assemble(SPIN_TEXT, "spun"), pto.UnknownKernelError, "spin"),
    "machine": (lambda d: pto.Machine("x"), pto.InputError, "x"),
    "figure": (lambda d: pto.Machine().with_figures("cors=1"), pto.InputError, "cores"),
}  # fmt: skip


@pytest.mark.parametrize("case", ERRORS)
def test_errors(case):
    call, kind, pattern = ERRORS[case]
    with pytest.raises(kind, match=f"(?s){pattern}"):
        call(pto.alloc_tensor(64, name="x"))


def test_errors_carry_numbers():
    d = pto.alloc_tensor(64)
    with pytest.raises(pto.CopySizeError) as caught:
        pto.memcpy_h2d(d, bytes(8), offset=60)
    assert (caught.value.tensor_nbytes, caught.value.offset, caught.value.copy_nbytes) == (64, 60, 8)
    with pytest.raises(pto.LaunchError) as caught:
        pto.launch(SPIN, block=4096, args=(d, 1))
    assert caught.value.kind == "block_size"
    d.free()
    for use in (d.free, d.numpy, d.wait, lambda: pto.launch(SPIN, args=(d, 1))):
        with pytest.raises(pto.FreedTensorError, match="freed by test_pypto_host.py:") as caught:
            use()
        assert caught.value.nbytes == 64


def test_tensors_of_two_devices_do_not_mix():
    a = pto.alloc_tensor(4000)
    b = pto.alloc_tensor(4000, device=pto.device("emulated:reference"))
    with pytest.raises(pto.WrongDeviceError, match="copy it there"):
        pto.launch(AXPY, args=(a, b, 1.0, 1))
    with pytest.raises(pto.WrongDeviceError):
        pto.launch(SPIN, args=(b, 1), stream=a.device.stream())


def test_kernel_error_says_who_and_where():
    d = pto.alloc_tensor(64, name="small")
    pto.launch(WILD, block=64, args=(d,))
    with pytest.raises(pto.KernelError, match="(?s)out of bounds.*past the end.*launched at test_pypto_host.py:") as caught:
        d.numpy()
    error = caught.value
    assert (error.kernel, error.status, error.kind) == ("wild", "fault", "out of bounds")
    assert (error.place, error.line, error.block, error.warp, error.lane) == ("wild.pto:4", 4, 0, 0, 0)
    assert error.instruction == "store.u32 hbm[x + r0*4], r0"
    assert error.address == d.address + 4000000
    assert error.trap_code is None and error.assertion is None
    d.numpy()  # told once


def test_kernel_error_comes_from_every_wait():
    d = pto.alloc_tensor(4)
    stream = pto.Stream()
    waits = [
        lambda launch: pto.sync(),
        lambda launch: launch.wait(),
        lambda launch: stream.sync(),
        lambda launch: stream.record().wait(),
        lambda launch: d.wait(),
        lambda launch: pto.memcpy_h2d(d, bytes(4)),
    ]
    for wait in waits:
        launch = pto.launch(WILD, **ONE, args=(d,), stream=stream)
        with pytest.raises(pto.KernelError):
            wait(launch)
        assert launch.status == "fault"


def test_limits():
    d = pto.alloc_tensor(4)
    with pytest.raises(pto.KernelError, match="stopped at its limit") as caught:
        pto.launch(SPIN, **ONE, args=(d, FOREVER), max_instructions=1000).wait()
    assert caught.value.status == "limit"
    with pytest.raises(pto.KernelError, match="limit"):
        pto.launch(SPIN, **ONE, args=(d, FOREVER), timed=True, max_cycles=1000).wait()


@pytest.mark.parametrize("profile", ["reference", "ascend950"])
@pytest.mark.parametrize("mode", [{}, {"timed": True}, {"schedule": "lockstep"}, {"checks": "mem"}], ids=str)
def test_what_ends_with_its_limit_has_completed(profile, mode):
    device = pto.device(f"sim:{profile}")
    d = pto.alloc_tensor(4, device=device)

    def run(**limits):
        launch = pto.launch(SPIN, **ONE, args=(d, 5), **mode, **limits)
        launch.wait()
        return launch

    run()  # the next ones find the device's caches warm
    free = run()
    limits = {"max_instructions": free.warp_instructions}
    if mode.get("timed"):
        limits["max_cycles"] = int(free.cycles)
    for name, least in limits.items():
        for limit in (least, least + 1):
            assert run(**{name: limit}).status == "completed"
        with pytest.raises(pto.KernelError) as caught:
            run(**{name: least - 1})
        assert caught.value.status == "limit"


@pytest.mark.parametrize("written", [">f4", ">i4", ">u2", ">f2", ">i8"])
def test_the_other_byte_order_is_told_with_the_way_out(written):
    native = np.dtype(written).newbyteorder("=")
    x = np.arange(3).astype(written)
    with pytest.raises(TypeError, match="in the other order") as caught:
        pto.Tensor.from_numpy(x)
    assert f"'{native.str}'" in str(caught.value) and "has no type" not in str(caught.value)
    assert (pto.Tensor.from_numpy(x.astype(native.str)).numpy() == np.arange(3)).all()
    with pytest.raises(TypeError, match="in the other order"):
        pto.alloc_tensor(8, np.dtype(written))


# ---------------------------------------------------------------- order


def test_streams_keep_the_order_of_shared_tensors():
    d = pto.alloc_tensor(4)
    streams = [pto.Stream() for _ in range(3)]
    for i in range(30):
        pto.launch(SPIN, **ONE, args=(d, 3000 if i % 3 == 0 else 1), stream=streams[i % 3])
    assert word(d) == 30


def test_events():
    a, b = pto.alloc_tensor(4), pto.alloc_tensor(4)
    first, second = pto.Stream(), pto.Stream()
    slow = pto.launch(SPIN, **ONE, args=(a, 200_000), stream=first)
    event = first.record()
    second.wait(event)
    pto.launch(SPIN, **ONE, args=(b, 1), stream=second).wait()
    assert slow.is_done and event.is_done
    first.sync()
    assert first.is_idle and "Event done" in repr(event)


def test_launch_does_not_wait():
    d = pto.alloc_tensor(4)
    launch = pto.launch(SPIN, **ONE, args=(d, FOREVER))
    assert not launch.is_done and "running" in repr(launch)
    d.device.interrupt()
    with pytest.raises(pto.LaunchInterrupted):
        launch.wait()
    assert launch.status == "interrupted" and word(d) == 0


def test_python_runs_while_another_thread_waits():
    d = pto.alloc_tensor(4)
    pto.launch(SPIN, **ONE, args=(d, FOREVER))
    waiter = threading.Thread(target=pto.sync)
    waiter.start()
    time.sleep(0.05)
    assert waiter.is_alive()  # it waits without the interpreter's lock, else this would not run
    d.device.interrupt()
    waiter.join(timeout=20)
    assert not waiter.is_alive()


def test_many_threads():
    shared = pto.alloc_tensor(4)
    wrong = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        stream = pto.Stream()
        try:
            for _ in range(15):
                with pto.Tensor(4) as mine:
                    count = int(rng.integers(1, 5))
                    for _ in range(count):
                        pto.launch(SPIN, **ONE, args=(mine, int(rng.integers(1, 50))), stream=stream)
                    if word(mine) != count:
                        wrong.append(seed)
                dropped = pto.alloc_tensor(4)
                pto.launch(SPIN, **ONE, args=(dropped, 50))
                del dropped
                pto.launch(SPIN, **ONE, args=(shared, 1), stream=stream)
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == [] and word(shared) == 90


# ---------------------------------------------------------------- the rest


def test_machines():
    machine = pto.Machine("reference").with_figures("cores=3", "latency.FMA.latency=9")
    assert machine.cores == 3 and pto.Machine().cores != 3
    assert machine != pto.Machine() and machine == pto.Machine.from_json(machine.to_json())
    assert set(pto.machine_names()) >= {"reference", "ascend950"}
    device = pto.device("emulated:reference", profile="reference")
    assert device.machine.name == "reference"
    assert pto.device("sim", profile=machine).machine.cores == 3


def test_devices_are_shared_and_described():
    assert pto.device("sim") is pto.device("sim")
    assert pto.device("sim") is not pto.device("sim:ascend950")
    assert "emulated" in repr(pto.device("emulated:reference"))
    names = [name for name, *_ in pto.devices()]
    assert "sim" in names and "npu" in names


def test_kernels_from_files(tmp_path):
    AXPY.save(tmp_path / "axpy.ptobj")
    again = pto.load_kernel(tmp_path / "axpy.ptobj", "axpy")
    assert again.object == AXPY.object and "fma.f32" in again.asm
    (tmp_path / "axpy.pto").write_text(again.asm)
    assert pto.load_kernel(tmp_path / "axpy.pto").registers == AXPY.registers


def test_another_distribution_of_the_name_is_refused(tmp_path):
    info = tmp_path / "pypto-9.9.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: pypto\nVersion: 9.9\n")
    (info / "RECORD").write_text("pypto/__init__.py,,\n")
    env = dict(os.environ, PYTHONPATH=os.environ["PYTHONPATH"] + os.pathsep + str(tmp_path))
    done = run_script("", env=env)
    assert done.returncode == 1
    assert "another distribution named pypto is installed: version 9.9" in done.stderr
    assert "pip uninstall pypto" in done.stderr


def test_everything_public_is_documented():
    import inspect

    undocumented = []
    for name, value in vars(pto).items():
        if name.startswith("_") or not getattr(value, "__module__", "").startswith("pypto"):
            continue
        if not inspect.getdoc(value):
            undocumented.append(name)
        if inspect.isclass(value):
            for member, item in vars(value).items():
                if not member.startswith("_") and callable(item) and not inspect.getdoc(item):
                    undocumented.append(f"{name}.{member}")
    assert undocumented == []


def test_host_names_hide_no_instruction():
    from pypto import instructions

    hidden = [name for name, item in instructions.INSTRUCTIONS.items() if getattr(pto, name) is not item]
    assert hidden == []
