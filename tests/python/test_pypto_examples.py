# SPDX-License-Identifier: Apache-2.0
"""The examples in Python run, and the kernels on the pages of the documentation compile."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys

import pypto
import pytest
from pypto_ptosim import ROOT, define

EXAMPLES = sorted((ROOT / "examples" / "python").glob("*.py"))
PAGES = [ROOT / "docs" / "kernel-language.md"]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(path, tmp_path):
    if "pypto.debug" in path.read_text() and importlib.util.find_spec("pypto.debug") is None:
        pytest.skip("needs pypto.debug")
    done = subprocess.run(
        [sys.executable, str(path)], cwd=tmp_path, capture_output=True, text=True, timeout=120, env=os.environ
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout


def blocks():
    for page in PAGES:
        for i, text in enumerate(re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.M | re.S)):
            yield pytest.param(text, id=f"{page.stem}-{i}")


@pytest.mark.parametrize("text", blocks())
def test_kernels_of_the_pages_compile(text):
    scope = define(text, f"<page {abs(hash(text))}>", {})
    kernels = [value for value in scope.values() if isinstance(value, pypto.Kernel)]
    assert kernels
    for kernel in kernels:
        assert kernel.object


def test_the_listing_of_the_page_is_what_the_compiler_prints():
    page = PAGES[0].read_text()
    shown = re.search(r"^```\n(\.pto 1\n\.kernel saxpy.*?)^```$", page, re.M | re.S)[1]
    text = re.search(r"^```python\n(.*?)^```$", page, re.M | re.S)[1]
    kernel = define(text, "<page saxpy>", {})["saxpy"]
    listing = kernel.compile_types(pypto.ptr(), pypto.ptr(), pypto.f32, pypto.s32).asm
    numbers = re.compile(r"// \d+: ")
    assert numbers.sub("// ", listing) == numbers.sub("// ", shown)
