# SPDX-License-Identifier: Apache-2.0
"""matmul and attention: lanes against the matrix unit."""

import functools

import numpy as np

from .case import Topic, ceil_div, single
from .reference import F32, matmul32

tile_f32_topic = Topic("matmul/tile_f32.pto", "mma", "block-scoped")
tile_f16_topic = Topic("matmul/tile_f16.pto", "mma", "block-scoped", "f16")
lanes_topic = Topic("matmul/matmul_lanes.pto")
mma_topic = Topic("matmul/matmul_mma.pto", "mma", "block-scoped")
attention_topic = Topic("attention/attention.pto", "mma", "block-scoped")

TOPICS = [tile_f32_topic, tile_f16_topic, lanes_topic, mma_topic, attention_topic]


def _matmul(kernel, dtype, m, n, k, grid, block, inputs):
    a, b, c = inputs(m, n, k, dtype)
    buffers = {"a": a, "b": b, "c": np.zeros((m, n), F32)}
    return single(kernel, grid, block, buffers, {"m": m, "n": n, "k": k}, {"c": c})


def _random(rng):
    def inputs(m, n, k, dtype):
        a, b = (rng.standard_normal(shape).astype(dtype) for shape in ((m, k), (k, n)))
        return a, b, matmul32(a, b)

    return inputs


@functools.lru_cache
def _large(m, n, k, dtype):
    """The product of the large cases, shared by the kernels: the exact reference takes seconds."""
    return _random(np.random.default_rng(512))(m, n, k, dtype)


TILE_SIZES = [(1, 1, 1), (64, 64, 64), (31, 33, 65), (64, 48, 200), (5, 64, 128)]


@tile_f32_topic.sizes(TILE_SIZES, (64, 48, 200))
def tile_serial_f32(rng, m, n, k):
    return _matmul("tile_serial_f32", np.float32, m, n, k, 1, 32, _random(rng))


@tile_f32_topic.sizes(TILE_SIZES, (64, 48, 200))
def tile_double_f32(rng, m, n, k):
    return _matmul("tile_double_f32", np.float32, m, n, k, 1, 32, _random(rng))


@tile_f16_topic.sizes(TILE_SIZES, (64, 48, 200))
def tile_serial_f16(rng, m, n, k):
    return _matmul("tile_serial_f16", np.float16, m, n, k, 1, 32, _random(rng))


@tile_f16_topic.sizes(TILE_SIZES, (64, 48, 200))
def tile_double_f16(rng, m, n, k):
    return _matmul("tile_double_f16", np.float16, m, n, k, 1, 32, _random(rng))


def _grid(m, n):
    return ceil_div(n, 64), ceil_div(m, 64)


MATRIX_SIZES = [(1, 1, 1), (65, 33, 17), (100, 130, 70), (128, 64, 96)]


@lanes_topic.sizes(MATRIX_SIZES, (100, 130, 70))
def matmul_lanes(rng, m, n, k):
    return _matmul("matmul_lanes", np.float32, m, n, k, _grid(m, n), 256, _random(rng))


@lanes_topic.sizes([(512, 512, 512)], (512, 512, 512), tags=["large"])
def matmul_lanes_large(rng, m, n, k):
    return _matmul("matmul_lanes", np.float32, m, n, k, _grid(m, n), 256, _large)


@mma_topic.sizes(MATRIX_SIZES, (100, 130, 70))
def matmul_mma_f32(rng, m, n, k):
    return _matmul("matmul_mma_f32", np.float32, m, n, k, _grid(m, n), 32, _random(rng))


@mma_topic.sizes(MATRIX_SIZES, (100, 130, 70), tags=["f16"])
def matmul_mma_f16(rng, m, n, k):
    return _matmul("matmul_mma_f16", np.float16, m, n, k, _grid(m, n), 32, _random(rng))


@mma_topic.sizes([(512, 512, 512)], (512, 512, 512), tags=["large"])
def matmul_mma_f32_large(rng, m, n, k):
    return _matmul("matmul_mma_f32", np.float32, m, n, k, _grid(m, n), 32, _large)


@mma_topic.sizes([(512, 512, 512)], (512, 512, 512), tags=["large", "f16"])
def matmul_mma_f16_large(rng, m, n, k):
    return _matmul("matmul_mma_f16", np.float16, m, n, k, _grid(m, n), 32, _large)


ATTENTION_SIZES = [(1, 1, 1), (31, 63, 33), (32, 64, 64), (70, 200, 48), (33, 129, 64)]


@attention_topic.sizes(ATTENTION_SIZES, (70, 200, 48))
def attention(rng, queries, keys, dim):
    q = rng.standard_normal((queries, dim)).astype(F32)
    k, v = (rng.standard_normal((keys, dim)).astype(F32) for _ in range(2))
    scale = F32(1 / np.sqrt(dim))
    scores = np.float64(scale) * (q.astype(np.float64) @ k.T.astype(np.float64))
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    expected = ((e / e.sum(axis=1, keepdims=True)) @ v.astype(np.float64)).astype(F32)
    scalars = {"queries": queries, "keys": keys, "dim": dim, "scale": scale}
    buffers = {"q": q, "k": k, "v": v, "o": np.zeros_like(q)}
    grid = ceil_div(queries, 32)
    return single("attention", grid, 256, buffers, scalars, {"o": expected}, rtol=1e-4, atol=1e-5)
