# SPDX-License-Identifier: Apache-2.0
"""ptodbg through its pipes: scripts, init files, JSON, and 10,000 random commands."""

import json
import os
import pathlib
import random
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("PTO_BIN_DIR", ROOT / "build" / "release" / "bin"))
PTODBG = BIN / "ptodbg"

pytestmark = pytest.mark.skipif(not PTODBG.exists(), reason="built without readline")

KERNEL = """.pto 1
.kernel sums(ptr.u32 o, u32 n)
.shared buf, u32[64]
    mov.u32   r0, %tid.x
    add.u32   r1, r0, 1
    mov.u32   r2, 0
    mov.u32   r3, 0
again:
    cmp.ge.u32 p0, r3, n
@p0 bra       done
    mul.u32   r7, r3, r1
    add.u32   r2, r2, r7
    add.u32   r3, r3, 1
    bra       again
done:
    store.u32 l1[buf + r0*4], r2
    barrier_block
    xor.b32   r4, r0, 1
    load.u32  r5, l1[buf + r4*4]
    mov.u32   r6, %gid.x
    store.u32 hbm[o + r6*4], r5
    exit
.end
"""
LAUNCH = ["--grid", "2", "--block", "64", "--arg", "o=zeros:u32[128]", "--arg", "n=3"]


@pytest.fixture
def kernel(tmp_path):
    (tmp_path / "k.pto").write_text(KERNEL)
    return tmp_path


def debug(folder, *options, text="", home=None):
    environment = dict(os.environ, HOME=str(home or folder))
    return subprocess.run([PTODBG, "k.pto", *LAUNCH, *options], cwd=folder, input=text, text=True,
                          env=environment, capture_output=True, timeout=120)


def test_order_of_scripts_commands_and_stdin(kernel):
    (kernel / ".ptodbginit").write_text("echo init\n")
    (kernel / "a").write_text("echo script\n# a comment\n\necho again\n")
    done = debug(kernel, "-ex", "echo one", "-x", "a", "-ex", "echo two", text="echo stdin\n")
    assert done.stdout.split() == ["init", "one", "script", "again", "two", "stdin"]
    assert done.returncode == 0
    done = debug(kernel, "-nx", "-batch", "-x", "a", text="echo stdin\n")
    assert done.stdout.split() == ["script", "again"]


def test_no_prompt_and_nothing_for_empty_lines_off_a_terminal(kernel):
    done = debug(kernel, "-nx", text="start\nstep\n\n\n\nprint $pc\n")
    assert done.stdout.count("cycle 0 ") == 1
    assert "(pto)" not in done.stdout
    assert done.stdout.endswith("$1 = 1\n")


def test_the_last_line_needs_no_end(kernel):
    assert debug(kernel, "-nx", text="echo last").stdout == "last\n"


@pytest.mark.parametrize("text, status", [
    ("run\n", 0), ("run\nnonsense\n", 1), ("quit 5\necho x\n", 5), ("", 0),
])
def test_exit_status(kernel, text, status):
    assert debug(kernel, "-nx", text=text).returncode == status


def test_a_script_that_fails_says_where(kernel):
    (kernel / "a").write_text("start\nprint $r0\nprint nothing\necho not reached\n")
    done = debug(kernel, "-nx", "--batch", "-x", "a")
    assert done.returncode == 1
    assert "a:3: the script ends here" in done.stderr
    assert "not reached" not in done.stdout


def test_json_is_one_object_a_command(kernel):
    done = debug(kernel, "-nx", "--json",
                 text="break again\nrun\nprint $r1@*\ninfo warps\nstp\nwatch o[0]\nc\n")
    objects = [json.loads(line) for line in done.stdout.splitlines()]
    assert [o["command"] for o in objects] == [
        "break again", "run", "print $r1@*", "info warps", "stp", "watch o[0]", "c"]
    assert [o["ok"] for o in objects] == [True, True, True, True, False, True, True]
    assert objects[1]["data"]["stop"]["reason"] == "breakpoint"
    assert objects[1]["data"]["stop"]["stop_points"] == [1]
    assert objects[2]["data"]["value"] == list(range(1, 65))
    assert len(objects[3]["data"]["warps"]) == 2
    assert "did you mean 'step'" in objects[4]["error"]


def test_reverse_steps_in_a_long_run_are_quick(tmp_path):
    """Ten steps back in a run of ten million lane insns take well under a second each."""
    (tmp_path / "k.pto").write_text(KERNEL)
    text = "run\n" + "reverse-step\n" * 10 + "print $r3\n"
    begin = time.monotonic()
    free = subprocess.run([PTODBG, "k.pto", *LAUNCH[:-1], "n=13000", "-nx"], cwd=tmp_path,
                          input="run\n", text=True, capture_output=True, timeout=120)
    middle = time.monotonic()
    back = subprocess.run([PTODBG, "k.pto", *LAUNCH[:-1], "n=13000", "-nx"], cwd=tmp_path,
                          input=text, text=True, capture_output=True, timeout=120)
    took = (time.monotonic() - middle) - (middle - begin)
    assert "The kernel has finished" in free.stdout
    assert back.stdout.endswith("$1 = 13000\n"), back.stdout[-300:]
    assert took < 5, took  # the machine may be busy; alone it is a tenth


def test_ten_thousand_random_commands(kernel):
    """Every command is answered, nothing crashes, and the kernel still computes what it should."""
    rng = random.Random(20)
    places = ["again", "done", "9", "k.pto:12", "*5", "sums", "nowhere", "+1", ""]
    values = ["$r0", "$r2", "$r3", "$p0", "n", "o[3]", "buf[5]", "$r1@*", "o[0]@8", "l1:16", "$",
              "%ctaid.x", "$pc", "(u8)$r2", "hbm:o+4", "$r99", "1/0", "((f16*)o)[2]", "$cycle"]
    def command():
        n = rng.randrange(1, 5)
        place, value = rng.choice(places), rng.choice(values)
        return rng.choice([
            f"step {n}", f"stepw {n}", "next", "continue", "finish", f"until {place}",
            f"advance {place}", f"reverse-step {n}", f"reverse-stepw {n}", "reverse-continue",
            f"goto {rng.randrange(120)}", f"goto #{rng.randrange(200)}", "checkpoint",
            f"restart {n}", f"break {place}", f"tbreak {place} if {value} == {n}",
            f"watch {value}", f"rwatch {value}", f"awatch {value}", "catch nan", "catch barrier",
            f"ignore {n} {n}", f"condition {n} {value} > 1", f"enable {n}", f"disable {n}",
            f"delete {n}", "delete", "info breakpoints", f"block {n - 1}", f"warp {n - 1}",
            f"lane {n * 7}", f"thread {n * 20}", "core 0", f"print {value}", f"print/x {value}",
            f"x/{n}xw l1:{n * 4}", "x", f"lanes {value}", "diff lane 0 lane 1", "list",
            f"list {place}", "disassemble", "backtrace", f"display {value}", f"undisplay {n}",
            "info blocks", "info warps", "info lanes", "info cores", "info registers",
            "info predicates", "info locals", "info l1", "info tiles", "info cache", "info events",
            "info barriers", "info allocations", "info findings", "info launch", "info machine",
            "info history", f"info writer {value}", f"reverse-watch {value}", "timeline 0 9",
            "bubbles", "info stalls", "why", "help", "help step", "show", f"set lanes-shown {n}",
            f"set {value} = {n}", f"set history-mb {rng.choice([0, 1, 64])}", "run", "start",
            "kill", "nonsense", "", "#", f"set mode {rng.choice(['timed', 'lockstep'])}",
            f"set checks {rng.choice(['all', 'none'])}", "commands 1\nprint $pc\nend",
        ])
    count = 10000
    lines = []
    for i in range(count):
        lines += [command(), f"echo MARK {i}"]
    lines += ["delete", "set checks none", "set mode timed", "set history-mb 8", "run", "print o[0]@4"]
    done = debug(kernel, "-nx", text="\n".join(lines) + "\n")
    marks = [line for line in done.stdout.splitlines() if line.startswith("MARK ")]
    assert marks == [f"MARK {i}" for i in range(count)]
    assert done.returncode in (0, 1), done.stderr[-2000:]
    assert "internal error" not in done.stderr
    assert done.stdout.rstrip().endswith("{6, 3, 12, 9}"), done.stdout[-500:]
