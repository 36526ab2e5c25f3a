# SPDX-License-Identifier: Apache-2.0
"""What a kernel takes from the Python around it: a change of it, however small, makes another kernel."""

from __future__ import annotations

import importlib
import math
import struct
import sys
import textwrap
import types

import numpy as np
import pypto as pto
import pypto_ptosim as ptosim
import pytest
from pypto.compiler.captured import image_of

VALUE = 0.0
NESTED = ([1, 2], "x")
TABLE = {"n": 3, "inner": {"m": 4}}
SETTINGS = types.SimpleNamespace(n=5, inner=[types.SimpleNamespace(m=6)])


def compiled(kernel, *values):
    return ptosim.compiled(kernel, values)


def stored(kernel, dtype=np.int32):
    """What `kernel(o)` stores to o[0]."""
    o = np.zeros(1, dtype)
    ptosim.run(kernel, [o], 1, 1, ["--functional"])
    return o[0]


NAN = struct.unpack("<d", struct.pack("<Q", 0x7FF8000000000001))[0]


@pytest.mark.parametrize(
    "a, b",
    [
        (0.0, -0.0),
        (1, True),
        (1, 1.0),
        (math.nan, NAN),
        ((0.0,), (-0.0,)),
        ((1, 2), [1, 2]),
        ((1, (2, [3])), (1, (2, [4]))),
        ({"a": 1}, {"a": True}),
        (pto.f32(0.0), pto.f32(-0.0)),
        (pto.s32(1), pto.u32(1)),
        (np.float32(0), np.float32(-0.0)),
        (np.int32(1), np.int64(1)),
        (np.zeros(2), -np.zeros(2)),
        (np.zeros(2), np.zeros(2, np.int64)),
        (np.zeros(2), np.zeros((1, 2))),
        (object(), object()),
    ],
)
def test_images_tell_apart(a, b):
    assert image_of(a) != image_of(b)
    assert image_of(a) == image_of(a) and hash(image_of(a)) == hash(image_of(a))


def test_images_of_equal_things_are_equal():
    for make in (lambda: math.nan, lambda: [1, {"a": (2.5, np.ones(3))}], lambda: float("-0.0")):
        assert image_of(make()) == image_of(make())


def test_a_container_that_holds_itself_is_refused():
    global NESTED
    kept, loop = NESTED, []
    loop.append(loop)
    NESTED = loop

    @pto.kernel
    def k(o):
        pto.store(o, NESTED[0])

    try:
        with pytest.raises(pto.CompileError, match="nested too deeply"):
            stored(k)
    finally:
        NESTED = kept


def test_the_sign_of_a_captured_zero():
    global VALUE

    @pto.kernel
    def k(o):
        pto.store(o, VALUE)

    VALUE = 0.0
    assert math.copysign(1, stored(k, np.float32)) == 1
    VALUE = -0.0
    assert math.copysign(1, stored(k, np.float32)) == -1
    VALUE = math.nan
    assert math.isnan(stored(k, np.float32))
    VALUE = float("nan")  # another object, the same kernel
    first = compiled(k, np.zeros(1, np.float32))
    VALUE = float("nan")
    assert compiled(k, np.zeros(1, np.float32)) is first
    VALUE = 0.0


def test_the_sign_of_a_static_zero():
    @pto.kernel
    def k(o, x: pto.static):
        pto.store(o, x)

    o = np.zeros(1, np.float32)
    for x in (0.0, -0.0, 0.0):
        assert math.copysign(1, float(compiled(k, o, x).text.split("], ")[1].split()[0])) == math.copysign(1, x)
    assert compiled(k, o, math.nan) is compiled(k, o, float("nan"))

    @pto.kernel
    def pair(o, x: pto.static):
        pto.store(o, x[0])

    assert compiled(pair, o, (1,)) is not compiled(pair, o, (1.0,))


def test_zeros_of_two_signs_meet_as_two_values():
    @pto.kernel
    def k(o, n):
        x = 0.0
        if n > 3:
            x = -0.0
        pto.store(o, x)

    for n, sign in ((3, 1), (4, -1)):
        o = np.ones(1, np.float32)
        ptosim.run(k, [o, n], 1, 1, ["--functional"])
        assert math.copysign(1, o[0]) == sign


def test_a_list_in_a_captured_tuple():
    @pto.kernel
    def k(o):
        pto.store(o, NESTED[0][1])

    assert stored(k) == 2
    NESTED[0][1] = 7
    assert stored(k) == 7
    NESTED[0][1] = 2


def test_what_is_reached_through_captured_objects():
    @pto.kernel
    def k(o):
        pto.store(o, TABLE["n"] + TABLE["inner"]["m"] * 10 + SETTINGS.n * 100 + SETTINGS.inner[0].m * 1000)

    o = np.zeros(1, np.int32)
    assert stored(k) == 6543
    first = compiled(k, o)
    assert compiled(k, o) is first
    for change, back, value in (
        (lambda: TABLE.update(n=4), lambda: TABLE.update(n=3), 6544),
        (lambda: TABLE["inner"].update(m=5), lambda: TABLE["inner"].update(m=4), 6553),
        (lambda: setattr(SETTINGS, "n", 6), lambda: setattr(SETTINGS, "n", 5), 6643),
        (lambda: setattr(SETTINGS.inner[0], "m", 7), lambda: setattr(SETTINGS.inner[0], "m", 6), 7543),
    ):
        change()
        assert stored(k) == value
        back()
    assert stored(k) == 6543


def test_a_function_and_a_default_that_are_replaced():
    scope = types.SimpleNamespace()
    values = [1]

    @pto.func
    def one(x, step=values):
        return x + step[0]

    @pto.func
    def two(x):
        return x + 20

    scope.add = one

    @pto.kernel
    def k(o):
        pto.store(o, scope.add(100))

    assert stored(k) == 101
    values[0] = 2
    assert stored(k) == 102
    scope.add = two
    assert stored(k) == 120


# ---------------------------------------------------------------- source

FIRST = """
    import pypto as pto

    @pto.func
    def part(x):
        return x + 1

    @pto.kernel
    def k(o):
        pto.store(o, part(10))
"""


def test_the_source_is_that_of_the_import(tmp_path, monkeypatch):
    path = tmp_path / "edited_between.py"
    path.write_text(textwrap.dedent(FIRST))
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("edited_between")
    path.write_text("# one line more\n" + textwrap.dedent(FIRST).replace("+ 1", "+ 2").replace("10", "20"))
    assert stored(module.k) == 11
    assert "pto.store(o, part(10))" in module.k.asm and "// 6: return x + 1" not in module.k.asm
    importlib.reload(module)
    assert stored(module.k) == 22
    del sys.modules["edited_between"]


def test_a_file_that_has_changed_before_the_decorator_ran(tmp_path):
    path = tmp_path / "late.py"
    text = "import pypto as pto\ndef k(o, n):\n    pto.store(o, n)\n"
    path.write_text(text)
    scope = {}
    exec(compile(text, str(path), "exec"), scope)
    path.write_text("import pypto as pto\ndef other(p):\n    pto.store(p, 1)\n")
    with pytest.raises(pto.CompileError, match=r"file has changed since k was imported.*other\(p\)"):
        compiled(pto.kernel(scope["k"]), np.zeros(1, np.int32), 1)


def test_a_text_without_a_file_is_refused_at_the_launch():
    scope = {"pto": pto}
    exec("@pto.kernel\ndef k(o):\n    pto.store(o, 1)\n", scope)
    with pytest.raises(pto.CompileError, match="source of k is not available"):
        compiled(scope["k"], np.zeros(1, np.int32))
