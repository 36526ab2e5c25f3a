# SPDX-License-Identifier: Apache-2.0
"""vector_add, saxpy, half, intdiv, floormod, mandelbrot: every element for itself."""

import numpy as np

from .case import Topic, ceil_div, single
from .reference import F32, fma32, magic_divisor

vector_add_topic = Topic("vector_add.pto")
saxpy_topic = Topic("saxpy/saxpy.pto")
half_topic = Topic("half/add_f16.pto", "f16")
intdiv_topic = Topic("intdiv/intdiv.pto")
floormod_topic = Topic("floormod/floormod.pto")
mandelbrot_topic = Topic("mandelbrot/mandelbrot.pto", "divergent")

TOPICS = [vector_add_topic, saxpy_topic, half_topic, intdiv_topic, floormod_topic, mandelbrot_topic]


VECTOR_SIZES = [(1, 256), (31, 32), (100, 100), (1000, 256), (1024, 256), (5000, 1024)]


@vector_add_topic.sizes(VECTOR_SIZES, (1024, 256))
def vector_add(rng, n, block):
    a, b = (rng.standard_normal(n).astype(F32) for _ in range(2))
    buffers = {"a": a, "b": b, "o": np.zeros(n, F32)}
    return single("vector_add", ceil_div(n, block), block, buffers, {"n": n}, {"o": a + b})


def _saxpy(kernel, rng, n, grid, block):
    x, y = (rng.standard_normal(n).astype(F32) for _ in range(2))
    alpha = F32(1.7)
    scalars = {"alpha": alpha, "n": n}
    return single(kernel, grid, block, {"x": x, "y": y}, scalars, {"y": fma32(alpha, x, y)})


SAXPY_SIZES = [(1, 1, 32), (7, 1, 1), (33, 2, 48), (1000, 2, 128), (4099, 4, 256)]


@saxpy_topic.sizes(SAXPY_SIZES, (4099, 4, 256))
def saxpy(rng, n, grid, block):
    return _saxpy("saxpy", rng, n, grid, block)


@saxpy_topic.sizes(SAXPY_SIZES + [(4096, 3, 64)], (4099, 4, 256))
def saxpy_x4(rng, n, grid, block):
    return _saxpy("saxpy_x4", rng, n, grid, block)


def _add_f16(kernel, rng, n, lanes):
    a, b = (rng.standard_normal(n).astype(np.float16) for _ in range(2))
    special = np.array([np.inf, -np.inf, np.nan, 65504, 6e-8, -0.0], np.float16)
    a[: len(special)] = special[:n]
    buffers = {"a": a, "b": b, "o": np.zeros(n, np.float16)}
    return single(kernel, ceil_div(lanes, 128), 128, buffers, {"n": n}, {"o": a + b})


@half_topic.sizes([1, 2, 33, 1000, 2049], 1000)
def add_f16(rng, n):
    return _add_f16("add_f16", rng, n, n)


@half_topic.sizes([1, 2, 33, 1000, 2049], 2049)
def add_f16x2(rng, n):
    return _add_f16("add_f16x2", rng, n, ceil_div(n, 2))


def _dividends(rng, n):
    a = rng.integers(0, 2**32, n, dtype=np.uint32)
    edges = np.array([0xFFFFFFFF, 0, 1, 0x80000000, 0x7FFFFFFF], np.uint32)
    a[: len(edges)] = edges[:n]
    return a, {"a": a, "q": np.zeros(n, np.uint32), "rem": np.zeros(n, np.uint32)}


DIV_SIZES = [(1, 7), (1000, 1), (1000, 10), (777, 641), (1000, 0x80000000), (1000, 0xFFFFFFFF)]


@intdiv_topic.sizes(DIV_SIZES, (777, 641))
def div_rem(rng, n, divisor):
    a, buffers = _dividends(rng, n)
    q = (a // divisor).astype(np.uint32)
    rem = (a % divisor).astype(np.uint32)
    scalars = {"divisor": divisor, "n": n}
    return single("div_rem", ceil_div(n, 256), 256, buffers, scalars, {"q": q, "rem": rem})


@intdiv_topic.sizes(DIV_SIZES + [(500, 2**31 - 1), (500, 3), (500, 2), (500, 65537)], (777, 641))
def div_rem_mulhi(rng, n, divisor):
    a, buffers = _dividends(rng, n)
    q = (a // divisor).astype(np.uint32)
    rem = (a % divisor).astype(np.uint32)
    magic, shift1, shift2 = magic_divisor(divisor)
    scalars = {"divisor": divisor, "magic": magic, "shift1": shift1, "shift2": shift2, "n": n}
    return single("div_rem_mulhi", ceil_div(n, 256), 256, buffers, scalars, {"q": q, "rem": rem})


def _signed(rng, shape):
    """Dividends and divisors of all magnitudes and signs; no divisor is 0 or (with -2^31) -1."""
    words = rng.integers(-(2**31), 2**31, (2, *np.atleast_1d(shape)), dtype=np.int32)
    x, y = words >> rng.integers(0, 31, words.shape, dtype=np.int32)
    y[(y == 0) | (y == -1)] = 3
    return x, y


@intdiv_topic.sizes([1, 1000], 1000)
def div_rem_elements(rng, n):
    a, b = _signed(rng, n)
    rem = np.fmod(a, b)
    q = ((a.astype(np.int64) - rem) // b).astype(np.int32)
    buffers = {"a": a, "b": b, "q": np.zeros(n, np.int32), "rem": np.zeros(n, np.int32)}
    expected = {"q": q, "rem": rem}
    return single("div_rem_elements", ceil_div(n, 256), 256, buffers, {"n": n}, expected)


@floormod_topic.sizes([(1, 1, 1), (7, 33, 33), (16, 64, 64), (19, 45, 50)], (19, 45, 50))
def floor_mod(rng, rows, cols, pitch):
    x, y = _signed(rng, (rows, pitch))
    z = np.full((rows, pitch), -7, np.int32)  # what lies between cols and pitch stays
    expected = z.copy()
    expected[:, :cols] = np.mod(x, y)[:, :cols]
    scalars = {"rows": rows, "cols": cols, "pitch": pitch}
    grid = (ceil_div(cols, 32), ceil_div(rows, 8))
    return single("floor_mod", grid, (32, 8), {"x": x, "y": y, "z": z}, scalars, {"z": expected})


@mandelbrot_topic.sizes([(1, 1, 50), (33, 17, 100), (64, 48, 0), (96, 64, 128)], (33, 17, 100))
def mandelbrot(rng, width, height, limit):
    x0, y0 = F32(-2.0), F32(-1.25)
    dx, dy = F32(2.5 / width), F32(2.5 / height)
    re_c = np.broadcast_to(fma32(np.arange(width, dtype=F32), dx, x0), (height, width))
    im_c = np.broadcast_to(fma32(np.arange(height, dtype=F32), dy, y0)[:, None], (height, width))
    re, im, re2, im2 = (np.zeros((height, width), F32) for _ in range(4))
    count = np.zeros((height, width), np.uint32)
    inside = np.ones((height, width), bool)
    for _ in range(limit):
        i = np.nonzero(inside)
        im[i] = fma32(re[i] + re[i], im[i], im_c[i])
        re[i] = (re2[i] - im2[i]) + re_c[i]
        re2[i], im2[i] = re[i] * re[i], im[i] * im[i]
        count[i] += 1
        inside[i] = re2[i] + im2[i] <= F32(4.0)
    scalars = {"width": width, "height": height, "limit": limit}
    scalars |= {"x0": x0, "y0": y0, "dx": dx, "dy": dy}
    grid = (ceil_div(width, 16), ceil_div(height, 8))
    buffers = {"out": np.zeros((height, width), np.uint32)}
    return single("mandelbrot", grid, (16, 8), buffers, scalars, {"out": count})
