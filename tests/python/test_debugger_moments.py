# SPDX-License-Identifier: Apache-2.0
"""A moment that one goes back to is the one that was left: state, time and what every command says."""

import json
import os
import pathlib
import random
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("PTO_BIN_DIR", ROOT / "build" / "release" / "bin"))
PTODBG = BIN / "ptodbg"

pytestmark = pytest.mark.skipif(not PTODBG.exists(), reason="built without readline")

LINE = """.kernel k(ptr.u32 a)
    mov.u32 r0, %gid.x
    add.u32 r1, r0, 1
    mul.u32 r1, r1, 3
    store.u32 hbm[a + r0*4], r1
    exit
.end
"""
LOOP = """.kernel k(ptr.u32 a, u32 n)
.shared s, u32[64]
    mov.u32 r0, %gid.x
    mov.u32 r3, %tid.x
    mov.u32 r1, 0
    load.u32 r4, hbm[a + r0*4]
again:
    add.u32 r4, r4, r1
    store.u32 l1[s + r3*4], r4
    barrier_block
    xor.b32 r5, r3, 33
    load.u32 r4, l1[s + r5*4]
    barrier_block
    atom.add.u32 _, hbm[a], 1
    add.u32 r1, r1, 1
    cmp.lt.u32 p0, r1, n
@p0 bra again
    store.u32 hbm[a + r0*4], r4
    exit
.end
"""
FAULT = """.kernel k(ptr.u32 a, u32 n)
    mov.u32 r0, %gid.x
    mov.u32 r1, 0
again:
    add.u32 r2, r0, r1
    store.u32 hbm[a + r2*4], r1
    add.u32 r1, r1, 1
    cmp.lt.u32 p0, r1, n
@p0 bra again
    exit
.end
"""
STUCK = """.kernel k(ptr.u32 a)
    mov.u32 r0, %tid.x
    cmp.lt.u32 p0, r0, 16
@p0 bra skip
    barrier_block
skip:
    exit
.end
"""

ONE_BLOCK = ["-b", "64", "-a", "a=zeros:u32[64]"]
MANY_BLOCKS = ["-g", "90", "-b", "64", "-a", "a=zeros:u32[5760]", "-a", "n=2"]
LAUNCHES = {
    "line": (LINE, ONE_BLOCK),
    "blocks": (LOOP, MANY_BLOCKS),
    "few": (LOOP, ["-g", "3", "-b", "64", "-a", "a=zeros:u32[192]", "-a", "n=4"]),
    "stuck": (STUCK, ONE_BLOCK),
    "fault": (FAULT, ["-g", "4", "-b", "64", "-a", "a=zeros:u32[258]", "-a", "n=5"]),
}
LOOKS = ["print $cycle", "info warps", "info blocks", "why", "info registers", "info stalls",
         "info cache"]


def debug(folder, source, launch, commands, *options):
    (folder / "k.pto").write_text(source)
    done = subprocess.run([PTODBG, "-nx", "--json", "k.pto", *launch, *options], cwd=folder,
                          input="\n".join(commands) + "\n", text=True, capture_output=True,
                          timeout=120)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(commands), done.stderr
    return answers


def text_of(answer):
    # Values are numbered as they are printed.
    text = answer.get("text", "") or answer.get("error", "")
    return text.split(" = ", 1)[1] if text.startswith("$") else text


def stop_of(answer):
    return answer["data"]["stop"]


WAYS = ["run", "break 5\nrun", "break 5 if $cycle >= 3\nrun", "break *5\nrun\ncontinue", "start",
        "start\nstepw 2", "start\nstep", "start\nstep 3\nstepw", "start\ngoto 12",
        "start\ngoto #7", "break 9\nrun\ndelete\nstep 2\ncontinue"]


@pytest.mark.parametrize("mode", ["timed", "lockstep"])
@pytest.mark.parametrize("name", LAUNCHES)
def test_a_checkpoint_is_the_moment_that_was_left(name, mode, tmp_path):
    source, launch = LAUNCHES[name]
    options = ["--lockstep"] if mode == "lockstep" else []
    for way in WAYS:
        leave = way.split("\n") + ["checkpoint"] + LOOKS
        for away in ["restart 1", "reverse-continue\nrestart 1", "step 2\nrestart 1",
                     "delete\ncontinue\nrestart 1", "goto #3\nrestart 1", "goto 1\nrestart 1",
                     "info writer a[0]"]:
            commands = leave + away.split("\n") + LOOKS
            answers = debug(tmp_path, source, launch, commands, *options)
            before = [text_of(one) for one in answers[len(leave) - len(LOOKS):len(leave)]]
            after = [text_of(one) for one in answers[-len(LOOKS):]]
            assert after == before, (way, away)


@pytest.mark.parametrize("name", ["line", "few"])
@pytest.mark.parametrize("mode", ["timed", "lockstep"])
def test_random_walks_come_back(name, mode, tmp_path):
    """Every checkpoint of a walk, in any order, and by its number of insns where that names it."""
    source, launch = LAUNCHES[name]
    options = ["--lockstep"] if mode == "lockstep" else []
    rng = random.Random(name + mode)
    for _ in range(6):
        commands, looks = ["start"], {}

        def look(number):
            looks.setdefault(number, []).append(len(commands))
            commands.extend(LOOKS)

        for number in range(1, 9):
            commands.extend(rng.choice([
                [f"step {rng.randrange(1, 4)}"], [f"stepw {rng.randrange(1, 4)}"],
                [f"reverse-step {rng.randrange(1, 3)}"], [f"goto {rng.randrange(60)}"],
                [f"goto #{rng.randrange(60)}"], [f"tbreak *{rng.randrange(4, 6)}", "continue"],
                ["continue"], ["reverse-continue"]]))
            commands.append("checkpoint")
            look(number)
        for _ in range(12):
            number = rng.randrange(1, 9)
            commands.append(f"restart {number}")
            look(number)
        answers = debug(tmp_path, source, launch, commands, *options)
        for number, places in looks.items():
            texts = [[text_of(one) for one in answers[at:at + len(LOOKS)]] for at in places]
            assert all(text == texts[0] for text in texts), (number, commands)


@pytest.mark.parametrize("condition", ["", " if $cycle >= 3", " if $cycle >= 200",
                                       " if $r0 % 7 == 3"])
@pytest.mark.parametrize("mode", ["timed", "lockstep"])
@pytest.mark.parametrize("name, place", [("line", "5"), ("few", "10"), ("few", "*8")])
def test_going_back_meets_the_stops_of_going_forward(name, place, mode, condition, tmp_path):
    source, launch = LAUNCHES[name]
    options = ["--lockstep"] if mode == "lockstep" else []
    setting = f"break {place}{condition}"
    answers = debug(tmp_path, source, launch, [setting, "run"] + ["continue"] * 40, *options)
    # What follows the end is refused and has no stop.
    stops = [stop_of(one) for one in answers[1:] if "stop" in one.get("data", {})]
    forward = [stop for stop in stops if stop["reason"] == "breakpoint"]
    assert stops[-1]["reason"] == "finished"
    commands = ([setting, "run"] + ["continue"] * len(forward) +
                ["reverse-continue"] * (len(forward) + 1) + ["continue"] * (len(forward) + 1))
    answers = debug(tmp_path, source, launch, commands, *options)
    stops = [stop_of(one) for one in answers[1:]]
    n = len(forward) + 1
    assert stops[:n - 1] == forward
    assert stops[n:2 * n - 1] == forward[::-1]
    assert stops[2 * n - 1]["reason"] == "history-start"
    # And forward again, which meets them once more.
    assert stops[2 * n:3 * n - 1] == forward
    assert stops[3 * n - 1]["reason"] == "finished"


def test_the_launch_is_where_start_stops(tmp_path):
    for options in [[], ["--lockstep"]]:
        for away in ["stepw 1", "stepw 2", "step", "continue"]:
            commands = ["start", *LOOKS, away, "reverse-continue", *LOOKS]
            answers = debug(tmp_path, LINE, ONE_BLOCK, commands, *options)
            n = len(LOOKS)
            assert [text_of(one) for one in answers[-n:]] == [
                text_of(one) for one in answers[1:1 + n]]
            assert text_of(answers[n + 2]).startswith("Back at the launch\ncycle 0, block 0 warp 0")
            assert answers[-n + LOOKS.index("info registers")]["ok"]


def test_steps_back_end_where_the_session_stood(tmp_path):
    answers = debug(tmp_path, LINE, ONE_BLOCK,
                    ["break 5", "run", *LOOKS, "stepw", "reverse-stepw", *LOOKS])
    n = len(LOOKS)
    assert stop_of(answers[1])["cycle"] == 4
    assert stop_of(answers[n + 3])["cycle"] == 4
    assert [text_of(one) for one in answers[-n:]] == [text_of(one) for one in answers[2:2 + n]]
    # Also to the first insn of a block that began late.
    first = debug(tmp_path, LOOP, MANY_BLOCKS,
                  ["break *0 if $block == 70", "run", *LOOKS, "stepw", "reverse-stepw", *LOOKS])
    assert stop_of(first[1])["block"] == 70 and stop_of(first[n + 3])["block"] == 70
    assert [text_of(one) for one in first[-n:]] == [text_of(one) for one in first[2:2 + n]]


def test_a_fault_is_told_wherever_one_comes_from(tmp_path):
    source, launch = LAUNCHES["fault"]
    for catch in [[], ["catch fault"]]:
        answers = debug(tmp_path, source, launch, catch + [
            "run", "checkpoint", "restart 1", "reverse-continue", "restart 1", "goto 1",
            "goto 100000"])[len(catch):]
        assert stop_of(answers[0])["reason"] == "fault"
        for again in (2, 4, 6):
            assert stop_of(answers[again]) == stop_of(answers[0])
            told, first = [re.sub(r"\[focus moves .*\]\n", "", text_of(one))
                           for one in (answers[again], answers[0])]
            assert told == first


def test_the_end_is_the_end_again(tmp_path):
    for options in [[], ["--lockstep"]]:
        answers = debug(tmp_path, LINE, ONE_BLOCK, [
            "run", "info blocks", "checkpoint", "reverse-continue", "restart 1", "info blocks"],
            *options)
        assert "1 done, 0 resident" in text_of(answers[1])
        assert text_of(answers[-1]) == text_of(answers[1])
        assert stop_of(answers[-2]) == stop_of(answers[0])


def test_a_value_written_in_front_of_an_issue_is_there_again(tmp_path):
    # Block 0 is put on its core after the launch and before its first insn.
    for options in [[], ["--lockstep"]]:
        answers = debug(tmp_path, LINE, ONE_BLOCK, [
            "start", "set $r1 = 77", "stepw 3", "reverse-continue", "print $r1", "continue",
            "goto #0", "print $r1"], *options)
        assert text_of(answers[4]) == "77\n"
        assert text_of(answers[-1]) == "77\n"
