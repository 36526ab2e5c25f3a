# SPDX-License-Identifier: Apache-2.0
"""Kernels that ask for too much are refused at once; large ones compile in time that grows with their size."""

from __future__ import annotations

import linecache
import resource
import sys
import time
import warnings

import numpy as np
import pypto as pto
import pypto_ptosim as ptosim
import pytest

SECONDS = 20  # for a refusal, on a machine that does other things too
HEAD = "@pto.kernel\ndef k(a, o, n):\n    i = pto.get_global_id()\n"


def define(text: str, **scope) -> pto.Kernel:
    file = f"<limits {len(linecache.cache)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    names = {"pto": pto, "np": np, **scope}
    exec(compile(text, file, "exec"), names)
    return names["k"]


def build(body: str, head: str = HEAD, **scope):
    """The kernel with that body, compiled."""
    text = head + "".join(f"    {line}\n" for line in body.splitlines())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return define(text, **scope).compile_types(pto.ptr(), pto.ptr(), pto.s32)


HUGE = (1 << 20,) * (1 << 19)
REFUSED = {
    "range": ("for j in pto.static_range(10**9):\n    pto.store(o + j, 1.0)", "unrolling 1000000000 rounds"),
    "range beyond 64 bits": ("for j in pto.static_range(10**30):\n    pass", "unrolling 1" + "0" * 30),
    "range down": ("for j in pto.static_range(0, -10**9, -1):\n    pass", "unrolling 1000000000 rounds"),
    "captured range": ("for j in R:\n    pass", "unrolling 1000000000 rounds"),
    "rounds that are few": (
        "for j in pto.static_range(4000):\n    for q in pto.static_range(4000):\n        pto.store(o + q, 1.0)",
        "more than 65536 instructions at this place",
    ),
    "rounds without instructions": (
        "x = 0\nfor j in pto.static_range(4000):\n    for q in pto.static_range(4000):\n        x = q\n"
        "pto.store(o, x)",
        "more than 262144 statements at this place",
    ),
    "functions": (
        "x = pto.load(a)\nfor j in pto.static_range(4000):\n    x = f(x)\npto.store(o, x)",
        "more than 65536 instructions at this place",
    ),
    "const_array": ("t = pto.const_array(BIG)\npto.store(o, pto.load(t + i))", "const_array of 10000000 values"),
    "captured list": ("t = pto.const_array(L)\npto.store(o, pto.load(t + i))", "has 524288 values; a kernel takes"),
    "captured tuple": ("pto.store(o, H[3])", "has 524288 values; a kernel takes"),
    "product of a tuple": ("t = (1, 2) * 10**9", "this has 2000000000 values"),
    "tuples that double": (
        "t = (1, 2)\nfor j in pto.static_range(60):\n    t = t + t\npto.store(o, t[0])",
        "this has 524288 values",
    ),
    "strings that double": (
        "t = 'ab'\nfor j in pto.static_range(60):\n    t = t + t\npto.store(o, 1.0)",
        "this has 524288 values",
    ),
    "integers that double": (
        "x = 3\nfor j in pto.static_range(60):\n    x = x * x\npto.store(o, x & 1)",
        "has more than 8192 bits",
    ),
    "power": ("x = 10 ** (10**9)", "has more than 8192 bits"),
    "power of a huge": ("x = (10 ** 2000) ** 2000", "has more than 8192 bits"),
    "shift": ("x = 1 << 10**9", "has more than 8192 bits"),
    "pow": ("x = pow(3, 10**9)", "has more than 8192 bits"),
    "factorial": ("x = math.factorial(10**8)", "factorial of more than 500"),
    "captured integer": ("x = BITS & 1", "an integer of 1000001 bits"),
    "registers": (
        "\n".join(f"v{j} = pto.load(a + {j} * n)" for j in range(2000))
        + "\npto.barrier_block()\n"
        + "\n".join(f"pto.store(o + {j} * n, v{j})" for j in range(2000)),
        "keeps so many values alive at once that",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_too_much_is_refused_at_once(case):
    import math

    body, message = REFUSED[case]
    scope = {
        "R": range(10**9), "H": HUGE, "L": list(HUGE), "BITS": 1 << 10**6, "math": math,
        "BIG": np.zeros(10**7, np.float32),
    }  # fmt: skip

    text = "@pto.func\ndef f(x):\n" + "".join(f"    x = x * 1.5 + {j}\n" for j in range(20)) + "    return x\n"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = time.process_time()
    with pytest.raises(pto.CompileError, match=message.replace("(", r"\(")) as caught:
        build(body, text + HEAD, **scope)
    assert time.process_time() - begin < SECONDS
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1_000_000  # KB
    assert len(str(caught.value)) < 1500


def lines_run(work) -> int:
    """Lines of Python that a call executes: what it costs, whatever the machine."""
    count = 0

    def trace(frame, event, argument):
        nonlocal count
        count += event == "line"
        return trace

    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(None)
    return count


GROWING = {
    "straight": lambda m: f"for j in pto.static_range({m}):\n    pto.store(o + (i * 3 + j), pto.load(a + j) + 1.0)",
    "conditions": lambda m: f"for j in pto.static_range({m}):\n    if pto.load(a + (i + j)) > 1.0:\n        pto.store(o + j, 1.0)",
    "joins": lambda m: f"s = 0.0\nfor j in pto.static_range({m}):\n    if pto.load(a + j) > 1.0:\n        s = s + pto.load(o + j)\n    else:\n        s = s * pto.load(o + j)\npto.store(o, s)",
    "elif": lambda m: "s = 0.0\n" + "".join(f"{'el' if j else ''}if n == {j}:\n    s = pto.load(a + {j})\n" for j in range(m)) + "pto.store(o + i, s)",
    "loops": lambda m: f"for j in pto.static_range({m}):\n    s = 0\n    for q in range(n):\n        s = s + pto.load(a + (q * 7 + j))\n    pto.store(o + j, s)",
    "predicates": lambda m: f"for r in pto.static_range({m}):\n    v = ()\n    for j in pto.static_range(20):\n        v = v + (pto.load(a + (i + j)) > 0.5,)\n    pto.barrier_block()\n    for j in pto.static_range(20):\n        if v[j]:\n            pto.store(o + j, 1.0)",
    "registers": lambda m: f"for r in pto.static_range({m}):\n    v = ()\n    for j in pto.static_range(150):\n        v = v + (pto.load(a + (i + j)),)\n    pto.barrier_block()\n    for j in pto.static_range(150):\n        pto.store(o + j, v[j])",
}  # fmt: skip
SMALL = {"registers": 2, "predicates": 3}


@pytest.mark.parametrize("shape", GROWING)
def test_compile_time_grows_with_the_size(shape):
    small = SMALL.get(shape, 40)
    costs = [lines_run(lambda m=m: build(GROWING[shape](m))) for m in (small, 4 * small)]
    assert costs[1] < 6 * costs[0], costs


def test_copies_of_a_loop_that_needs_a_type_are_many():
    """Each copy begins with an integer that becomes a float; 300 of them settle."""
    code = build(GROWING["loops"](300))
    assert code.text.count("loop_") >= 300


def test_registers_that_wait_at_different_times_share_scratchpad():
    code = build(GROWING["registers"](6))
    assert code.registers <= 127 and 0 < code.scratchpad_bytes < 64 * 1024
    x = np.arange(200, dtype=np.float32)
    o = np.zeros(150, np.float32)
    ptosim.run_text(code.text, code.name, ["a", "o", "n"], [x, o, 1], 1, 1, ["--functional"])
    assert (o == x[:150]).all()
