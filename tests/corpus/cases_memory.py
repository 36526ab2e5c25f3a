# SPDX-License-Identifier: Apache-2.0
"""transpose, gather, spmv, hash: what matters is where the data lie."""

import numpy as np

from .case import Launch, Topic, ceil_div, extent, several, single
from .reference import F32, fma32, warp_tree

transpose_topic = Topic("transpose/transpose.pto")
transpose_async_topic = Topic("transpose/transpose_async.pto", "block-scoped")
gather_topic = Topic("gather/gather.pto")
spmv_topic = Topic("spmv/spmv.pto")
hash_topic = Topic("hash/hash_insert.pto", "atomics")

TOPICS = [transpose_topic, transpose_async_topic, gather_topic, spmv_topic, hash_topic]


def _transpose(kernel, rng, rows, cols, grid):
    source = rng.standard_normal((rows, cols)).astype(F32)
    buffers = {"in": source, "out": np.zeros((cols, rows), F32)}
    scalars = {"rows": rows, "cols": cols}
    return single(kernel, grid, (32, 8), buffers, scalars, {"out": source.T.copy()})


TRANSPOSE_SIZES = [(1, 1), (31, 33), (64, 32), (45, 100), (130, 70)]


def _tiles(rows, cols):
    return ceil_div(cols, 32), ceil_div(rows, 32)


@transpose_topic.sizes(TRANSPOSE_SIZES, (45, 100))
def transpose_naive(rng, rows, cols):
    return _transpose("transpose_naive", rng, rows, cols, _tiles(rows, cols))


@transpose_topic.sizes(TRANSPOSE_SIZES, (45, 100))
def transpose_shared(rng, rows, cols):
    return _transpose("transpose_shared", rng, rows, cols, _tiles(rows, cols))


@transpose_topic.sizes(TRANSPOSE_SIZES, (45, 100))
def transpose_padded(rng, rows, cols):
    return _transpose("transpose_padded", rng, rows, cols, _tiles(rows, cols))


ASYNC_SIZES = [(1, 1, 1), (31, 33, 1), (64, 64, 2), (300, 70, 1), (515, 130, 2)]


@transpose_async_topic.sizes(ASYNC_SIZES, (300, 70, 1))
def transpose_async(rng, rows, cols, blocks_per_column):
    return _transpose("transpose_async", rng, rows, cols, (ceil_div(cols, 64), blocks_per_column))


def _gather(kernel, rng, count, cols, grid):
    table = rng.standard_normal((50, cols)).astype(F32)
    index = rng.integers(0, 50, count, dtype=np.uint32)
    buffers = {"table": table, "index": index, "out": np.zeros((count, cols), F32)}
    scalars = {"count": count, "cols": cols}
    return single(kernel, grid, 128, buffers, scalars, {"out": table[index]})


GATHER_SIZES = [(1, 1), (33, 31), (100, 65), (257, 16)]


@gather_topic.sizes(GATHER_SIZES, (100, 65))
def gather_lane(rng, count, cols):
    return _gather("gather_lane", rng, count, cols, ceil_div(count, 128))


@gather_topic.sizes(GATHER_SIZES, (100, 65))
def gather_coalesced(rng, count, cols):
    return _gather("gather_coalesced", rng, count, cols, ceil_div(count, 8))


def _sparse(rng, rows, cols):
    """Rows of 0 to 12 entries, an empty one, and one that is nearly full."""
    lengths = rng.integers(0, min(cols, 12) + 1, rows)
    lengths[0] = cols - cols // 8
    if rows > 2:
        lengths[1] = 0
    row_start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.uint32)
    columns = np.concatenate([np.sort(rng.permutation(cols)[:length]) for length in lengths])
    values = rng.standard_normal(len(columns)).astype(F32)
    return values, columns.astype(np.uint32), row_start


def _spmv(kernel, rng, rows, cols, lanes):
    """lanes = how many share a row; each sums its entries in order, then a tree joins them."""
    values, columns, row_start = _sparse(rng, rows, cols)
    x = rng.standard_normal(cols).astype(F32)
    y = np.zeros(rows, F32)
    for row in range(rows):
        sums = np.zeros(lanes, F32)
        for at in range(row_start[row], row_start[row + 1]):
            lane = (at - row_start[row]) % lanes
            sums[lane] = fma32(values[at], x[columns[at]], sums[lane])
        y[row] = warp_tree(sums)
    buffers = {
        "values": values,
        "columns": columns,
        "row_start": row_start,
        "x": x,
        "y": np.full(rows, 9, F32),
    }
    return single(kernel, ceil_div(rows * lanes, 128), 128, buffers, {"rows": rows}, {"y": y})


SPMV_SIZES = [(1, 1), (33, 20), (200, 150)]


@spmv_topic.sizes(SPMV_SIZES, (200, 150))
def spmv_lane(rng, rows, cols):
    return _spmv("spmv_lane", rng, rows, cols, 1)


@spmv_topic.sizes(SPMV_SIZES, (200, 150))
def spmv_warp(rng, rows, cols):
    return _spmv("spmv_warp", rng, rows, cols, 32)


HASH_SIZES = [(1, 1, 1), (33, 64, 20), (1000, 64, 64), (2000, 2048, 700)]


@hash_topic.sizes(HASH_SIZES, (2000, 2048, 700), tags=["multi-launch"])
def hash_insert(rng, n, slots, different):
    """n insertions of `different` keys into a table of `slots`; the third case fills all slots."""
    known = rng.choice(2**32, different + 10, replace=False).astype(np.uint32)
    inserted, absent = known[:different], known[different:]
    keys = np.concatenate([inserted, rng.choice(inserted, n - different)])
    rng.shuffle(keys)
    values = rng.integers(0, 1000, n, dtype=np.uint32)
    totals: dict[int, int] = {}
    for key, value in zip(keys.tolist(), values.tolist()):
        totals[key] = totals.get(key, 0) + value
    queries = np.concatenate([inserted, absent])
    answers = np.array([totals.get(key, 0) for key in queries.tolist()], np.uint32)

    table = {"state": "state", "slot_keys": "slot_keys", "sums": "sums", "mask": slots - 1}
    insert_args = {"keys": "keys", "values": "values", "n": n} | table
    find_args = {"queries": "queries", "sums_out": "sums_out", "n": len(queries)} | table
    insert_grid, find_grid = extent(ceil_div(n, 128)), extent(ceil_div(len(queries), 128))
    launches = [
        Launch("hash_insert", insert_grid, extent(128), insert_args, tuple(table)[:3]),
        Launch("hash_find", find_grid, extent(128), find_args, ("sums_out",)),
    ]
    buffers = {"keys": keys, "values": values, "queries": queries}
    buffers |= {"sums_out": np.zeros_like(answers)}
    buffers |= {name: np.zeros(slots, np.uint32) for name in ("state", "slot_keys", "sums")}
    return several(launches, buffers, {"sums_out": answers})
