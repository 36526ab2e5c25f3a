# SPDX-License-Identifier: Apache-2.0
"""What users give by mistake: each is refused in the words of the function that they called."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pypto as pto
import pypto.debug as dbg
import pytest

HUGE = 10**30
NAN, INF = math.nan, math.inf


@pto.kernel
def add_one(a, n):
    i = pto.get_global_id()
    if i < n:
        pto.store(a + i, pto.load(a + i) + 1.0)


@pytest.fixture
def t():
    pto.device("sim")
    return pto.Tensor.from_numpy(np.arange(256, dtype=np.float32), name="t")


def launch(t, **given):
    return pto.launch(add_one, args=(t, 256), **given)


def measure(t, **given):
    return pto.profile_on_npu(add_one, args=(t, 256), **{"device": "emulated:reference", **given})


def session(t, **given):
    return dbg.debug_kernel(add_one, args=(t, 256), verbose=False, **given)


def stepped(t):
    made = session(t)
    made.step()
    return made


f4 = np.zeros(256, np.float32)
WRONG = {
    # numbers of a type
    "f32 of text": (lambda t: pto.f32("1"), TypeError, "'1' is no number"),
    "f32 of None": (lambda t: pto.f32(None), TypeError, "None is no number"),
    "f32 of complex": (lambda t: pto.f32(1j), TypeError, "1j is no number"),
    "s32 of nan": (lambda t: pto.s32(NAN), ValueError, "nan is no integer"),
    "s32 of inf": (lambda t: pto.s32(INF), ValueError, "inf is no integer"),
    "s32 of huge": (lambda t: pto.s32(HUGE), ValueError, "does not fit s32"),
    "u8": (lambda t: pto.u8(256), ValueError, "256 does not fit u8, which holds 0 to 255"),
    # launches
    "huge argument": (lambda t: pto.launch(add_one, args=(t, 10**5000)), TypeError, "argument n of kernel add_one is an integer of 16610 bits, which has more than 64"),
    "huge text argument": (lambda t: pto.launch(add_one, args=(t, "x" * 10**6)), TypeError, r"\(1000002 characters\)"),
    "grid": (lambda t: launch(t, grid=HUGE), ValueError, "each extent must be from 1 to 4294967295"),
    "grid of truth": (lambda t: launch(t, grid=True), TypeError, "grid is True; expected an integer"),
    "max_cycles": (lambda t: launch(t, max_cycles=HUGE), ValueError, "max_cycles is 10+; expected a whole number from 0 to 18446744073709551615"),
    "negative limit": (lambda t: launch(t, max_cycles=-1), ValueError, "max_cycles is -1; expected a whole number from 0"),
    "text limit": (lambda t: launch(t, max_cycles="5"), TypeError, "max_cycles is '5'; expected a whole number"),
    "fraction": (lambda t: launch(t, max_instructions=2.5), TypeError, "max_instructions is 2.5"),
    "dynamic_l1": (lambda t: launch(t, dynamic_l1=2**32), ValueError, "dynamic_l1 is 4294967296; expected a whole number from 0 to 4294967295"),
    "checks": (lambda t: launch(t, checks=3), TypeError, 'checks is 3; expected names such as "mem,race"'),
    "schedule": (lambda t: launch(t, schedule=None), TypeError, "schedule is None; expected a name"),
    "timed": (lambda t: launch(t, timed="no"), TypeError, "timed is 'no'; expected True or False"),
    "stream": (lambda t: launch(t, stream=3), TypeError, "stream is 3; expected a pypto.Stream"),
    # tensors
    "size": (lambda t: pto.alloc_tensor(HUGE), pto.AllocationError, "cannot allocate 10+ bytes"),
    "size beyond the host": (lambda t: pto.alloc_tensor(1 << 62), pto.AllocationError, "the host has no memory"),
    "size of truth": (lambda t: pto.alloc_tensor(True), TypeError, "size of a tensor is True"),
    "name": (lambda t: pto.alloc_tensor(4, name=3), TypeError, "name is 3; expected a string"),
    "name with NUL": (lambda t: pto.alloc_tensor(4, name="a\0b"), ValueError, "NUL"),
    "device": (lambda t: pto.alloc_tensor(4, device="sim"), TypeError, r"device is 'sim'; expected what pypto.device\(name\) returns"),
    "dtype": (lambda t: pto.alloc_tensor(4, dtype="x"), TypeError, "'x' is no type"),
    "shape": (lambda t: pto.alloc_tensor(4, shape=3), TypeError, "shape is 3; expected a tuple"),
    "shape of text": (lambda t: pto.alloc_tensor(4, shape="x"), TypeError, "shape is 'x'"),
    "negative shape": (lambda t: pto.alloc_tensor(4, shape=(-1, -1)), ValueError, "-1"),
    "shape of fractions": (lambda t: pto.alloc_tensor(4, shape=(1.5,)), TypeError, "shape is"),
    "reading as objects": (lambda t: t.numpy(object), TypeError, "cannot be read as that"),
    "reading as nothing": (lambda t: t.numpy(np.dtype("V0")), TypeError, "cannot be read as that"),
    "reading as text": (lambda t: t.numpy("x"), TypeError, "dtype is 'x'; expected a type"),
    "reading a shape": (lambda t: t.numpy(shape="x"), TypeError, "shape is 'x'"),
    "reading a huge shape": (lambda t: t.numpy(shape=(HUGE,)), ValueError, "no shape"),
    # copies
    "offset": (lambda t: pto.memcpy_h2d(t, f4, offset=HUGE), ValueError, r"memcpy_h2d\(\): offset is 10+"),
    "fraction of a byte": (lambda t: pto.memcpy_d2h(f4, t, offset=2.5), TypeError, r"memcpy_d2h\(\): offset is 2.5"),
    "nbytes": (lambda t: pto.memcpy_d2h(f4, t, nbytes=True), TypeError, "nbytes is True"),
    # devices, machines, profiles
    "device name": (lambda t: pto.device(3), TypeError, "name of the device is 3"),
    "profile": (lambda t: pto.device("sim", profile=3), TypeError, "profile is 3; expected a name, a path or a pypto.Machine"),
    "noise": (lambda t: pto.device("sim", noise="x"), TypeError, "noise is 'x'; expected a number"),
    "huge noise": (lambda t: pto.device("sim", noise=10**400), ValueError, "noise is"),
    "seed": (lambda t: pto.device("sim", seed=-1), ValueError, "seed is -1"),
    "huge seed": (lambda t: pto.device("sim", seed=HUGE), ValueError, "seed is 10+"),
    "device checks": (lambda t: pto.device("sim", checks=3), TypeError, "checks is 3"),
    "stream of": (lambda t: pto.Stream(3), TypeError, "device is 3"),
    "event": (lambda t: pto.Stream().wait(3), TypeError, r"event is 3; expected what Stream.record\(\) returns"),
    "machine": (lambda t: pto.Machine(3), TypeError, "the machine is 3; expected a path"),
    "figure": (lambda t: pto.Machine().with_figures(3), TypeError, "a figure is 3"),
    "machine text": (lambda t: pto.Machine.from_json(3), TypeError, "text is 3"),
    "runs": (lambda t: measure(t, runs=HUGE), ValueError, "runs is 10+; expected a whole number from 1 to 100000"),
    "half a run": (lambda t: measure(t, runs=2.5), TypeError, "runs is 2.5"),
    "noise of runs": (lambda t: measure(t, noise=NAN), ValueError, "noise is nan; expected a relative deviation from 0 to 1"),
    "seed of runs": (lambda t: measure(t, seed=-1), ValueError, "seed is -1"),
    "scratchpad of runs": (lambda t: measure(t, dynamic_l1=HUGE), ValueError, "dynamic_l1 is 10+"),
    "measured device": (lambda t: measure(t, device=3), TypeError, "device is 3; expected a name"),
    "profile text": (lambda t: pto.Profile(3), TypeError, "the profile is 3"),
    "kernel file": (lambda t: pto.load_kernel(3), TypeError, "path is 3; expected a path"),
    "kernel text": (lambda t: pto.assemble(3), TypeError, "the PTO text is 3; expected a string"),
    "kernel name": (lambda t: pto.assemble("", 3), TypeError, "name is 3"),
    "saving to a number": (lambda t: add_one.save(1), TypeError, "path is 1; expected a path"),
    # sessions
    "history": (lambda t: session(t, history_mb=HUGE), ValueError, "history_mb is 10+; expected a whole number from 0 to 1048576"),
    "text history": (lambda t: session(t, history_mb="x"), TypeError, "history_mb is 'x'"),
    "lanes": (lambda t: session(t, lanes_shown=-1), ValueError, "lanes_shown is -1"),
    "session limit": (lambda t: session(t, max_cycles=1.5), TypeError, "max_cycles is 1.5"),
    "session checks": (lambda t: session(t, checks=3), TypeError, "checks is 3"),
    "steps": (lambda t: session(t).step(HUGE), ValueError, "the number of steps is 10+"),
    "steps of truth": (lambda t: session(t).step(True), TypeError, "the number of steps is True"),
    "cycle": (lambda t: session(t).run_to(cycle="x"), TypeError, "cycle is 'x'"),
    "location": (lambda t: session(t).break_at(None), TypeError, "the location is None"),
    "line": (lambda t: session(t).break_at(0), ValueError, "the line is 0; expected a whole number from 1"),
    "condition": (lambda t: session(t).break_at(20, condition=3), TypeError, "the condition is 3"),
    "watch": (lambda t: session(t).watch(3), TypeError, "what is watched is 3"),
    "catch": (lambda t: session(t).catch(3), TypeError, "the event is 3"),
    "focus": (lambda t: session(t).focus(lane="x"), TypeError, "lane is 'x'"),
    "huge focus": (lambda t: session(t).focus(block=HUGE), ValueError, "block is 10+"),
    "register": (lambda t: stepped(t).register(3), TypeError, "the register is 3"),
    "no register": (lambda t: stepped(t).register("r99"), pto.DebugError, "add_one uses no register r99: it has r0 to r"),
    "no such type": (lambda t: stepped(t).register("r0", dtype=np.float64), pto.DebugError, "register r0 has 4 bytes; a float64 has 8"),
    "registers": (lambda t: stepped(t).registers(lane="x"), TypeError, "lane is 'x'"),
    "memory": (lambda t: stepped(t).memory(3), TypeError, r"what memory\(\) reads is 3; expected a Tensor"),
    "memory as objects": (lambda t: stepped(t).memory(t, object), TypeError, "cannot be read as that"),
    "l1": (lambda t: stepped(t).inspect_l1(0, 1 << 61), ValueError, "count is"),
    "l1 start": (lambda t: stepped(t).inspect_l1(HUGE), ValueError, "start is 10+"),
    "l1 block": (lambda t: stepped(t).inspect_l1(0, 4, block="x"), TypeError, "block is 'x'"),
    "held": (lambda t: stepped(t).l1_held(-1, 4), ValueError, "offset is -1"),
    "evaluate": (lambda t: stepped(t).evaluate(3), TypeError, "what is evaluated is 3"),
    "unknown register": (lambda t: stepped(t).evaluate("$r99"), pto.DebugError, "uses no register r99"),
    "warps": (lambda t: stepped(t).warps(9), pto.DebugError, "there is no block 9; the grid has 1"),
    "report": (lambda t: stepped(t).report(1), TypeError, "path is 1; expected a path"),
    "trace": (lambda t: stepped(t).trace(1), TypeError, "path is 1; expected a path"),
    # assignments
    "assign None": (lambda t: stepped(t).assign("$r0", None), TypeError, "the value is None; expected a number"),
    "assign several": (lambda t: stepped(t).assign("$r0", np.arange(2)), TypeError, "expected a whole number|expected a number"),
    "assign truth": (lambda t: stepped(t).assign("a[0]", True), pto.DebugError, "only a predicate takes True or False"),
    "assign huge": (lambda t: stepped(t).assign("$r0", HUGE), ValueError, "the value is 10+"),
    "assign 33 bits": (lambda t: stepped(t).assign("$r0", 1 << 32), pto.DebugError, "4294967296 does not fit the 32 bits of"),
    "assign nan": (lambda t: stepped(t).assign("$r0", NAN), pto.DebugError, "nan is no u32|nan is no s32"),
    "assign inf": (lambda t: stepped(t).assign("$r0", INF), pto.DebugError, "inf is no"),
    "assign a fraction": (lambda t: stepped(t).assign("$r0", 1.5), pto.DebugError, "1.5 is no"),
    "assign beyond f32": (lambda t: stepped(t).assign("a[0]", 1e300), pto.DebugError, "1e\\+300 is more than f32 can hold"),
    "assign nowhere": (lambda t: stepped(t).assign(3, 3), TypeError, "the place is 3"),
    # tensors as something else
    "pickle": (lambda t: pickle.dumps(t), TypeError, r"cannot be pickled: send tensor.numpy\(\)"),
    "no copy": (lambda t: t.__array__(copy=False), ValueError, "always a copy"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said(case, t):
    call, kind, pattern = WRONG[case]
    with pytest.raises(kind, match=f"(?s){pattern}") as caught:
        call(t)
    text = str(caught.value)
    for inside in ("incompatible", "Invoked with", "C++", "_pypto", "std::", "__index__", "to cast"):
        assert inside not in text, text
    assert len(text) < 1000


def test_huge_numbers_round_to_infinity():
    assert pto.f32(10**400).dtype.pack(10**400) == 0x7F800000
    assert pto.bf16.pack(-(10**400)) == 0xFF80

    @pto.kernel
    def k(o, x: pto.f32):
        pto.store(o, x)
        pto.store(o + 1, x + 10**400)

    o = pto.alloc_tensor(8)
    pto.launch(k, grid=1, block=1, args=(o, 1.0))
    assert o.numpy().tolist() == [1.0, INF]


# ---------------------------------------------------------------- types that differ


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.float64, np.float16, np.complex64, object])
def test_copies_do_not_read_one_type_as_another(dtype, t):
    item = np.dtype(dtype).itemsize
    array = np.empty(1024 // item, dtype)
    for copy_ in (lambda: pto.memcpy_d2h(array, t), lambda: pto.memcpy_h2d(t, array)):
        with pytest.raises(TypeError, match="a copy converts nothing|PTO has no type"):
            copy_()
    assert (t.numpy() == np.arange(256)).all()


def test_copies_of_bytes_and_of_untyped_tensors(t):
    raw = np.zeros(1024, np.uint8)
    pto.memcpy_d2h(raw, t)
    assert (raw.view(np.float32) == np.arange(256)).all()
    raw2 = bytearray(1024)
    pto.memcpy_d2h(raw2, t)
    assert bytes(raw2) == raw.tobytes()
    untyped = pto.alloc_tensor(1024)
    pto.memcpy_h2d(untyped, raw)
    numbers = np.zeros(256, np.int32)
    pto.memcpy_d2h(numbers, untyped)
    assert (numbers.view(np.float32) == np.arange(256)).all()
    with pytest.raises(TypeError, match="PTO has no type for numpy's float64"):
        pto.memcpy_d2h(np.zeros(128), untyped)
    truth = np.zeros(1024, np.bool_)
    with pytest.raises(TypeError, match="bool"):
        pto.memcpy_d2h(truth, t)
    halves = pto.alloc_tensor(8, pto.bf16)
    pto.memcpy_h2d(halves, np.array([1, 2, 3, 4], np.uint16))  # numpy has no bf16
    assert halves.numpy().tolist() == [1, 2, 3, 4]


def test_an_annotated_pointer_takes_no_tensor_of_another_type(t):
    def kernel_for(element):
        def k(a):
            pto.store(a, pto.load(a))

        k.__annotations__["a"] = pto.ptr(element)
        return pto.kernel(k)

    def tensor(dtype):
        return pto.alloc_tensor(64, dtype)

    for element, held in ((pto.s32, pto.f32), (pto.f32, pto.s32), (pto.u32, pto.s32), (pto.f16, pto.u16), (pto.u8, pto.f32)):
        with pytest.raises(TypeError, match=rf"is a tensor of {held.name}; its annotation says pypto.ptr\(pypto.{element.name}\)"):
            pto.launch(kernel_for(element), grid=1, block=1, args=(tensor(held),))
    for element, held in ((pto.s32, None), (pto.b32, pto.f32), (pto.bf16, pto.u16), (pto.f32, pto.b32), (pto.f32, pto.f32)):
        pto.launch(kernel_for(element), grid=1, block=1, args=(tensor(held),)).wait()


def test_one_annotation_that_cannot_be_read_hides_no_other(t):
    @pto.kernel
    def k(a: pto.ptr(pto.s32), n: only_for_type_checkers):  # noqa: F821
        pto.store(a, n)

    with pytest.raises(TypeError, match="a tensor of f32; its annotation says"):
        pto.launch(k, args=(t, 1))


# ---------------------------------------------------------------- tensors as arrays, copies of them


def test_a_copied_tensor_is_another_one(t):
    for make in (copy.copy, copy.deepcopy):
        other = make(t)
        assert other.address != t.address and other.dtype is t.dtype and other.shape == t.shape
        assert (other.numpy() == t.numpy()).all()
        other.free()
        assert not t.is_freed
    del other
    assert (t.numpy() == np.arange(256)).all()


def test_a_tensor_as_an_array(t):
    launch(t, grid=1, block=256)
    assert (np.asarray(t) == np.arange(256) + 1).all() and np.asarray(t).dtype == np.float32
    assert np.asarray(t, np.float64).dtype == np.float64
    assert np.sum(t) == np.arange(257).sum()
    assert np.asarray(pto.alloc_tensor(24, pto.s32, shape=(2, 3))).shape == (2, 3)


def test_what_can_be_assigned(t):
    ctx = stepped(t)
    ctx.assign("$p0", True)
    assert ctx.evaluate("$p0") == 1
    ctx.assign("$p0", np.bool_(False))
    assert ctx.evaluate("$p0") == 0
    ctx.assign("$r0", np.int64(-1))
    assert ctx.register("r0", np.int32)[0] == -1
    ctx.assign("$r0", 2**32 - 2)
    assert ctx.register("r0", np.int32)[0] == -2
    ctx.assign("$r0", 3.0)
    assert ctx.register("r0", np.int32)[0] == 3
    ctx.assign("$r0@*", 5)
    assert (ctx.register("r0", np.int32) == 5).all()
    ctx.assign("a[0]", NAN)
    assert math.isnan(ctx.evaluate("a[0]"))
    ctx.assign("a[1]", -INF)
    assert ctx.memory(t)[1] == -INF
    ctx.assign("a[2]@2", "a[4]@2")
    assert ctx.memory(t)[2:4].tolist() == [4, 5]
    with pytest.raises(pto.DebugError, match="there are 3 values for 2 places"):
        ctx.assign("a[2]@2", "a[4]@3")


def test_memory_that_the_host_lacks(monkeypatch, t):
    def empty(count, dtype):
        raise MemoryError

    monkeypatch.setattr(np, "empty", empty)
    with pytest.raises(pto.AllocationError, match="the host has no memory for 256 elements of float32"):
        t.numpy()
