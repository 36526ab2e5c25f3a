# SPDX-License-Identifier: Apache-2.0
"""Mistakes that users of related tools ran into, and what ptosim says about them."""

import json
import os
import pathlib
import subprocess

import numpy as np

CHECKS = pathlib.Path(__file__).resolve().parents[1] / "checks"
PTOSIM = pathlib.Path(os.environ["PTO_BIN_DIR"]) / "ptosim"


def run(file, kernel, *options, checks="all", cwd=None):
    command = [str(PTOSIM), str(file), "--kernel", kernel, "--json", *options]
    if "--schedule" not in options and "--timed" not in options:
        command.append("--functional")
    if checks:
        command.append(f"--checks={checks}")
    command = [word for word in command if word != "--timed"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=cwd)
    assert done.returncode in (0, 1), done.stderr
    report = json.loads(done.stdout)
    report["exit"] = done.returncode
    return report


def messages(report):
    return [f"{f['kind']}: {f['message']} {f['hint']}" for f in report["findings"]]


def test_barrier_under_a_lane_dependent_if_names_the_lanes():
    for mode in ([], ["--timed"], ["--schedule", "greedy"]):
        report = run(CHECKS / "sync.pto", "half_a_warp_at_the_barrier_bad", "--block", "64", *mode)
        assert report["status"] == "deadlock" and report["exit"] == 1
        assert any("lanes 16-31" in message for message in messages(report))


def test_slow_progress_is_no_hang():
    arguments = ["--grid", "3", "--block", "32", "--arg", "f=zeros:u32[1]"]
    arguments += ["--arg", "y=zeros:u32[1]", "--print", "y:1"]
    for mode in ([], ["--timed"], ["--schedule", "random:3"]):
        report = run(CHECKS / "clean.pto", "long_work_while_others_poll", *arguments, *mode)
        assert report["status"] == "completed" and report["findings"] == []
        assert report["arrays"]["y"]["first"] == ["300000"]


def test_outputs_of_a_hung_run_can_be_saved(tmp_path):
    (tmp_path / "k.pto").write_text(
        """.pto 1
.kernel k(ptr o)
    mov.u32 r0, %tid.x
    store.u32 hbm[o + r0*4], r0
    cmp.lt.u32 p0, r0, 16
@p0 bra skip
    barrier_block
skip:
    exit
.end
"""
    )
    arguments = ["--block", "64", "--arg", "o=full:u32[64]:value=9", "--out", "o=o.npy"]
    report = run("k.pto", "k", *arguments, checks="", cwd=tmp_path)
    assert report["status"] == "deadlock"
    assert np.array_equal(np.load(tmp_path / "o.npy"), np.arange(64))


def test_deadlock_groups_waiters_by_place_and_says_who_could_come():
    report = run(CHECKS / "sync.pto", "trip_counts_differ_between_warps_bad", "--block", "64")
    details = report["fault"]["details"]
    assert "warp 0 waits at barrier_block" in details and "warp 1 waits at barrier_block" in details
    assert "sync.pto:" in details


def test_a_loop_of_one_trip_and_the_branch_with_the_wait_are_clean():
    arguments = ["--block", "32", "--arg", "x=iota:f32[32]", "--arg", "y=zeros:f32[32]"]
    for kernel in ("zero_trip_loop_leaves_load_pending_bad", "wait_in_branch_not_taken_bad"):
        report = run(CHECKS / "race_copy.pto", kernel, *arguments, "--arg", "n=0")
        assert report["findings"], kernel
        report = run(CHECKS / "race_copy.pto", kernel, *arguments, "--arg", "n=1")
        assert messages(report) == [], kernel


def test_second_slot_of_two_unguarded_is_one_finding():
    arguments = ["--block", "32", "--arg", "x=iota:f32[64]", "--arg", "y=zeros:f32[64]"]
    report = run(CHECKS / "race_copy.pto", "second_slot_unguarded_bad", *arguments)
    assert len(report["findings"]) == 1


def test_one_past_the_end_gives_address_size_and_limit():
    arguments = ["--block", "33", "--arg", "x=iota:f32[32]", "--arg", "y=zeros:f32[33]"]
    report = run(CHECKS / "mem.pto", "one_past_the_end_bad", *arguments, checks="")
    fault = report["fault"]
    assert fault["size_bytes"] == 4 and fault["lane"] == 0 and fault["warp"] == 1
    assert "128 bytes" in fault["allocation"] and "past the end" in fault["allocation"]


def test_scratchpad_overflow_has_a_map_of_who_holds_what():
    report = run(CHECKS / "mem.pto", "scratchpad_exhausted_at_third_bad", "--block", "32", checks="")
    fault = report["fault"]
    assert "t0" in fault["details"] and "t1" in fault["details"]


def test_half_loaded_all_reduced_names_the_first_element():
    arguments = ["--block", "32", "--arg", "x=iota:f32[32]", "--arg", "y=zeros:f32[1]"]
    report = run(CHECKS / "init.pto", "half_loaded_all_reduced_bad", *arguments)
    assert any(f["location"] == "shared s + 64" for f in report["findings"])


def test_schedules_of_a_racy_kernel_disagree_and_name_the_element():
    arguments = ["--block", "64", "--arg", "y=zeros:u32[64]", "--schedule-fuzz", "30"]
    report = run(CHECKS / "race_block.pto", "no_barrier_at_all_bad", *arguments, checks="")
    assert report["exit"] == 1
    difference = report["schedule_fuzz"]["difference"]
    assert difference["array"] == "y" and difference["values"][0] != difference["values"][1]
    first, other = difference["schedules"]
    index = difference["index"]
    # Each of the two can be run again.
    for schedule, value in zip((first, other), difference["values"]):
        mode = ["--timed"] if schedule == "timed" else ["--schedule", schedule]
        mode = [] if schedule == "functional" else mode
        again = run(
            CHECKS / "race_block.pto",
            "no_barrier_at_all_bad",
            *["--block", "64", "--arg", "y=zeros:u32[64]", "--print", "y:64"],
            *mode,
            checks="",
        )
        assert again["arrays"]["y"]["first"][index] == value


def test_schedules_of_race_free_kernels_agree():
    arguments = ["--block", "64", "--arg", "y=zeros:u32[64]", "--schedule-fuzz", "20"]
    report = run(CHECKS / "race_block.pto", "no_barrier_at_all_good", *arguments, checks="")
    fuzz = report["schedule_fuzz"]
    assert report["exit"] == 0 and fuzz["agree"]
    assert {"functional", "lockstep", "greedy", "random:20"} <= set(fuzz["schedules"])
    assert "timed" in fuzz["schedules"] and len(fuzz["schedules"]) == 24
