# SPDX-License-Identifier: Apache-2.0
"""Command lines of the programs, and the files that they name."""

import json
import os
import pathlib
import subprocess

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("PTO_BIN_DIR", ROOT / "build/release/bin"))

KERNEL = """.pto 1
.kernel k(ptr.u32 a)
    mov.u32      r0, %gid.x
    store.u32    hbm[a + r0*4], r0
    exit
.end
"""
ENDLESS = """.pto 1
.kernel k(ptr.u32 a)
    mov.u32      r0, 7
    mov.u32      r1, 0
    store.u32    hbm[a], r0
again:
    add.u32      r1, r1, 1
    bra          again
.end
"""
EMULATED = "emulated:reference"
SIM = ["ptosim", "k.pto", "-a", "a=@a.npy"]
PROF = ["ptoprof", "run", "k.pto", "-a", "a=@a.npy", "-d", EMULATED]


def program(name):
    if not (BIN / name).exists():
        pytest.skip(f"built without {name}")
    return BIN / name


def run(folder, *words, **options):
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "timeout": 120, **options}
    environment = dict(os.environ, HOME=str(folder))
    return subprocess.run([program(words[0]), *words[1:]], cwd=folder, text=True, env=environment,
                          **options)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with a file of each kind. No test may change it."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "k.pto").write_text(KERNEL)
    (folder / "endless.pto").write_text(ENDLESS)
    (folder / "text.ptobj").write_text(KERNEL)
    (folder / "program.npy").write_text(KERNEL)
    (folder / "inc.pto").write_text(".equ N, 1\n")
    (folder / "main.pto").write_text('.include "inc.pto"\n' + KERNEL)
    (folder / "link.pto").symlink_to("k.pto")
    (folder / "sub").mkdir()
    (folder / "m.json").write_text(json.dumps({"name": "m", "based_on": "reference",
                                               "description": "d", "source": "s"}))
    np.save(folder / "a.npy", np.zeros(4, np.uint32))
    np.save(folder / "e.npy", np.zeros(4, np.uint32))
    assert run(folder, "ptoas", "k.pto").returncode == 0
    done = run(folder, "ptoprof", "run", "k.pto", "-a", "a=@a.npy", "-d", EMULATED, "-o", "p.json")
    assert done.returncode == 0, done.stderr
    return folder


def expect_wrong_usage(folder, command, message):
    done = run(folder, *command)
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert f"error: {message}" in done.stderr


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
