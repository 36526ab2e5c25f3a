# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of the ISA in numpy, for expected results that must agree to the last bit."""

from __future__ import annotations

import numpy as np

F32 = np.float32


def fma32(a, b, c) -> np.ndarray:
    """a*b + c in f32 with one rounding.

    The product of two f32 is exact in f64. The sum is rounded to f64 and then to f32, which goes
    wrong only if the f64 lies exactly between two f32 and was itself rounded: these are repaired by
    the sign of the f64 rounding error. (Results that are subnormal in f32 are not repaired.)
    """
    with np.errstate(over="ignore", invalid="ignore"):
        shape = np.broadcast_shapes(np.shape(a), np.shape(b), np.shape(c))
        product = np.broadcast_to(np.multiply(a, b, dtype=np.float64), shape).ravel()
        addend = np.broadcast_to(np.asarray(c, dtype=np.float64), shape).ravel()
        total = product + addend
        result = total.astype(F32)
        halfway = np.flatnonzero((total.view(np.int64) & 0x1FFFFFFF) == 0x10000000)
        if len(halfway):
            left, right, middle = product[halfway], addend[halfway], total[halfway]
            back = middle - left
            error = (left - (middle - back)) + (right - back)
            repair = np.flatnonzero(error)
            nudged = np.nextafter(middle[repair], np.copysign(np.inf, error[repair]))
            result[halfway[repair]] = nudged.astype(F32)
    return result.reshape(shape)


def warp_tree(values: np.ndarray, combine=np.add, identity=0.0) -> np.ndarray:
    """REDUCE over the last axis (at most 32 lanes): distances 16, 8, 4, 2, 1."""
    values = np.asarray(values)
    missing = 32 - values.shape[-1]
    pad = np.full(values.shape[:-1] + (missing,), identity, values.dtype)
    level = np.concatenate([values, pad], axis=-1)
    for distance in (16, 8, 4, 2, 1):
        level = combine(level[..., :distance], level[..., distance : 2 * distance])
    return level[..., 0]


def strided_sums(values: np.ndarray, lanes: int, add=lambda total, v: total + v) -> np.ndarray:
    """What each lane sums that takes elements lane, lane + lanes, ... of the last axis in turn."""
    rows, count = values.shape[:-1], values.shape[-1]
    totals = np.zeros(rows + (lanes,), values.dtype)
    for start in range(0, count, lanes):
        part = values[..., start : start + lanes]
        width = part.shape[-1]
        totals[..., :width] = add(totals[..., :width], part)
    return totals


def block_tree(lanes: np.ndarray) -> np.ndarray:
    """examples/common/block_reduce.pto, block_sum: a tree in each warp, then one over the warps."""
    count = lanes.shape[-1]
    warps = [warp_tree(lanes[..., w : w + 32]) for w in range(0, count, 32)]
    return warp_tree(np.stack(warps, axis=-1))


def halving_tree(lanes: np.ndarray) -> np.float32:
    """examples/reduction/block_sum.pto: the upper half is added to the lower, until one is left."""
    level = np.array(lanes)
    while len(level) > 1:
        lower = (len(level) + 1) // 2
        upper = len(level) - lower
        level[:upper] = level[:upper] + level[lower:]
        level = level[:lower]
    return level[0]


def matmul32(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A*B in f32 as MMA documents it: fused, k ascending, from zero."""
    a, b = a.astype(F32), b.astype(F32)
    total = np.zeros((a.shape[0], b.shape[1]), F32)
    for k in range(a.shape[1]):
        total = fma32(a[:, k : k + 1], b[k : k + 1, :], total)
    return total


def magic_divisor(divisor: int) -> tuple[int, int, int]:
    """(magic, shift1, shift2) for examples/intdiv/intdiv.pto, div_rem_mulhi."""
    log = (divisor - 1).bit_length()
    magic = (2**32 * (2**log - divisor)) // divisor + 1
    return magic, min(log, 1), max(log - 1, 0)
