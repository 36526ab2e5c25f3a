# SPDX-License-Identifier: Apache-2.0
"""// and % by constants, which become shifts and products: the same as numpy's at every edge."""

from __future__ import annotations

import linecache

import numpy as np
import pypto as pto
import pytest
from pypto.compiler.division import reciprocal

TYPES = (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64)
PART = 20


def edges(dtype, divisors) -> np.ndarray:
    """Values of the type around everything where a quotient changes."""
    info = np.iinfo(dtype)
    random = np.random.default_rng(5)
    points = {0, 1, -1, info.min, info.max, info.max // 2}
    points |= {sign << bit for bit in range(info.bits) for sign in (1, -1)}
    for d in divisors:
        largest = info.max // d * d if d else 0
        points |= {d, -d, 2 * d, -2 * d, 3 * d, largest, -largest, info.min // d * d}
    points |= {int(x) for x in random.integers(info.min, info.max, 200, dtype, endpoint=True)}
    near = {p + step for p in points for step in (-2, -1, 0, 1, 2)}
    return np.array(sorted(x for x in near if info.min <= x <= info.max), dtype)


def divisors_of(dtype) -> list[int]:
    info = np.iinfo(dtype)
    wide = max(info.max, np.iinfo(np.int32).max)
    found = {1, 2, 3, 5, 6, 7, 9, 10, 11, 12, 13, 14, 19, 21, 25, 28, 31, 33, 60, 63, 100, 125, 127, 255, 365, 641}
    found |= {1000, 1024, 4096, 10**6, 10**9, 65535, 65536, 65537, 6700417}
    found |= {(1 << bit) + step for bit in range(4, info.bits) for step in (-1, 0, 1)}
    found |= {info.max, info.max - 1, info.max // 2, info.max // 3}
    if info.min < 0:
        found |= {-1, -2, -3, -7, -8, -10, -1000, info.min, info.min + 1}
    low, high = (info.min, wide) if info.bits >= 32 else (np.iinfo(np.int32).min, np.iinfo(np.int32).max)
    return sorted(d for d in found if d and low <= d <= high)


def make(divisors, name="k") -> pto.Kernel:
    """k(q, r, x, n): quotients and remainders of x by each divisor, n values apart."""
    lines = [f"@pto.kernel\ndef {name}(q, r, x, n):", "    i = pto.get_global_id()", "    if i < n:"]
    lines.append("        v = pto.load(x + i)")
    for at, d in enumerate(divisors):
        lines.append(f"        pto.store(q + ({at} * n + i), v // {d})")
        lines.append(f"        pto.store(r + ({at} * n + i), v % {d})")
    text = "\n".join(lines) + "\n"
    file = f"<division {name} {divisors}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    scope = {"pto": pto}
    exec(compile(text, file, "exec"), scope)
    return scope[name]


@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.__name__)
def test_constant_divisors_agree_with_numpy(dtype):
    divisors = divisors_of(dtype)
    x = edges(dtype, divisors)
    result = np.int32 if np.iinfo(dtype).bits < 32 else dtype
    d_x = pto.Tensor.from_numpy(x)
    for first in range(0, len(divisors), PART):
        some = divisors[first : first + PART]
        size = np.dtype(result).itemsize * x.size * len(some)
        q, r = (pto.alloc_tensor(size, result, shape=(len(some), x.size)) for _ in "qr")
        pto.launch(make(some), grid=(x.size + 255) // 256, args=(q, r, d_x, x.size))
        for d, quotients, rests in zip(some, q.numpy(), r.numpy()):
            wide = x.astype(result)
            with np.errstate(over="ignore"):
                wanted_q, wanted_r = wide // result(d), wide % result(d)
            wrong = np.flatnonzero((quotients != wanted_q) | (rests != wanted_r))
            assert wrong.size == 0, (x[wrong[0]], d, quotients[wrong[0]], rests[wrong[0]])


def by_zero(dtype, bits):
    """What docs/kernel-language.md says of x // 0: all ones, in the width of the result."""
    return dtype(-1) if np.iinfo(dtype).min < 0 else dtype(2**bits - 1)


@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.__name__)
def test_divisors_of_the_run_time_agree_with_numpy_and_zero_gives_all_ones(dtype):
    @pto.kernel
    def k(q, r, t, x, y, n):
        i = pto.get_global_id()
        if i < n:
            a = pto.load(x + i)
            b = pto.load(y + i)
            pto.store(q + i, a // b)
            pto.store(r + i, a % b)
            pto.store(t + i, (a // b) * b + a % b)

    info = np.iinfo(dtype)
    some = [v for v in (0, 1, 2, 5, 7, 100, -1, -2, -5, -7, -100, info.min, info.max) if v >= info.min]
    x, y = (v.ravel() for v in np.meshgrid(np.array(some, dtype), np.array(some, dtype)))
    wide = np.int32 if info.bits < 32 else dtype
    q, r, t = (pto.alloc_tensor(x.size * np.dtype(wide).itemsize, wide) for _ in "qrt")
    pto.launch(k, grid=2, block=128, args=(q, r, t, pto.Tensor.from_numpy(x), pto.Tensor.from_numpy(y), x.size))
    a, b = x.astype(wide), y.astype(wide)
    with np.errstate(divide="ignore", over="ignore"):
        wanted_q = np.where(b == 0, by_zero(wide, np.iinfo(wide).bits), a // b)
        wanted_r = np.where(b == 0, a, a % b)
    assert q.numpy().tolist() == wanted_q.tolist()
    assert r.numpy().tolist() == wanted_r.tolist()
    assert t.numpy().tolist() == a.tolist()  # whatever the divisor


@pytest.mark.parametrize("name", ["s32", "s64"])
def test_parameters_and_constants_divided_by_a_zero_parameter(name):
    kind = getattr(pto, name)

    @pto.kernel
    def k(o, a: kind, b: kind):
        pto.store(o, a // b)
        pto.store(o + 1, a % b)
        pto.store(o + 2, -5 // b)
        pto.store(o + 3, -5 % b)
        pto.store(o + 4, kind(-7) // b)
        pto.store(o + 5, 5 // b)
        b //= 2
        pto.store(o + 6, -9 // b)
        pto.store(o + 7, -9 // (b * 0 + pto.get_lane_id()))

    for a in (-5, -1, 0, 5):
        o = pto.alloc_tensor(8 * kind.bits // 8, kind)
        pto.launch(k, grid=1, block=1, args=(o, a, 0))
        assert o.numpy().tolist() == [-1, a, -1, -5, -1, -1, -1, -1]


def test_a_divisor_that_cannot_be_zero_is_not_looked_at():
    @pto.kernel
    def k(o, x: pto.s32, y: pto.ptr(pto.u8)):
        pto.store(o, x // (pto.load(y) + 1))

    @pto.kernel
    def zero(o, x: pto.s32, y: pto.ptr(pto.u8)):
        pto.store(o, x // pto.load(y))

    kinds = (pto.ptr(pto.s32), pto.s32, pto.ptr(pto.u8))
    compares = [kernel.compile_types(*kinds).text.count("cmp.") for kernel in (k, zero)]
    assert compares[1] == compares[0] + 1, compares


def test_ranges_that_are_known_make_it_shorter():
    text = make([7, 100]).compile_types(pto.ptr(pto.s32), pto.ptr(pto.s32), pto.ptr(pto.u8), pto.s32).text
    assert "mulhi.u32" in text and "xor" not in text, text  # no sign to think of


@pytest.mark.parametrize("name", ["s8", "u8", "s16", "u16", "s32", "u32"])
def test_no_division_is_left(name):
    dtype = getattr(pto, name)
    wide = pto.s32 if dtype.bits < 32 else dtype
    kinds = (pto.ptr(wide), pto.ptr(wide), pto.ptr(dtype), pto.s32)
    text = make([3, 7, 10, 641, 1000]).compile_types(*kinds).text
    assert "div." not in text and "rem." not in text


def test_a_scalar_parameter_and_a_negative_or_64_bit_divisor():
    @pto.kernel
    def k(o, n: pto.s32, m: pto.u32, w: pto.s64):
        pto.store(o, n // 7)
        pto.store(o + 1, n % 7)
        pto.store(o + 2, pto.s32(m // 7))
        pto.store(o + 3, n // -7)
        pto.store(o + 4, n % -7)
        pto.store(o + 5, pto.s32(w // 1000))
        pto.store(o + 6, pto.s32(w % 1000))

    for n in (-50, -49, -1, 0, 48, 49, -(2**31), 2**31 - 1):
        o = pto.alloc_tensor(28, pto.s32)
        pto.launch(k, grid=1, block=1, args=(o, n, n % 2**32, n * 3))
        wanted = [n // 7, n % 7, (n % 2**32) // 7, n // -7, n % -7, n * 3 // 1000, n * 3 % 1000]
        assert o.numpy().tolist() == wanted


def test_a_remainder_as_an_index_of_what_wraps():
    """Addresses take sums apart; what a remainder is made of may have wrapped."""

    @pto.kernel
    def k(o, x, n):
        i = pto.get_global_id()
        pto.store(o + i, pto.load(x + (n + (-2147483648) + i) % 31))

    x = np.arange(32, dtype=np.int32)
    for n in (-5, -2, 0, 7):
        o = pto.alloc_tensor(128, pto.s32)
        pto.launch(k, grid=1, block=32, args=(o, pto.Tensor.from_numpy(x), n))
        wrapped = (np.arange(32) + n - 2**31).astype(np.int64).astype(np.int32)
        assert (o.numpy() == wrapped % 31).all()


def test_reciprocals_are_exact_up_to_their_limit():
    random = np.random.default_rng(3)
    for largest in (2**32 - 1, 2**31 - 1, 65535, 255, 12345):
        for d in (*range(3, 300), *map(int, random.integers(3, 2**32, 500))):
            found = reciprocal(d, largest)
            if found is None:
                continue
            m, s = found
            assert 0 < m < 2**32
            top = largest // d * d
            for x in {0, 1, d - 1, d, top - 1, top, largest, *map(int, random.integers(0, largest, 5))}:
                if 0 <= x <= largest:
                    assert x * m >> (32 + s) == x // d
