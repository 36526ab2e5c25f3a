# SPDX-License-Identifier: Apache-2.0
"""2,000 random kernels against plain Python, lane by lane; and proof that a wrong compiler is caught.

More on demand: `pypto_fuzz.py --count N --seed S`.
"""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import os

import pypto
import pypto_fuzz
import pytest
from pypto.compiler import combine, emit, regalloc

PROGRAMS = 2000
FIRST_SEED = 1_000_000
PART = 50


def part(first: int) -> list[str]:
    return [m for seed in range(first, first + PART) if (m := pypto_fuzz.check(seed))]


def test_random_programs_agree_with_python():
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(min(os.cpu_count() or 1, 8), context) as pool:
        parts = pool.map(part, range(FIRST_SEED, FIRST_SEED + PROGRAMS, PART))
        wrong = [message for messages in parts for message in messages]
    assert not wrong, wrong[0]


def a_mad_that_forgets_to_add(monkeypatch):
    real = combine.fuse

    def fuse(program):
        real(program)
        for block in program.blocks:
            for insn in block.insns:
                if insn.op == "mad.s32":
                    insn.args[2] = "0"

    monkeypatch.setattr(combine, "fuse", fuse)


def a_guard_that_is_not_negated(monkeypatch):
    real = emit._guard
    monkeypatch.setattr(emit, "_guard", lambda arm, block, negated: real(arm, block, False))


def registers_that_are_shared(monkeypatch):
    real = regalloc.Graph._interfere

    def interfere(self, live_out):
        real(self, {key: set() for key in live_out})

    monkeypatch.setattr(regalloc.Graph, "_interfere", interfere)


@pytest.mark.parametrize(
    "fault", [a_mad_that_forgets_to_add, a_guard_that_is_not_negated, registers_that_are_shared]
)
def test_a_wrong_compiler_is_caught(fault, monkeypatch):
    fault(monkeypatch)

    def is_noticed(seed: int) -> bool:
        try:
            return bool(pypto_fuzz.check(seed))
        except pypto.PtoError:  # an access out of bounds
            return True

    assert any(is_noticed(seed) for seed in range(60)), "60 programs, none of them noticed"
