# SPDX-License-Identifier: Apache-2.0
"""Errors of the kernel compiler: what they say and where they point.

Each case of pypto_errors.txt is a body of a kernel `k(a, b, o, n, x)` (a, b, o pointers to f32; n s32;
x f32) and the message it gives. `python3 test_pypto_errors.py` rewrites the messages; read the difference.
"""

from __future__ import annotations

import pathlib
import textwrap

import numpy as np
import pypto as pto
import pypto_ptosim as ptosim
import pytest

FILE = pathlib.Path(__file__).with_name("pypto_errors.txt")
HEAD = "@pto.kernel\ndef k(a, b, o, n, x):\n"


class Tensor:
    _pto_is_tensor_ = True
    dtype = np.float32


def helper_of_the_host(v):
    return v + 1


class Thing:
    pass


SCOPE = {
    "pto": pto, "np": np, "host": helper_of_the_host, "thing": Thing(), "table": np.zeros(4),
    "NAMES": ("one", "two"),
}  # fmt: skip


def message_of(body: str) -> str:
    """What compiling the kernel says."""
    before, _, body = body.rpartition("---\n")
    text = before + HEAD + textwrap.indent(body, "    ")
    try:
        scope = ptosim.define(text, "k.py", dict(SCOPE))
        scope["k"].compile((Tensor(), Tensor(), Tensor(), 5, 1.5)).object
    except pto.CompileError as error:
        return str(error) + "\n"
    return "no error\n"


def cases() -> list[tuple[str, str]]:
    found = []
    for part in FILE.read_text().split("=====\n")[1:]:
        body, _, message = part.partition("-----\n")
        found.append((body, message))
    return found


@pytest.mark.parametrize("case", cases(), ids=lambda case: case[0].strip().splitlines()[-1][:60])
def test_message(case):
    body, message = case
    assert message_of(body) == message
    assert "no error" not in message


def test_there_are_many():
    assert len(cases()) > 90


def rewrite() -> None:
    intro = FILE.read_text().split("=====\n")[0]
    parts = [f"=====\n{body}-----\n{message_of(body)}" for body, _ in cases()]
    FILE.write_text(intro + "".join(parts))


if __name__ == "__main__":
    rewrite()
