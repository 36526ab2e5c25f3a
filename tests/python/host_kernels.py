# SPDX-License-Identifier: Apache-2.0
"""Kernels that tests of pypto's host side launch, and scripts in interpreters of their own."""

import subprocess
import sys
import textwrap

import pytest

import pypto as pto

SPIN_TEXT = """
.kernel spin(ptr.u32 x, u32 rounds)
    mov.u32    r0, 0
again:
    add.u32    r0, r0, 1
    cmp.lt.u32 p0, r0, rounds
@p0 bra again
    load.u32   r1, hbm[x]
    add.u32    r1, r1, 1
    store.u32  hbm[x], r1
    exit
.end
"""
SPIN = pto.assemble(SPIN_TEXT)
WILD = pto.assemble(
    """
.kernel wild(ptr.u32 x)
    mov.u32   r0, 1000000
    store.u32 hbm[x + r0*4], r0
    exit
.end
""",
    filename="wild.pto",
)
ONE = {"grid": 1, "block": 1}


def run_script(text: str, head: str = "", timeout: float = 60, **options) -> subprocess.CompletedProcess:
    """A script in an interpreter of its own, behind `head`; SPIN and ONE are defined. A hang is a failure."""
    names = f"import numpy as np, pypto as pto\nSPIN = pto.assemble({SPIN_TEXT!r})\nONE = {ONE!r}\n"
    script = names + head + textwrap.dedent(text)
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=timeout, **options)


@pytest.fixture(autouse=True)
def sim_device():
    """Each test begins on "sim" and leaves nothing behind."""
    pto.device("sim")
    yield
    pto.sync()
