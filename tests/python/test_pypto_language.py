# SPDX-License-Identifier: Apache-2.0
"""The kernel language of pypto: what numbers, control flow and pointers compute."""

from __future__ import annotations

import numpy as np
import pypto as pto
import pypto_ptosim as ptosim
import pytest
from pypto_kernels import compiled, insns, out, run

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
