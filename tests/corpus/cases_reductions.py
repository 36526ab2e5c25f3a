# SPDX-License-Identifier: Apache-2.0
"""reduction, softmax, layernorm, scan, histogram: many elements make one."""

import numpy as np

from .case import Launch, Topic, ceil_div, extent, several, single
from .reference import F32, block_tree, fma32, halving_tree, strided_sums, warp_tree

block_sum_topic = Topic("reduction/block_sum.pto")
warp_sum_topic = Topic("reduction/warp_sum.pto")
softmax_topic = Topic("softmax/softmax.pto")
layernorm_topic = Topic("layernorm/layernorm.pto")
block_scan_topic = Topic("scan/block_scan.pto")
multi_scan_topic = Topic("scan/multi_block_scan.pto")
histogram_topic = Topic("histogram/histogram.pto", "atomics")

TOPICS = [
    block_sum_topic,
    warp_sum_topic,
    softmax_topic,
    layernorm_topic,
    block_scan_topic,
    multi_scan_topic,
    histogram_topic,
]


def _block_sums(x, grid, block):
    lanes = strided_sums(x, grid * block)
    return np.array([halving_tree(lanes[b * block : (b + 1) * block]) for b in range(grid)], F32)


SUM_SIZES = [(1, 1, 1), (1, 2, 64), (31, 1, 32), (1000, 3, 100), (5000, 2, 1024), (4097, 5, 256)]


@block_sum_topic.sizes(SUM_SIZES, (4097, 5, 256))
def block_sum(rng, n, grid, block):
    x = rng.standard_normal(n).astype(F32)
    sums = _block_sums(x, grid, block)
    buffers = {"x": x, "sums": np.zeros(grid, F32)}
    return single("block_sum", grid, block, buffers, {"n": n}, {"sums": sums})


@block_sum_topic.sizes([(10000, 7, 256)], (10000, 7, 256), tags=["multi-launch"])
def two_level_sum(rng, n, grid, block):
    x = rng.standard_normal(n).astype(F32)
    sums = _block_sums(x, grid, block)
    total = _block_sums(sums, 1, 32)
    first = {"x": "x", "sums": "sums", "n": n}
    second = {"x": "sums", "sums": "total", "n": grid}
    launches = [
        Launch("block_sum", extent(grid), extent(block), first, ("sums",)),
        Launch("block_sum", extent(1), extent(32), second, ("total",)),
    ]
    buffers = {"x": x, "sums": np.zeros(grid, F32), "total": np.zeros(1, F32)}
    return several(launches, buffers, {"sums": sums, "total": total})


def _warp_sum(kernel, rng, rows, cols):
    x = rng.standard_normal((rows, cols)).astype(F32)
    sums = warp_tree(strided_sums(x, 32))
    buffers = {"x": x, "sums": np.zeros(rows, F32)}
    scalars = {"rows": rows, "cols": cols}
    return single(kernel, ceil_div(rows, 4), 128, buffers, scalars, {"sums": sums})


WARP_SUM_SIZES = [(1, 1), (3, 31), (5, 32), (7, 33), (33, 200)]


@warp_sum_topic.sizes(WARP_SUM_SIZES, (33, 200))
def warp_sum_shfl(rng, rows, cols):
    return _warp_sum("warp_sum_shfl", rng, rows, cols)


@warp_sum_topic.sizes(WARP_SUM_SIZES, (33, 200))
def warp_sum_reduce(rng, rows, cols):
    return _warp_sum("warp_sum_reduce", rng, rows, cols)


def _softmax(kernel, rng, rows, cols, grid, block):
    x = (4 * rng.standard_normal((rows, cols))).astype(F32)
    x[0, 0] = 80.0  # one that would overflow without the maximum
    wide = x.astype(np.float64)
    e = np.exp(wide - wide.max(axis=1, keepdims=True))
    y = (e / e.sum(axis=1, keepdims=True)).astype(F32)
    buffers = {"x": x, "y": np.zeros_like(x)}
    scalars = {"rows": rows, "cols": cols}
    return single(kernel, grid, block, buffers, scalars, {"y": y}, rtol=1e-5, atol=1e-30)


@softmax_topic.sizes([(1, 1), (3, 31), (9, 33), (17, 128)], (9, 33))
def softmax_warp(rng, rows, cols):
    return _softmax("softmax_warp", rng, rows, cols, ceil_div(rows, 4), 128)


BLOCK_ROW_SIZES = [(1, 1, 1, 32), (3, 31, 2, 48), (4, 1000, 3, 256), (2, 5001, 1, 1024)]


@softmax_topic.sizes(BLOCK_ROW_SIZES, (4, 1000, 3, 256), tags=["block-scoped"])
def softmax_block(rng, rows, cols, grid, block):
    return _softmax("softmax_block", rng, rows, cols, grid, block)


NORM_SIZES = [(1, 1, 32), (3, 31, 48), (4, 100, 1000), (5, 1000, 256), (2, 4097, 1024)]


@layernorm_topic.sizes(NORM_SIZES, (5, 1000, 256))
def layernorm(rng, rows, cols, block):
    x = (3 + 2 * rng.standard_normal((rows, cols))).astype(F32)
    gamma, beta = (rng.standard_normal(cols).astype(F32) for _ in range(2))
    eps, count = F32(1e-5), F32(cols)
    mean = block_tree(strided_sums(x, block)) / count
    centred = x - mean[:, None]
    squares = strided_sums(centred, block, add=lambda total, v: fma32(v, v, total))
    scale = F32(1.0) / np.sqrt(block_tree(squares) / count + eps)
    y = fma32(centred * scale[:, None], gamma, beta)
    buffers = {"x": x, "gamma": gamma, "beta": beta, "y": np.zeros_like(x)}
    return single("layernorm", rows, block, buffers, {"cols": cols, "eps": eps}, {"y": y})


def _numbers(rng, n):
    x = rng.integers(-(2**20), 2**20, n, dtype=np.int32)
    x[0] = 2**31 - 5  # sums wrap
    return x, np.cumsum(x.astype(np.int64)).astype(np.int32)


@block_scan_topic.sizes([(1, 32), (31, 32), (33, 64), (1000, 256), (5000, 1024)], (1000, 256))
def block_scan(rng, n, block):
    x, scanned = _numbers(rng, n)
    buffers = {"x": x, "y": np.zeros(n, np.int32)}
    return single("block_scan", 1, block, buffers, {"n": n}, {"y": scanned})


SCAN_SIZES = [(1, 32), (5, 32), (127, 32), (128, 32), (129, 32), (4099, 64), (10007, 256)]


@multi_scan_topic.sizes(SCAN_SIZES, (4099, 64), tags=["multi-launch"])
def multi_block_scan(rng, n, block):
    x, scanned = _numbers(rng, n)
    tiles = ceil_div(n, 4 * block)
    tiles_block = max(32, 32 * ceil_div(tiles, 4 * 32))
    tile_args = {"x": "x", "y": "y", "sums": "sums", "n": n}
    sums_args = {"x": "sums", "y": "offsets", "sums": "total", "n": tiles}
    offset_args = {"y": "y", "offsets": "offsets", "n": n}
    launches = [
        Launch("scan_tiles", extent(tiles), extent(block), tile_args, ("y", "sums")),
        Launch("scan_tiles", extent(1), extent(tiles_block), sums_args, ("offsets", "total")),
        Launch("add_offsets", extent(tiles), extent(block), offset_args, ("y",)),
    ]
    ends = np.minimum(np.arange(1, tiles + 1) * 4 * block, n) - 1
    buffers = {
        "x": x,
        "y": np.zeros(n, np.int32),
        "sums": np.zeros(tiles, np.int32),
        "offsets": np.zeros(tiles, np.int32),
        "total": np.zeros(1, np.int32),
    }
    expected = {"y": scanned, "offsets": scanned[ends], "total": scanned[-1:]}
    return several(launches, buffers, expected)


def _histogram(kernel, rng, n, grid, block):
    x = np.minimum(rng.exponential(30.0, n), 255).astype(np.uint8)  # some bins crowded, some empty
    bins = rng.integers(0, 5, 256, dtype=np.uint32)  # counts are added to what is there
    expected = bins + np.bincount(x, minlength=256).astype(np.uint32)
    return single(kernel, grid, block, {"x": x, "bins": bins}, {"n": n}, {"bins": expected})


HISTOGRAM_SIZES = [(1, 1, 32), (3, 1, 1), (1001, 2, 100), (10000, 4, 256)]


@histogram_topic.sizes(HISTOGRAM_SIZES, (1001, 2, 100))
def histogram_global(rng, n, grid, block):
    return _histogram("histogram_global", rng, n, grid, block)


@histogram_topic.sizes(HISTOGRAM_SIZES + [(7, 3, 1024)], (1001, 2, 100))
def histogram_shared(rng, n, grid, block):
    return _histogram("histogram_shared", rng, n, grid, block)
