# SPDX-License-Identifier: Apache-2.0
"""Random kernels of the pypto language, compared lane by lane with plain Python.

The text of a kernel is compiled and simulated, and the same text is executed by Python itself, once for
each lane, with numbers that follow the documented rules (wrapping integers, f32 by numpy). Control flow
is Python's own there, so that nothing of the compiler judges itself.

    pypto_fuzz.py --count 2000 --seed 1     also: --show N prints program N, --keep-going
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

import pypto
from pypto_fuzz_generator import WIDTH, Generator
from pypto_fuzz_reference import LANES, reference
from pypto_ptosim import compiled, define


def inputs(seed: int) -> list:
    r = np.random.default_rng(seed)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 3.4e38, -1.0], np.float32)
    floats = (r.standard_normal(LANES) * 100).astype(np.float32)
    floats[:8] = special
    ints = r.integers(-100, 100, LANES).astype(np.int32)
    ints[:6] = [0, 1, -1, -(2**31), 2**31 - 1, 65536]
    return [
        ints,
        floats,
        r.integers(0, 2**32, LANES, dtype=np.uint64).astype(np.uint32),
        r.integers(0, 256, LANES).astype(np.uint8),
        r.integers(-50, 50, LANES * WIDTH).astype(np.int32),
        np.zeros(LANES * 8, np.int32),
        np.zeros(LANES * 8, np.float32),
        np.zeros(LANES * 8, np.uint32),
        np.zeros(LANES * 8, np.int64),
        np.zeros(8, np.int32),
        int(r.integers(-5, 50)),
        float(np.float32(r.standard_normal())),
    ]


def run_simulated(kernel, values: list, seed: int) -> list:
    """The arrays after the launch: in different orders of warps, now and then under the checks."""
    arrays = [v.copy() if isinstance(v, np.ndarray) else v for v in values]
    tensors = [pypto.Tensor.from_numpy(a) if isinstance(a, np.ndarray) else a for a in arrays]
    schedule = ("", "lockstep", "greedy", f"random:{seed}")[seed % 4]
    checks = "mem,init,race,sync" if seed % 10 == 0 else ""
    launch = pypto.launch(
        kernel, grid=(1, 1, 1), block=(LANES, 1, 1), args=tuple(tensors), schedule=schedule, checks=checks
    )
    launch.wait()
    for finding in launch.checks():
        raise AssertionError(f"a check found: {finding}")
    for array, tensor in zip(arrays, tensors):
        if isinstance(array, np.ndarray):
            pypto.memcpy_d2h(array, tensor)
    return arrays


NAMES = ["xi", "xf", "xu", "xb", "mem", "oi", "of", "ou", "ol", "count"]


def check(seed: int) -> str:
    """Empty if the program of this seed agrees, else what differs."""
    text = Generator(seed).text()
    values = inputs(seed)
    try:
        expected = reference(text, values)
    except ZeroDivisionError:
        return ""
    kernel = define(text, f"<fuzz {seed}>", {"pto": pypto})["fuzzed"]
    got = run_simulated(kernel, values, seed)
    for name, a, b in zip(NAMES, expected, got):
        same = (a == b) | ((a != a) & (b != b))
        if not same.all():
            at = int(np.flatnonzero(~same)[0])
            return (
                f"program {seed}: {name}[{at}] is {b[at]}, Python computes {a[at]}\n"
                + "\n".join(f"{i + 1:3} {line}" for i, line in enumerate(text.splitlines()))
            )
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int)
    parser.add_argument("--keep-going", action="store_true")
    options = parser.parse_args()
    if options.show is not None:
        text = Generator(options.show).text()
        print(text)
        kernel = define(text, f"<fuzz {options.show}>", {"pto": pypto})["fuzzed"]
        print(compiled(kernel, inputs(options.show)).asm)
        print(check(options.show) or "agrees")
        return 0
    bad = 0
    for seed in range(options.seed, options.seed + options.count):
        try:
            message = check(seed)
        except Exception as error:  # noqa: BLE001 a crash of the compiler is a finding
            message = f"program {seed}: {type(error).__name__}: {error}"
            if not options.keep_going:
                print(Generator(seed).text())
                raise
        if message:
            bad += 1
            print(message)
            if not options.keep_going:
                return 1
    print(f"{options.count} programs, {bad} disagree")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
