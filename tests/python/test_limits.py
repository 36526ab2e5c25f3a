# SPDX-License-Identifier: Apache-2.0
"""Limits of instructions and cycles: a run that needs just so many has completed, one more stops it."""

import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("PTO_BIN_DIR", ROOT / "build/release/bin"))

ADD = """.pto 1
.kernel k(ptr.u32 a, u32 n)
    mov.u32 r0, %gid.x
    cmp.ge.u32 p0, r0, n
@p0 exit
    load.u32 r1, hbm[a + r0*4]
    add.u32 r1, r1, 1
    store.u32 hbm[a + r0*4], r1
    exit
.end
"""
# Blocks that a gang does not take, and warps that part.
BARRIER = """.pto 1
.kernel k(ptr.u32 a, u32 n)
    mov.u32 r0, %gid.x
    mov.u32 r2, %tid.x
    cmp.lt.u32 p0, r2, 32
    barrier_block 0
@p0 bra low
    add.u32 r2, r2, 1
    add.u32 r2, r2, 1
low:
    store.u32 hbm[a + r0*4], r2
    exit
.end
"""
# Longer than a turn of one block.
LONG = """.pto 1
.kernel k(ptr.u32 a, u32 n)
    mov.u32 r0, %gid.x
    mov.u32 r2, 30000
again:
    sub.u32 r2, r2, 1
    cmp.ne.u32 p0, r2, 0
@p0 bra again
    store.u32 hbm[a + r0*4], r0
    exit
.end
"""
LANES = {"add": (64, 64), "barrier": (20, 96), "long": (17, 32)}
FILES = {"add": ADD, "barrier": BARRIER, "long": LONG}
UNTIMED = {
    "functional": ["--functional", "--threads", "1"],
    "threads": ["--functional", "--threads", "3"],
    "checked": ["--functional", "--checks=mem,init,sync"],
    "lockstep": ["--schedule", "lockstep"],
    "greedy": ["--schedule", "greedy"],
    "random": ["--schedule", "random:3"],
}
TIMED = {
    "reference": ["-m", "reference"],
    "ascend950": ["-m", "ascend950"],
    "fused": ["-m", "reference-fused"],
    "timed checks": ["-m", "reference", "--checks=mem,init,sync"],
    "sampled": ["-m", "reference", "--set", "cores=2", "--set", "blocks_per_core=1", "--sample", "4"],
}
CASES = [(kernel, mode) for kernel in FILES for mode in [*UNTIMED, *TIMED]
         if kernel != "long" or mode in ("functional", "threads")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("limits")
    for name, text in FILES.items():
        (path / f"{name}.pto").write_text(text)
    return path


def command(kernel, mode, grid=None):
    blocks, lanes = LANES[kernel]
    blocks = grid or blocks
    size = blocks * lanes
    return [f"{kernel}.pto", "-g", str(blocks), "-b", str(lanes), "-a", f"a=zeros:u32[{size}]",
            "-a", f"n={size}", *(UNTIMED | TIMED)[mode]]


def ptosim(folder, *words, status=None):
    done = subprocess.run([BIN / "ptosim", *words], cwd=folder, text=True, capture_output=True, timeout=120)
    assert status is None or done.returncode == status, (words, done.stdout, done.stderr)
    return done


def figures(folder, *words, status=0):
    return json.loads(ptosim(folder, *words, "--json", status=status).stdout)


@pytest.mark.parametrize("kernel, mode", CASES)
def test_a_run_that_ends_with_the_last_instruction_has_completed(folder, kernel, mode):
    words = command(kernel, mode)
    free = figures(folder, *words)
    count = free["warp_instructions"]
    for limit in (count, count + 1):
        limited = figures(folder, *words, "--max-instructions", str(limit))
        assert limited == free
    stopped = figures(folder, *words, "--max-instructions", str(count - 1), status=1)
    assert stopped["status"] == "limit"
    for limit in (1, count // 2):
        stopped = figures(folder, *words, "--max-instructions", str(limit), status=1)
        assert (stopped["status"], stopped["blocks_done"] < LANES[kernel][0]) == ("limit", True)


@pytest.mark.parametrize("kernel, mode", [case for case in CASES if case[1] in TIMED])
@pytest.mark.parametrize("grid", [1, None])
def test_a_run_that_ends_with_the_last_cycle_has_completed(folder, kernel, mode, grid):
    words = command(kernel, mode, grid)
    free = figures(folder, *words)
    cycles = free["cycles"]
    for limit in (cycles, cycles + 1):
        assert figures(folder, *words, "--max-cycles", str(limit)) == free
    for limit in (1, cycles // 2, cycles - 1):
        stopped = figures(folder, *words, "--max-cycles", str(limit), status=1)
        assert stopped["status"] == "limit"
    assert stopped["cycles"] <= cycles


def test_what_was_done_past_the_limit_is_not_called_stopped(folder):
    words = command("add", "functional", 4)
    count = figures(folder, *words)["warp_instructions"]
    done = ptosim(folder, *words, "--max-instructions", str(count - 1), status=1)
    assert f"ptosim: took more than --max-instructions {count - 1}: 4 of 4 blocks done" in done.stderr
    words = command("add", "ascend950", 4)
    cycles = figures(folder, *words)["cycles"]
    done = ptosim(folder, *words, "--max-cycles", str(cycles - 1), status=1)
    assert f"ptosim: took more than --max-cycles {cycles - 1}: 4 of 4 blocks done" in done.stderr


# ---------------------------------------------------------------- samples

SAMPLE = ["t.pto", "-b", "64", "-m", "reference", "--sample", "4"]


@pytest.fixture(scope="module")
def sample(folder):
    (folder / "t.pto").write_text(ADD)
    return folder


def whole(sample, *words, blocks=5000, size=320000, status=0):
    done = ptosim(sample, *SAMPLE, "-g", str(blocks), "-a", f"a=zeros:u32[{size}]", "-a", "n=320000", *words,
                  "--json", status=status)
    return json.loads(done.stdout)


@pytest.mark.parametrize("limit", [100, 1000, 20000, 40000, 60000])
def test_a_sample_that_stops_tells_its_own_cycles(sample, limit):
    """As far from the start as the blocks that are done, as a whole run tells."""
    stopped = whole(sample, "--max-instructions", str(limit), status=1)
    assert stopped["status"] == "limit"
    exact = json.loads(ptosim(sample, *SAMPLE[:-2], "-g", "5000", "-a", "a=zeros:u32[320000]", "-a", "n=320000",
                              "--max-instructions", str(limit), "--json", status=1).stdout)
    assert 0.7 * exact["cycles"] - 100 <= stopped["cycles"] <= 1.1 * exact["cycles"] + 100


def test_a_sample_with_a_fault_tells_its_own_cycles(sample):
    all_of_it = whole(sample)["cycles"]
    fault = whole(sample, size=300000, status=1)
    assert fault["status"] == "fault"
    share = fault["blocks_done"] / 5000
    assert 0.9 < share < 0.95
    assert fault["cycles"] < all_of_it
    assert abs(fault["cycles"] - share * all_of_it) < 0.02 * all_of_it
    early = whole(sample, size=64, status=1)
    assert early["sample"] is None and early["cycles"] < all_of_it / 10


def test_cycles_limit_a_sample_too(sample):
    free = whole(sample)
    cycles = free["cycles"]
    for limit in (cycles, cycles + 1):
        assert whole(sample, "--max-cycles", str(limit)) == free
    for limit in (1, 100, cycles // 2, cycles - 1):
        stopped = whole(sample, "--max-cycles", str(limit), status=1)
        assert stopped["status"] == "limit"
        assert stopped["cycles"] <= limit and stopped["blocks_done"] < 5000
    text = ptosim(sample, *SAMPLE, "-g", "5000", "-a", "a=zeros:u32[320000]", "-a", "n=320000", "--max-cycles",
                  str(cycles // 2), status=1)
    assert f"ptosim: stopped at --max-cycles {cycles // 2}: " in text.stderr


# ---------------------------------------------------------------- the debugger


@pytest.mark.parametrize("engine", [["-m", "reference"], ["-m", "ascend950"], ["--lockstep"]])
@pytest.mark.parametrize("history", ["0", "64"])
def test_the_debugger_counts_alike(folder, engine, history):
    words = ["ptodbg", "add.pto", "-nx", "-g", "2", "-b", "64", "-a", "a=zeros:u32[128]", "-a", "n=128",
             "--history", history, *engine]

    def run(setting, *limit):
        commands = [f"set {setting} {n}" for n in limit] + ["run"]
        return subprocess.run([BIN / words[0], *words[1:]], cwd=folder, text=True, capture_output=True,
                              input="\n".join(commands) + "\n", timeout=120)

    free = run("max-instructions")
    assert free.returncode == 0 and "The kernel has finished: 2 blocks" in free.stdout, free.stderr
    count = 2 * 2 * 7
    for limit in (count, count + 1):
        done = run("max-instructions", limit)
        assert (done.returncode, done.stdout) == (0, free.stdout)
    assert "A limit was reached" in run("max-instructions", count - 1).stdout
    if "--lockstep" not in engine:
        cycles = int(free.stdout.split(" cycles, ")[0].split()[-1])
        for limit in (cycles, cycles + 1):
            done = run("max-cycles", limit)
            assert (done.returncode, done.stdout) == (0, free.stdout)
        assert "A limit was reached" in run("max-cycles", cycles - 1).stdout
