# SPDX-License-Identifier: Apache-2.0
"""`ptosim --sample` against the full run: kernels of the corpus, all shipped profiles, several block sizes.

docs/performance.md states the largest error; the full run has to agree with that sentence.
"""

import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PTOSIM = pathlib.Path(os.environ.get("PTO_BIN_DIR", ROOT / "build/release/bin")) / "ptosim"
EXAMPLES = ROOT / "examples"
GRIDS = {"ascend950": 1024, "reference": 64, "reference-fused": 64}  # 16 waves


def launch(kernel, grid, block):
    """Words for ptosim: a lane an element, or a row of 40 elements a warp, or of a block's size a block."""
    n, rows = grid * block, grid * block // 32
    file, args = {
        "vector_add": ("vector_add.pto", [f"a=rand:f32[{n}]", f"b=ones:f32[{n}]", f"o=zeros:f32[{n}]", f"n={n}"]),
        "softmax_warp": (
            "softmax/softmax.pto",
            [f"x=rand:f32[{rows * 40}]", f"y=zeros:f32[{rows * 40}]", f"rows={rows}", "cols=40"],
        ),
        "layernorm": (
            "layernorm/layernorm.pto",
            [f"x=rand:f32[{n}]", f"gamma=ones:f32[{block}]", f"beta=ones:f32[{block}]", f"y=zeros:f32[{n}]",
             f"cols={block}", "eps=1e-5"],
        ),
        "histogram_shared": (
            "histogram/histogram.pto",
            [f"x=rand:u8[{4 * n}]", "bins=zeros:u32[256]", f"n={4 * n}"],
        ),
    }[kernel]  # fmt: skip
    words = [str(EXAMPLES / file), "--kernel", kernel, "--grid", str(grid), "--block", str(block)]
    return words + [word for arg in args for word in ("--arg", arg)]


def cycles(words):
    done = subprocess.run([PTOSIM, *words], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return int(re.search(r" in (?:about )?(\d+) cycles", done.stdout)[1])


def stated_percent(waves):
    """The bound in docs/performance.md for a number of waves."""
    page = re.sub(r"\s+", " ", (ROOT / "docs/performance.md").read_text())
    return float(re.search(rf"`--sample {waves}` is off by at most ([\d.]+) %", page)[1])


def check(words, *counts):
    full = cycles(words)
    for waves in counts:
        sampled = cycles([*words, "--sample", str(waves)])
        assert abs(sampled / full - 1) <= stated_percent(waves) / 100, (waves, full, sampled)


@pytest.mark.parametrize("block", [64, 256])
@pytest.mark.parametrize("kernel", ["vector_add", "softmax_warp", "layernorm", "histogram_shared"])
@pytest.mark.parametrize("profile", sorted(GRIDS))
def test_the_error_is_what_the_page_states(profile, kernel, block):
    check([*launch(kernel, GRIDS[profile], block), "--profile", profile], 4, 8)


def test_the_worst_case_that_the_page_names():
    check([*launch("vector_add", 2048, 512), "--profile", "ascend950"], 8)
