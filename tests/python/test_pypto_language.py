# SPDX-License-Identifier: Apache-2.0
"""The kernel language of pypto: what kernels compute, what their code looks like, how they are compiled."""

from __future__ import annotations

import inspect
import keyword
import math
import warnings

import numpy as np
import pypto as pto
import pypto_ptosim as ptosim
import pytest
from pypto.instructions import arguments_of
from pypto.table import table

LANES = 32


def run(kernel, *values, grid=1, block=LANES, options=("--functional",)):
    """Runs a kernel; arrays are updated in place."""
    return ptosim.run(kernel, list(values), grid, block, list(options))


def out(dtype=np.int32, count=LANES):
    return np.zeros(count, dtype)


def compiled(kernel, *values):
    return ptosim.compiled(kernel, values)


def insns(kernel, *values):
    """The instructions of the kernel without guard, operands and comments."""
    lines = []
    for line in compiled(kernel, *values).asm.splitlines():
        text = line.split("//")[0].strip()
        if text.startswith("@"):
            text = text.split(" ", 1)[1].strip()
        if text and not text.startswith(".") and not text.endswith(":"):
            lines.append(text.split()[0])
    return lines


# ---------------------------------------------------------------- numbers


def test_python_numbers_adopt_the_type_they_meet():
    @pto.kernel
    def k(o, x):
        acc = 0
        best = 0
        for i in range(4):
            acc += pto.load(x + i)
            best = max(best, pto.load(x + i))
        pto.store(o + pto.get_local_id(), acc * 2 + best)

    x = np.array([0.5, 1.25, -2, 8], np.float32)
    o = out(np.float32)
    run(k, o, x)
    assert (o == x.sum() * 2 + 8).all()


def test_division_and_remainder_floor_as_in_python():
    @pto.kernel
    def k(q, r, x, y):
        i = pto.get_global_id()
        pto.store(q + i, pto.load(x + i) // pto.load(y + i))
        pto.store(r + i, pto.load(x + i) % pto.load(y + i))

    x = np.array([7, -7, 7, -7, 8, -8, 0, 2**31 - 1] * 4, np.int32)
    y = np.array([2, 2, -2, -2, 4, 4, -3, -1] * 4, np.int32)
    q, r = out(), out()
    run(k, q, r, x, y)
    assert (q == x // y).all() and (r == x % y).all()


def test_true_division_of_integers_is_a_float_division():
    @pto.kernel
    def k(o):
        i = pto.get_global_id()
        pto.store(o + i, i / 3)

    o = out(np.float32)
    run(k, o)
    assert (o == np.arange(32, dtype=np.float32) / np.float32(3)).all()


def test_narrow_integers_are_extended_and_cut():
    @pto.kernel
    def k(o, b, u):
        i = pto.get_global_id()
        pto.store(o + i, pto.load(b + i) + pto.load(u + i) * 2)
        pto.store(b + i, pto.load(u + i) + 100)  # wraps

    b = np.arange(-16, 16, dtype=np.int8)
    u = np.arange(200, 232, dtype=np.uint8)
    o = out()
    expected = b.astype(np.int32) + u.astype(np.int32) * 2
    run(k, o, b, u)
    assert (o == expected).all()
    assert (b == (u.astype(np.int32) + 100).astype(np.int8)).all()


def test_half_and_bfloat_compute_in_their_type():
    @pto.kernel
    def k(o, x):
        i = pto.get_global_id()
        v = pto.load(x + i)
        pto.store(o + i, v * v + pto.bf16(0.5))

    x = (np.arange(32, dtype=np.float32) / 8).view(np.uint32) >> 16
    o = out(np.float32)
    bits = x.astype(np.uint16)

    class Bf16:
        _pto_is_tensor_ = True
        dtype = pto.bf16

    k2 = k.compile((ptosim.Array(o), Bf16()))
    assert "mul.bf16" in k2.asm and "load.bf16" in k2.asm
    ptosim.run_text(k2.text.replace("ptr.bf16 x", "ptr x"), "k", ["o", "x"], [o, bits], 1, 32)
    v = (bits.astype(np.uint32) << 16).view(np.float32)
    assert np.allclose(o, v * v + 0.5, rtol=1e-2)


def test_64_bit_integers_live_in_d_registers():
    @pto.kernel
    def k(o, x, big):
        i = pto.get_global_id()
        pto.store(o + i, pto.load(x + i) * 1_000_003 + big)

    x = np.arange(32, dtype=np.int64) << 33
    o = out(np.int64)
    run(k, o, x, 2**40)
    assert (o == x * 1_000_003 + 2**40).all()


@pytest.mark.parametrize(
    "argument, name",
    [(1, "s32"), (2**31, "s64"), (2**63, "u64"), (-(2**40), "s64"), (1.5, "f32"), (True, "u32"),
     (np.uint8(3), "u8"), (np.float16(2), "f16"), (np.float64(2), "f32"), (pto.u32(7), "u32"), (np.int64(1), "s64")],
)  # fmt: skip
def test_types_of_scalar_arguments(argument, name):
    @pto.kernel
    def k(o, a):
        pto.store(o, a)

    params = k.compile((ptosim.Array(out(np.float32 if name[0] == "f" else np.int64)), argument)).params
    assert params[1].type.name == name


def test_bind_gives_bits():
    @pto.kernel
    def k(o, a, b, c):
        pto.store(o, pto.f32(a) + b + pto.f32(c))

    code = k.compile((ptosim.Array(out(np.float32)), -1, 1.5, True))
    assert code.bind((None, -1, 1.5, True)) == [
        ("tensor", None), ("scalar", 0xFFFFFFFF, "s32"), ("scalar", 0x3FC00000, "f32"), ("scalar", 1, "u32")
    ]  # fmt: skip


# ---------------------------------------------------------------- control flow


def test_lanes_leave_loops_at_different_times():
    @pto.kernel
    def k(o):
        i = pto.get_global_id()
        steps, v = 0, i + 1
        while v != 1:
            if v % 2 == 0:
                v //= 2
            else:
                v = 3 * v + 1
            steps += 1
            if steps > 100:
                break
        else:
            steps += 1000
        pto.store(o + i, steps)

    def collatz(v):
        steps = 0
        while v != 1:
            v = v // 2 if v % 2 == 0 else 3 * v + 1
            steps += 1
            if steps > 100:
                return steps
        return steps + 1000

    o = out()
    run(k, o)
    assert (o == [collatz(i + 1) for i in range(32)]).all()


def test_short_circuit_keeps_loads_in_bounds():
    @pto.kernel
    def k(o, x, n):
        i = pto.get_global_id()
        hit = 0
        if i < n and pto.load(x + i) > 0 or i == 31:
            hit = 1
        pto.store(o + i, hit)

    x = np.array([1, -1] * 5, np.float32)
    o = out()
    run(k, o, x, 10, options=["--functional", "--checks", "all"])
    assert (o == [1, 0] * 5 + [0] * 21 + [1]).all()


def test_range_with_run_time_step_of_either_sign():
    @pto.kernel
    def k(o, start, stop, step):
        total = 0
        for i in range(start, stop, step):
            total = total * 3 + i
        pto.store(o + pto.get_global_id(), total)

    for bounds in ((0, 10, 3), (10, 0, -4), (0, 10, -1), (5, 5, 1), (1, 2, 0)):
        o = out()
        run(k, o, *bounds)
        expected = 0
        for i in range(*bounds) if bounds[2] else ():
            expected = expected * 3 + i
        assert (o == expected).all(), bounds


def test_loop_variable_keeps_its_last_value():
    @pto.kernel
    def k(o):
        i = 99
        for i in range(pto.get_global_id() % 3):
            pass
        pto.store(o + pto.get_global_id(), i)

    o = out()
    run(k, o)
    assert (o == [{0: 99, 1: 0, 2: 1}[i % 3] for i in range(32)]).all()


def test_static_range_and_tuples_unroll():
    @pto.kernel
    def k(o):
        total = 0
        for i in pto.static_range(1, 4):
            for j in (10, 20):
                total += i * j
        pto.store(o, total)

    assert insns(k, out()) == ["store.s32", "exit"]  # all of it is known to the compiler
    o = out(count=1)
    run(k, o)
    assert o[0] == 6 * 30


def test_early_return_and_nested_conditions():
    @pto.kernel
    def k(o, n):
        i = pto.get_global_id()
        if i >= n:
            return
        r = -1
        if i % 2:
            if i % 3:
                r = 1
            elif i > 20:
                pto.store(o + i, 77)
                return
            else:
                r = 2
        pto.store(o + i, r)

    o = out()
    run(k, o, 30)
    expected = [(1 if i % 3 else 77 if i > 20 else 2) if i % 2 else -1 for i in range(30)] + [0, 0]
    assert (o == expected).all()


def test_assert_traps_with_its_text():
    @pto.kernel
    def k(o, n):
        i = pto.get_global_id()
        assert i < n, "too many lanes"
        pto.store(o + i, i)

    code = compiled(k, out(), 32)
    (number,) = code.asserts
    assert code.asserts[number].startswith("assert i < n, too many lanes (")
    run(k, out(), 32)
    with pytest.raises(RuntimeError, match="trap"):
        run(k, out(), 31)


def test_swap_in_a_loop():
    @pto.kernel
    def k(o, n):
        a, b = 0, 1
        for _ in range(n):
            a, b = b, a + b
        pto.store(o, a)

    o = out(count=1)
    run(k, o, 20)
    assert o[0] == 6765


# ---------------------------------------------------------------- pointers


def test_pointer_variables_move():
    @pto.kernel
    def k(o, x, n):
        p = x + pto.get_global_id()
        total = 0.0
        while n > 0:
            total += pto.load(p)
            p += 32
            n -= 1
        pto.store(o + pto.get_global_id(), total)

    x = np.arange(128, dtype=np.float32)
    o = out(np.float32)
    run(k, o, x, 4)
    assert (o == x.reshape(4, 32).sum(axis=0)).all()


def test_pointer_chosen_by_a_condition():
    @pto.kernel
    def k(o, x, y):
        i = pto.get_global_id()
        p = x
        if i % 2 == 0:
            p = y + 1
        pto.store(o + i, pto.load(p + i))

    x, y = np.arange(40, dtype=np.float32), -np.arange(40, dtype=np.float32)
    o = out(np.float32)
    run(k, o, x, y)
    assert (o == [-(i + 1) if i % 2 == 0 else i for i in range(32)]).all()


def test_addresses_use_what_the_machine_offers():
    @pto.kernel
    def k(o, x):
        i = pto.get_global_id()
        pto.store(o + (i + 3), pto.load(x + i * 4 - 2))

    code = compiled(k, out(np.float32), out(np.float32)).asm
    assert "hbm[x + r0*16 - 8]" in code and "hbm[o + r0*4 + 12]" in code


def test_what_a_loop_does_not_change_is_computed_before_it():
    @pto.kernel
    def k(o, x, rows, cols):
        row = pto.get_global_id()
        total = 0.0
        for c in range(cols):
            total += pto.load(x + row * cols + c)
        pto.store(o + row, total)

    code = insns(k, out(np.float32), out(np.float32), 4, 4)
    first = code.index("load.f32")
    assert code[first : first + 5] == ["load.f32", "add.f32", "add.s32", "cmp.lt.s32", "bra"]


def test_unsigned_and_64_bit_indexes():
    @pto.kernel
    def k(o, x, u, big):
        i = pto.get_global_id()
        pto.store(o + i, pto.load(x + pto.load(u + i)) + pto.load(x + (big + i - big)))

    x = np.arange(50, dtype=np.float32)
    u = np.arange(31, -1, -1).astype(np.uint32)
    o = out(np.float32)
    run(k, o, x, u, 2**35)
    assert (o == x[u] + x[:32]).all()


def test_shared_memory_tiles_and_constants():
    weights = (1.0, 2.0, 4.0, 8.0)

    @pto.kernel
    def k(o, x):
        i = pto.get_local_id()
        s = pto.shared((4, 8), pto.f32)
        w = pto.const_array(weights)
        pto.store(s + i, pto.load(x + i))
        pto.barrier_block()
        pto.store(o + i, pto.load(s + (31 - i)) * pto.load(w + i % 4))

    x = np.arange(32, dtype=np.float32)
    o = out(np.float32)
    run(k, o, x)
    assert (o == x[::-1] * np.tile(np.float32(weights), 8)).all()


def test_two_and_three_dimensions():
    @pto.kernel
    def k(o):
        x, y, z = pto.get_global_id(0), pto.get_global_id(1), pto.get_global_id(2)
        sx, sy = pto.get_global_size(0), pto.get_global_size(1)
        pto.store(o + ((z * sy + y) * sx + x), x + 100 * y + 10000 * z)

    o = out(count=8 * 6 * 4)
    run(k, o, grid=(2, 3, 2), block=(4, 2, 2))
    z, y, x = np.indices((4, 6, 8))
    assert (o.reshape(4, 6, 8) == x + 100 * y + 10000 * z).all()


# ---------------------------------------------------------------- functions, constants, compiling


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


# ---------------------------------------------------------------- instructions


def test_every_instruction_of_the_table_has_a_function_with_help():
    for row in table().values():
        name = row.mnemonic + ("_" if row.mnemonic in ("and", "or", "not") else "")
        function = getattr(pto, name)
        assert row.summary in function.__doc__
        for modifier in row.modifiers:
            if not modifier.is_optional:
                for suffix in modifier.suffixes:
                    assert callable(getattr(pto, f"{row.mnemonic}_{suffix}"))
        assert isinstance(inspect.signature(function), inspect.Signature)


SNIPPETS = {
    "abs": "pto.abs(i)", "add": "pto.add(i, 3)", "alloc_local": "pto.alloc_local(16)",
    "and": "pto.and_(i, 6)", "async_load": "pto.async_load(t, p, 64, 0)",
    "async_store": "pto.async_store(p, t, 64, 1)", "atom": "pto.atom(q, 5, operation='add')",
    "barrier": "pto.barrier()", "barrier_block": "pto.barrier_block(2)", "brev": "pto.brev(i)",
    "clz": "pto.clz(i)", "cmp": "pto.store(q + i, pto.s32(pto.cmp(i, 4, comparison='lt')))",
    "cos": "pto.cos(x)", "cvt": "pto.cvt(x, pto.s32, rounding='rp')", "div": "pto.div(i, 3)",
    "exit": "pto.exit()", "exp": "pto.exp(x)", "fence": "pto.fence_block()", "fill": "pto.fill(t, 0)",
    "fma": "pto.fma(x, 2.0, x)", "free_local": "pto.free_local(t)", "inval": "pto.inval(p)",
    "load": "pto.load(p, cache='cg')", "log": "pto.log(x)", "mad": "pto.mad(i, i, 3)",
    "max": "pto.max(i, 5)", "min": "pto.min(x, 2)", "mma": "pto.mma(u, t, t, 4, 4, 4)",
    "mul": "pto.mul(i, 7)", "mulhi": "pto.mulhi(i, i)", "neg": "pto.neg(x)", "nop": "pto.nop(5)",
    "not": "pto.not_(i)", "or": "pto.or_(i, 1)", "popc": "pto.popc(i)", "pow": "pto.pow(x, 2.5)",
    "prefetch": "pto.prefetch(p)", "print": "pto.print('%d', i)", "prmt": "pto.prmt(i, i, 0x5410)",
    "rcp": "pto.rcp(x)", "reduce": "pto.reduce(i, operation='add')", "rem": "pto.rem(i, 7)",
    "rsqrt": "pto.rsqrt(x)", "sel": "pto.sel(i, 4, i > 3)", "shfl": "pto.shfl(i, 3, mode='idx')",
    "shl": "pto.shl(i, 2)", "shr": "pto.shr(i, 2)", "sin": "pto.sin(x)", "sqrt": "pto.sqrt(x)",
    "store": "pto.store(p, x, cache='cg')", "sub": "pto.sub(i, 2)", "tanh": "pto.tanh(x)",
    "trap": "pto.trap(7)", "vote": "pto.vote(i > 3, mode='ballot')", "wait": "pto.wait(3)",
    "wait_all": "pto.wait_all()", "xor": "pto.xor(i, 3)",
}  # fmt: skip


def plain_call(row):
    """A call of a row that has no snippet yet, by what its operands accept."""
    kinds = [("hbm", "p"), ("tile", "t"), ("event", "0"), ("predicate", "i > 3"), ("register", "i"), ("", "1")]
    name = row.mnemonic + ("_" if keyword.iskeyword(row.mnemonic) else "")
    given = [
        next(text for kind, text in kinds if kind in operand.accepts)
        for operand in arguments_of(row.forms[0])
        if not operand.optional
    ]
    given += [f"{m.name}='{m.suffixes[0]}'" for m in row.modifiers if not m.is_optional]
    return f"pto.{name}({', '.join(given)})"


def test_every_row_can_be_called_and_assembles():
    for row in table().values():
        if row.mnemonic in ("bra", "call", "ret", "mov"):
            continue  # made by control flow, and by what needs a copy
        call = SNIPPETS.get(row.mnemonic) or plain_call(row)
        is_value = row.forms[0][:1] and row.forms[0][0].is_written and row.forms[0][0].accepts.startswith(("register", "predicate"))
        statement = f"pto.store(q + i, pto.s32({call}))" if is_value and "store" not in call else call
        text = (
            "@pto.kernel\ndef k(p, q):\n    i = pto.get_global_id()\n    x = pto.load(p + i)\n"
            f"    t = pto.alloc_local(64)\n    u = pto.alloc_local(64)\n    {statement}\n"
        )
        kernel = from_text(text)
        code = compiled(kernel, out(np.float32), out())
        assert f" {row.mnemonic}" in code.asm, row.mnemonic
        assert code.object


def from_text(text, name="k", **scope):
    """A kernel from text, with its source where inspect finds it."""
    file = f"<kernel text {abs(hash(text))}>"
    return ptosim.define(text, file, {**scope, "pto": pto, "np": np, "math": math})[name]


def test_results_of_warp_instructions():
    @pto.kernel
    def k(o):
        i = pto.get_lane_id()
        even = pto.vote_ballot(i % 2 == 0)
        below = pto.popc(even & pto.lanemask_lt())
        pto.store(o + i, below * 1000 + pto.shfl_down(i, 1) + pto.reduce_max(i))

    o = out()
    run(k, o)
    i = np.arange(32)
    assert (o == (i + 1) // 2 * 1000 + np.minimum(i + 1, 31) + 31).all()


def test_atomics_and_unused_results():
    @pto.kernel
    def k(c, o):
        i = pto.get_global_id()
        pto.atomic_add(c, 1)
        old = pto.atomic_max(c + 1, i)
        pto.store(o + i, old)

    code = compiled(k, out(), out()).asm
    assert "atom.add.s32 _, hbm[c], 1" in code and "atom.max.s32 r" in code
    c, o = out(), out()
    run(k, c, o)
    assert c[0] == 32 and c[1] == 31


def test_vectors():
    @pto.kernel
    def k(o, x):
        i = pto.get_global_id()
        a, b, c, d = pto.load(x + i * 4, vector=4)
        pto.store(o + i * 4, (d, c, b, a))

    x = np.arange(128, dtype=np.float32)
    o = out(np.float32, 128)
    run(k, o, x)
    assert (o.reshape(32, 4) == x.reshape(32, 4)[:, ::-1]).all()


def test_printing():
    @pto.kernel
    def k(x):
        i = pto.get_global_id()
        if i == 3:
            pto.print(f"lane {i}: {pto.load(x + i)} 100%")
            print("plain", i, 2.5)
            pto.print("%x %u", i + 12, i)

    report = run(k, np.arange(32, dtype=np.float32))
    texts = [p["text"] if isinstance(p, dict) else p for p in report["prints"]]
    assert [t.split("]")[-1].strip() for t in texts] == ["lane 3: 3.000000 100%", "plain 3 2.500000", "f 3"]


def test_tile_store_and_copies():
    @pto.kernel
    def k(y, x, n):
        t = pto.alloc_local(n)
        e = pto.event()
        pto.async_load(t, x, n * 4, e)
        pto.wait(e)
        pto.store(y, t, n * 4)

    x = np.arange(100, dtype=np.float32)
    y = out(np.float32, 100)
    run(k, y, x, 100)
    assert (y == x).all()


def test_emit_ascendc():
    @pto.kernel
    def scale(o, x, n):
        for i in range(pto.get_global_id(), n, pto.get_global_size()):
            pto.store(o + i, pto.load(x + i) * 2.5)

    compiled(scale, out(np.float32), out(np.float32), 3)
    text = scale.emit("ascendc")
    assert "scale" in text and "2.5" in text and "pto_simt.h" in text


def test_the_stub_is_fresh():
    from pypto import stubs

    path = ptosim.ROOT / "pybind" / "pypto" / "language.pyi"
    assert path.read_text() == stubs.text(), "python3 -m pypto.stubs > pybind/pypto/language.pyi"


def test_two_halves_in_a_register():
    @pto.kernel
    def k(o, x):
        i = pto.get_global_id()
        pairs, out2 = pto.bitcast(x, pto.f16x2), pto.bitcast(o, pto.f16x2)
        v = pto.load(pairs + i)
        pto.store(out2 + i, pto.fma(v, v, v) + v - max(v, -v))

    x = np.arange(-32, 32, dtype=np.float16)
    o = out(np.float16, 64)
    run(k, o, x)
    assert "fma.f16x2" in insns(k, o, x)
    assert (o == x * x + x + x - np.maximum(x, -x)).all()


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
