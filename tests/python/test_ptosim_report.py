# SPDX-License-Identifier: Apache-2.0
"""Reports of ptosim: figures that must add up, latencies that a profile lacks, memory, bad files."""

import json
import os
import pathlib
import random
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PTOSIM = pathlib.Path(os.environ.get("PTO_BIN_DIR", ROOT / "build/release/bin")) / "ptosim"
VECTOR_ADD = ROOT / "examples/vector_add.pto"

TANH = """
.pto 1
.kernel k(ptr.f32 a)
    mov.u32      r0, %tid.x
    load.f32     r1, hbm[a + r0*4]
    tanh.f32     r1, r1
    store.f32    hbm[a + r0*4], r1
    exit
.end
"""


def ptosim(folder, *words, status=0):
    done = subprocess.run([PTOSIM, *words], cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == status, (done.stdout, done.stderr)
    return done


def arguments(n):
    arrays = [f"a=ones:f32[{n}]", f"b=ones:f32[{n}]", f"o=zeros:f32[{n}]", f"n={n}"]
    return [word for value in arrays for word in ("--arg", value)]


def saved(folder, *words):
    ptosim(folder, *words, "--report", "r.json")
    return json.loads((folder / "r.json").read_text())


@pytest.mark.parametrize("profile", ["reference", "reference-fused", "ascend950"])
def test_figures_add_up(tmp_path, profile):
    run = saved(
        tmp_path, VECTOR_ADD, "--grid", "6", "--block", "200", *arguments(1100), "-m", profile
    )
    assert run["schema"] == "pto-run-1"
    # By warp, by line, by insn and in all: the same cycles.
    whole = run["issued_cycles"] + sum(run["stalls"].values())
    by_warp = sum(w["issued"] + sum(w["stalls"].values()) for w in run["warps"])
    assert by_warp == whole == sum(w["elapsed"] for w in run["warps"])
    for lists in ("lines", "insns"):
        charged = sum(x["issues"] + sum(x["stalls"].values()) for x in run[lists])
        assert charged == whole - run["stalls"].get("empty", 0) + sum(
            x["stalls"].get("empty", 0) for x in run[lists]
        )
    assert sum(insn["issues"] for insn in run["insns"]) == run["warp_insns"]
    assert sum(unit["issues"] for unit in run["units"]) == run["warp_insns"]
    assert sum(core["insns"] for core in run["core_counters"]) == run["warp_insns"]
    assert sum(core["blocks"] for core in run["core_counters"]) == 6 == run["blocks_done"]
    # One FMA of two operations for each element; 1100 loaded twice and stored once.
    assert run["roofline"]["flops"] == 2 * 1100
    # The timeline holds every warp insn.
    columns = run["timeline"]["columns"]
    first, last = columns.index("first_warp"), columns.index("last_warp")
    assert sum(row[last] - row[first] + 1 for row in run["timeline"]["rows"]) == run["warp_insns"]
    # Resident warps over time integrate to the time of the blocks.
    step = run["cycles"] / len(run["occupancy"])
    resident = sum(point[1] for point in run["occupancy"]) * step
    spans = sum(end - start for _, _, _, start, end in run["blocks"]) * run["warps_per_block"]
    assert resident == pytest.approx(spans, rel=1e-6)


def test_a_saved_run_reads_back_as_it_was(tmp_path):
    words = [VECTOR_ADD, "--grid", "3", "--block", "64", *arguments(180), "-m", "ascend950"]
    saved(tmp_path, *words)
    (tmp_path / "r.json").rename(tmp_path / "a.json")
    saved(tmp_path, *words)
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "r.json").read_bytes()
    text = ptosim(tmp_path, "diff", "a.json", "r.json").stdout
    assert "as fast" in text and "no source line differs" in text
    slower = saved(tmp_path, *words, "--set", "hbm.latency=1400")
    difference = json.loads(ptosim(tmp_path, "diff", "--json", "a.json", "r.json").stdout)
    before = json.loads((tmp_path / "a.json").read_text())
    cycles = next(c for c in difference["counters"] if c["name"] == "cycles")
    assert (cycles["before"], cycles["after"]) == (before["cycles"], slower["cycles"])
    miss = next(c for c in difference["warp_cycles"] if c["name"] == "cache-miss")
    assert miss["after"] - miss["before"] == slower["stalls"]["cache-miss"] - before["stalls"]["cache-miss"]
    assert miss["after"] > miss["before"]


def test_damaged_runs_are_refused_in_words(tmp_path):
    saved(tmp_path, VECTOR_ADD, "--block", "64", *arguments(64), "-m", "reference")
    text = (tmp_path / "r.json").read_text()
    randomness = random.Random(7)
    for attempt in range(150):
        kind = attempt % 3
        at = randomness.randrange(len(text))
        if kind == 0:
            damaged = text[:at]
        elif kind == 1:
            damaged = re.sub(r"\d+", lambda m: randomness.choice([m[0], m[0], "-1", "1e99", "99999999999", "[]"]), text)
        else:
            damaged = text[:at] + randomness.choice('{}[]",:x\x00') + text[at + 1 :]
        (tmp_path / "d.json").write_text(damaged)
        done = subprocess.run(
            [PTOSIM, "diff", "d.json", "d.json"], cwd=tmp_path, capture_output=True, text=True, timeout=20
        )
        assert done.returncode in (0, 1), (attempt, done.returncode, done.stderr)
        assert done.returncode == 0 or done.stderr.startswith("ptosim: error: d.json: "), done.stderr


def test_a_latency_that_the_profile_lacks(tmp_path):
    profile = json.loads((ROOT / "isa/machines/reference.json").read_text())
    del profile["latency"]["TANH"]
    profile["name"] = "no-tanh"
    (tmp_path / "p.json").write_text(json.dumps(profile))
    (tmp_path / "k.pto").write_text(TANH)
    words = ["k.pto", "--block", "32", "--arg", "a=ones:f32[32]", "-m", "p.json"]
    done = ptosim(tmp_path, *words)
    assert "warning: profile no-tanh has no latency for TANH.f32: 8 cycles are assumed" in done.stderr
    assert "--set latency.TANH.f32.latency=N" in done.stderr
    done = ptosim(tmp_path, *words, "--strict", status=1)
    assert "error: profile no-tanh has no latency for TANH.f32" in done.stderr
    assert done.stdout == ""
    # What the advice says helps; without timing the question does not arise.
    assert ptosim(tmp_path, *words, "--strict", "--functional").stderr == ""
    run = saved(tmp_path, *words)
    assert run["missing_keys"] == ["TANH.f32"] and run["fallback_latency"] == 8
    assert "TANH.f32" in ptosim(tmp_path, *words, "--counters").stdout


def test_profiles_side_by_side(tmp_path):
    words = [VECTOR_ADD, "--grid", "4", "--block", "256", *arguments(1024)]
    words += ["-m", "reference", "-m", "reference-fused", "-m", "ascend950", "--report", "r.json"]
    done = ptosim(tmp_path, *words)
    rows = [line.split() for line in done.stdout.splitlines()]
    assert [row[0] for row in rows[2:5]] == ["reference", "reference-fused", "ascend950"]
    # The report is of the first.
    run = json.loads((tmp_path / "r.json").read_text())
    assert run["profile"] == "reference" and str(run["cycles"]) == rows[2][3]


def test_a_big_timed_run_keeps_under_a_gigabyte(tmp_path):
    """2^24 elements: 192 MiB of buffers, 16384 blocks, 4 million warp instructions."""
    if "release" not in str(PTOSIM.resolve()) and "PTO_SLOW_TESTS" not in os.environ:
        pytest.skip("takes minutes without optimisation")
    n = 1 << 24
    script = (
        "import resource, subprocess, sys\n"
        "status = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode\n"
        "print(status, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n"
    )
    command = [PTOSIM, VECTOR_ADD, "--grid", str(n // 1024), "--block", "1024", *arguments(n)]
    command += ["-m", "ascend950", "--report", tmp_path / "r.html", "--trace-blocks", "64"]
    done = subprocess.run(
        [sys.executable, "-c", script, *command], capture_output=True, text=True, timeout=280
    )
    status, kilobytes = map(int, done.stdout.split())
    assert status == 0, done.stderr
    assert kilobytes < 1_000_000, f"{kilobytes} KB"
    assert (tmp_path / "r.html").stat().st_size < 8_000_000
