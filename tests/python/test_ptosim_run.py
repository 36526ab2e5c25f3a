# SPDX-License-Identifier: Apache-2.0
"""ptosim as a process: Ctrl-C, the progress line on a terminal, modes that must agree."""

import json
import os
import pathlib
import pty
import signal
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PTOSIM = pathlib.Path(os.environ.get("PTO_BIN_DIR", ROOT / "build/release/bin")) / "ptosim"

# Block 0 says that it has run; the others never end.
ENDLESS = """
.pto 1
.kernel k(ptr.u32 a)
    mov.u32      r0, %ctaid.x
    cmp.eq.u32   p0, r0, 0
@p0 bra          first
again:
    add.u32      r1, r1, 1 // something changes, so that this is no deadlock
    bra          again
first:
    store.u32    hbm[a], 7
    exit
.end
"""

# About a second or more: many blocks of some work.
SLOW = """
.pto 1
.kernel k()
    mov.u32      r0, 0
again:
    add.u32      r0, r0, 1
    cmp.lt.u32   p0, r0, 2000
@p0 bra          again
    exit
.end
"""


@pytest.mark.parametrize("mode", ["--functional", "--schedule=lockstep", "--schedule=timed"])
def test_interrupt_reports_what_is_known(tmp_path, mode):
    (tmp_path / "k.pto").write_text(ENDLESS)
    command = [PTOSIM, "k.pto", "--grid", "2", mode]
    command += ["--arg", "a=zeros:[1]", "--out", "a=a.bin", "--expect", "a=k.pto", "--print", "a"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=20)
    assert process.returncode == 130, (stdout, stderr)
    assert "ptosim: interrupted: " in stderr
    assert "nothing was compared" in stderr
    assert "a: u32[1]:\n  [0]  7\n" in stdout
    assert "written to a.bin as it was when the run stopped" in stdout
    assert (tmp_path / "a.bin").read_bytes() == b"\7\0\0\0"


def run_on_terminal(command, cwd):
    """What the program writes when its stderr is a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(command, cwd=cwd, stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    seen = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # the other side is closed
            break
        if not part:
            break
        seen += part
    os.close(ours)
    return process.wait(timeout=60), seen.decode()


def test_progress_line(tmp_path):
    (tmp_path / "k.pto").write_text(SLOW)
    command = [PTOSIM, "k.pto", "--grid", "100000", "--block", "32", "--schedule=greedy"]
    limit = ["--max-instructions", "30000000"]
    status, seen = run_on_terminal([*command, *limit], tmp_path)
    assert status == 1
    assert " of 100000 blocks, " in seen
    assert "insns/s" in seen
    assert " left" in seen
    # The line is erased before the message.
    assert seen.endswith("warp instructions executed\r\n")
    assert "\033[Kptosim: stopped at --max-instructions 30000000" in seen
    quiet = run_on_terminal([*command, "--max-instructions", "3000000", "--quiet"], tmp_path)
    assert "blocks, " not in quiet[1]


MODES = [
    ["--functional", "--threads", "1"],
    ["--functional", "--threads", "4"],
    ["--schedule=lockstep"],
    ["--schedule=greedy"],
    ["--schedule=random:5"],
    ["--profile", "reference"],
    ["--profile", "ascend950"],
]


def test_every_mode_computes_the_same(tmp_path):
    outcomes = []
    for mode in MODES:
        command = [PTOSIM, ROOT / "examples/vector_add.pto", "--grid", "5", "--block", "96"]
        command += ["--arg", "a=randn:f32[480]:seed=1", "--arg", "b=randn:f32[480]:seed=2"]
        command += ["--arg", "o=zeros:f32[480]", "--arg", "n=479", "--out", "o=o.bin", "--json"]
        done = subprocess.run([*command, *mode], cwd=tmp_path, capture_output=True, timeout=60)
        assert done.returncode == 0, done.stderr
        counts = json.loads(done.stdout)["warp_instructions"]
        outcomes.append(((tmp_path / "o.bin").read_bytes(), counts))
    assert len(set(outcomes)) == 1
