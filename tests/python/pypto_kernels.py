# SPDX-License-Identifier: Apache-2.0
"""Small kernels of pypto: how tests define, compile, run and list them."""

from __future__ import annotations

import math

import numpy as np
import pypto as pto
import pypto_ptosim as ptosim

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


def from_text(text, name="k", **scope):
    """A kernel from text, with its source where inspect finds it."""
    file = f"<kernel text {abs(hash(text))}>"
    return ptosim.define(text, file, {**scope, "pto": pto, "np": np, "math": math})[name]
