# SPDX-License-Identifier: Apache-2.0
"""How kernels of pypto are compiled: functions, captured values, arguments, listings, registers."""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pypto as pto
import pypto_ptosim as ptosim
import pytest
from pypto_kernels import compiled, from_text, insns, out, run

SCALE = 3


def test_functions_are_inlined_and_typed_by_their_arguments():
    @pto.func
    def clamp(v, low, high=10):
        if v < low:
            return low
        if v > high:
            return high
        return v

    @pto.kernel
    def k(o, f):
        i = pto.get_global_id()
        pto.store(o + i, clamp(i, 5))
        pto.store(f + i, clamp(i * 0.5, 2.0, high=7.25))

    o, f = out(), out(np.float32)
    run(k, o, f)
    assert (o == np.clip(np.arange(32), 5, 10)).all()
    assert (f == np.clip(np.arange(32) * 0.5, 2, 7.25)).all()


def test_captured_constants_are_followed():
    global SCALE
    offset = 5

    @pto.kernel
    def k(o):
        pto.store(o + pto.get_global_id(), SCALE * 100 + offset)

    o = out()
    SCALE = 3
    run(k, o)
    assert o[0] == 305
    first = compiled(k, o)
    assert compiled(k, o) is first
    SCALE = 4
    run(k, o)
    assert o[0] == 405
    offset = 6
    run(k, o)
    assert o[0] == 406
    SCALE = 3


def test_static_parameters_are_compiled_in():
    @pto.kernel
    def k(o, n: pto.static, x: pto.u32):
        s = pto.shared(n, pto.u32)
        for i in pto.static_range(n):
            pto.store(s + i, x + i)
        total = pto.u32(0)
        for i in pto.static_range(n):
            total += pto.load(s + i)
        pto.store(o, total)

    code = compiled(k, out(), 4, 1)
    assert [p.name for p in code.params] == ["o", "x"] and ".shared s, u32[4]" in code.asm
    assert code.bind((None, 4, 1)) == [("tensor", None), ("scalar", 1, "u32")]
    assert code.params[1].type is pto.u32
    assert compiled(k, out(), 5, 1) is not code


def test_a_kernel_never_launched_guesses_its_types():
    @pto.kernel
    def k(a, b, n):
        i = pto.get_global_id()
        if i < n:
            pto.store(b + i, pto.load(a + i) * 2)

    assert ".kernel k(ptr.f32 a, ptr.f32 b, s32 n)" in k.asm
    assert k.object[:4] == b"PTOB"


def test_listing_shows_python_lines_and_places_reach_the_object(tmp_path):
    @pto.kernel
    def k(o):
        i = pto.get_global_id()
        pto.store(o + i, i * 5)

    line = inspect.getsourcelines(k.__wrapped__)[1] + 3
    assert f"// {line}: pto.store(o + i, i * 5)" in k.asm
    assert f'.loc "{__file__}" {line} ' in compiled(k, out()).text
    k.save(tmp_path / "k.ptobj")
    k.save(tmp_path / "k.pto")
    assert (tmp_path / "k.ptobj").read_bytes() == k.object
    assert (tmp_path / "k.pto").read_text() == k.asm
    assert k.emit("asm") == k.asm
    with pytest.raises(ValueError, match="emit knows"):
        k.emit("fortran")


def test_names_that_pto_text_reserves():
    @pto.kernel
    def r0(d1, t0, p3, hbm):
        pto.store(d1, t0 + p3 + hbm)

    o = out()
    run(r0, o, 1, 2, 3)
    assert o[0] == 6


def test_the_same_kernel_gives_the_same_bytes():
    def make():
        @pto.kernel
        def k(o, n):
            for i in range(n):
                pto.store(o + i, i * i)

        return compiled(k, out(), 3)

    assert make().object == make().object


def test_wrong_arguments():
    @pto.kernel
    def k(o, n):
        pto.store(o, n)

    o = ptosim.Array(out())
    with pytest.raises(TypeError, match=r"takes 2 arguments \(o, n\); 1 are given"):
        k.compile((o,))
    with pytest.raises(TypeError, match="argument n of kernel k must be a tensor or a number, not a list"):
        k.compile((o, []))
    with pytest.raises(TypeError, match="Tensor.from_numpy"):
        k.compile((np.zeros(3), 1))
    with pytest.raises(TypeError, match="more than 64 bits"):
        k.compile((o, 2**70))
    with pytest.raises(TypeError, match="no type for numpy's float64"):
        k.compile((ptosim.Array(np.zeros(2)), 1))
    with pytest.raises(TypeError, match="start it with pypto.launch"):
        k(1, 2)
    with pytest.raises(RuntimeError, match="decorated with @pypto.kernel"):
        pto.load(1)
    with pytest.raises(TypeError, match="decorates a Python function"):
        pto.kernel(3)


class Settings:
    scale = 3


def test_captured_containers_and_attributes_are_followed():
    table, sizes, settings = {"k": 5}, [1, 2, 3], Settings()
    weights = np.array([1.0, 2.0], np.float32)

    @pto.kernel
    def k(o):
        w = pto.const_array(weights)
        pto.store(o, sizes[1] * 1000 + table["k"] * 100 + settings.scale * 10 + pto.load(w + 1) + np.float32(0))

    def value():
        o = out(np.float32)
        run(k, o)
        return o[0]

    assert value() == 2532
    settings.scale = 4
    assert value() == 2542
    sizes[1] = 7
    assert value() == 7542
    table["k"] = 6
    assert value() == 7642
    weights[1] = 9
    assert value() == 7649


def test_long_sums_and_chains():
    terms = " + ".join(f"(i ^ {j})" for j in range(600))
    chain = "".join(f"    elif i == {j}:\n        v = {j * 7}\n" for j in range(1, 300))
    k = from_text(
        f"@pto.kernel\ndef k(o):\n    i = pto.get_global_id()\n    v = 0\n    if i == 0:\n        v = 5\n{chain}"
        f"    pto.store(o + i, v + {terms})\n"
    )
    o = out()
    run(k, o)
    assert (o == [(i * 7 or 5) + sum(i ^ j for j in range(600)) for i in range(32)]).all()


# ---------------------------------------------------------------- registers


def test_more_truth_values_than_predicates():
    @pto.kernel
    def k(o, x):
        i = pto.get_global_id()
        a, b, c, d, e = i > 1, i > 2, i > 3, i > 4, i > 5
        f, g, h, j, m = i > 6, i > 7, i > 8, i > 9, i > 10
        pto.store(o + i, pto.load(x + i))
        t = pto.s32(a) + pto.s32(b) + pto.s32(c) + pto.s32(d) + pto.s32(e)
        pto.store(o + i, t + pto.s32(f) + pto.s32(g) + pto.s32(h) + pto.s32(j) + pto.s32(m))

    o = out()
    run(k, o, out())
    assert (o == np.clip(np.arange(32) - 1, 0, 10)).all()


def test_too_many_registers_wait_in_scratchpad_with_a_warning():
    @pto.kernel
    def k(o, x):
        i = pto.get_global_id()
        values = ()
        for j in pto.static_range(140):
            values = values + (pto.load(x + i + j),)
        total = 0.0
        for j in pto.static_range(140):
            total += values[139 - j] * (j + 1)
        pto.store(o + i, total)

    x = np.arange(210, dtype=np.float32)
    o = out(np.float32, 64)
    with pytest.warns(pto.PtoWarning, match="does not fit 127 registers"):
        code = compiled(k, o, x)
    assert code.registers <= 127 and ".maxlanes 256" in code.asm and code.scratchpad_bytes > 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run(k, o, x, block=64)
    weights = np.arange(140, 0, -1)
    assert (o == [(x[i : i + 140] * weights).sum() for i in range(64)]).all()


def test_registers_are_few():
    @pto.kernel
    def k(o, x, n):
        i = pto.get_global_id()
        total = 0.0
        for j in range(i, n, 32):
            total += pto.load(x + j) * 2.0
        pto.store(o + i, total)

    assert compiled(k, out(np.float32), out(np.float32), 9).registers <= 4
    assert "mov.b32" not in " ".join(insns(k, out(np.float32), out(np.float32), 9))[40:]
