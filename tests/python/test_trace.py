# SPDX-License-Identifier: Apache-2.0
"""Traces against the Trace Event Format that Chrome and Perfetto read, and against the timeline."""

import collections
import csv
import io
import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PTOSIM = pathlib.Path(os.environ.get("PTO_BIN_DIR", ROOT / "build/release/bin")) / "ptosim"

CASES = {
    "copies": [
        *("matmul/tile_f32.pto", "--kernel", "tile_double_f32", "--block", "32"),
        *("--arg", "a=ones:f32[16384]", "--arg", "b=ones:f32[16384]", "--arg", "c=zeros:f32[4096]"),
        *("--arg", "m=64", "--arg", "n=64", "--arg", "k=256"),
    ],
    "barriers": [
        *("reduction/block_sum.pto", "--kernel", "block_sum", "--grid", "4", "--block", "256"),
        *("--arg", "x=ones:f32[4000]", "--arg", "sums=zeros:f32[4]", "--arg", "n=4000"),
    ],
}


def save(folder, case, profile, *more):
    command = [PTOSIM, ROOT / "examples" / CASES[case][0], *CASES[case][1:], "--profile", profile]
    command += ["--trace", "t.json", "--timeline-out", "t.csv", *more]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    trace = json.loads((folder / "t.json").read_text())
    table = list(csv.DictReader(io.StringIO((folder / "t.csv").read_text())))
    return trace, table


def check_format(trace):
    """What both viewers need, by phase."""
    assert set(trace) == {"displayTimeUnit", "traceEvents", "otherData"}
    assert trace["displayTimeUnit"] in ("ns", "ms")
    assert all(isinstance(value, str) for value in trace["otherData"].values())
    flows = collections.defaultdict(list)
    for event in trace["traceEvents"]:
        assert {"ph", "pid", "tid", "name"} <= set(event), event
        assert isinstance(event["pid"], int) and isinstance(event["tid"], int)
        phase = event["ph"]
        assert phase in "XMsfC", event
        if phase == "M":
            assert event["name"] in (
                "process_name",
                "process_sort_index",
                "thread_name",
                "thread_sort_index",
            )
            continue
        assert isinstance(event["ts"], (int, float)) and event["ts"] >= 0
        if phase == "X":
            assert event["dur"] >= 0 and event["cat"]
        elif phase == "C":
            assert event["args"] and all(isinstance(v, (int, float)) for v in event["args"].values())
        else:
            flows[event["id"]].append(event)
            assert phase == "s" or event["bp"] == "e"
    for parts in flows.values():
        assert [part["ph"] for part in parts] == ["s", "f"]
        assert parts[0]["ts"] <= parts[1]["ts"]
        assert parts[0]["name"] == parts[1]["name"] and parts[0]["cat"] == parts[1]["cat"]
    return list(flows.values())


def slices(trace, category=None):
    return [e for e in trace["traceEvents"] if e["ph"] == "X" and category in (None, e["cat"])]


def check_rows(trace):
    """Slices of one row must not overlap, else a viewer draws them nested or drops them."""
    rows = collections.defaultdict(list)
    for event in slices(trace):
        rows[event["pid"], event["tid"]].append(event)
    for events in rows.values():
        events.sort(key=lambda e: e["ts"])
        for before, after in zip(events, events[1:]):
            assert before["ts"] + before["dur"] <= after["ts"] + 1.5e-6, (before, after)
    named = {(e["pid"], e["tid"]) for e in trace["traceEvents"] if e["name"] == "thread_name"}
    processes = {e["pid"] for e in trace["traceEvents"] if e["name"] == "process_name"}
    assert {pid for pid, _ in rows} <= processes
    assert {row for row in rows if row[1] != 0} <= named
    return rows


def holding(rows, event):
    """The slice that an arrow's end binds to."""
    return [
        s
        for s in rows[event["pid"], event["tid"]]
        if s["ts"] - 1e-6 <= event["ts"] <= s["ts"] + s["dur"] + 1e-6
    ]


@pytest.mark.parametrize("profile", ["reference", "ascend950"])
@pytest.mark.parametrize("case", CASES)
def test_format_clock_and_rows(tmp_path, case, profile):
    trace, table = save(tmp_path, case, profile)
    check_format(trace)
    rows = check_rows(trace)
    # The span is the run: cycles divided by the clock.
    cycles, clock = int(trace["otherData"]["cycles"]), float(trace["otherData"]["clock_mhz"])
    begin = min(e["ts"] for e in slices(trace))
    end = max(e["ts"] + e["dur"] for e in slices(trace))
    assert begin == 0
    assert abs((end - begin) - cycles / clock) < 1e-5
    for event in slices(trace, "insn"):
        assert abs(event["ts"] - event["args"]["cycle"] / clock) < 1e-5
        assert event["args"]["source"].count(".pto:") == 1
    # Every entry of the timeline is there, once for each of its warps.
    wanted = collections.Counter()
    for line in table:
        name = line["mnemonic"] + (" (no lane)" if line["lanes"] == "none" else "")
        for _ in range(int(line["first_warp"]), int(line["last_warp"]) + 1):
            wanted[name, int(line["issue_cycle"]), int(line["block"])] += 1
    got = collections.Counter(
        (e["name"], e["args"]["cycle"], e["args"]["block"]) for e in slices(trace, "insn")
    )
    assert got == wanted
    assert rows


def test_arrows_lead_from_copies_to_their_waits(tmp_path):
    trace, table = save(tmp_path, "copies", "reference")
    flows = check_format(trace)
    rows = check_rows(trace)
    copies = [line for line in table if line["mnemonic"].startswith("ASYNC")]
    starts = {(float(s["ts"]), s["tid"]) for s, _ in flows}
    assert len(copies) == len(slices(trace, "copy"))
    # Each copy is awaited here, so each begins an arrow.
    assert len(starts) == len(copies)
    for start, end in flows:
        assert start["name"] == "copy"
        (source,) = [s for s in holding(rows, start) if s["ts"] == start["ts"]]
        assert source["cat"] == "copy"
        targets = holding(rows, end)
        assert any(
            t["cat"] == "wait" and t["name"] == "copy" or t["name"] in ("WAIT", "WAIT_ALL")
            for t in targets
        ), targets
    # An arrow's copy is done when its wait is over.
    done = {e["ts"]: e["args"]["done_cycle"] for e in slices(trace, "copy")}
    for start, end in flows:
        wait = [t for t in holding(rows, end) if t["cat"] == "wait"]
        if wait:
            over = wait[0]["args"]["cycle"] + wait[0]["args"]["cycles"]
            assert done[start["ts"]] <= over


def test_arrows_lead_to_the_last_warp_at_a_barrier(tmp_path):
    trace, table = save(tmp_path, "barriers", "ascend950")
    flows = check_format(trace)
    rows = check_rows(trace)
    barriers = [line for line in table if line["mnemonic"] == "BARRIER_BLOCK"]
    arrivals = sum(int(b["last_warp"]) - int(b["first_warp"]) + 1 for b in barriers)
    passes = arrivals // 8  # eight warps a block
    assert arrivals > 0 and arrivals % 8 == 0
    assert len(flows) == arrivals - passes
    last = collections.defaultdict(set)
    for start, end in flows:
        assert start["name"] == "barrier"
        for part in (start, end):
            assert any(s["name"] == "BARRIER_BLOCK" for s in holding(rows, part))
        last[end["pid"], end["ts"]].add(end["tid"])
        assert start["tid"] != end["tid"]
    assert all(len(rows_of) == 1 for rows_of in last.values())


def test_limits_are_kept_and_told(tmp_path):
    trace, table = save(tmp_path, "barriers", "reference", "--trace-blocks", "1")
    assert {line["block"] for line in table} == {"0"}
    whole, everything = save(tmp_path, "barriers", "reference")
    left_out = int(trace["otherData"]["warp_instructions_not_in_trace"])
    warps = lambda lines: sum(int(l["last_warp"]) - int(l["first_warp"]) + 1 for l in lines)
    assert left_out == warps(everything) - warps(table) > 0
    assert whole["otherData"]["warp_instructions_not_in_trace"] == "0"
    _, window = save(tmp_path, "barriers", "reference", "--trace-window", "5:20")
    assert window and all(5 <= int(line["issue_cycle"]) <= 20 for line in window)
    _, few = save(tmp_path, "barriers", "reference", "--trace-limit", "7")
    assert len(few) == 7


def test_the_same_run_gives_the_same_bytes(tmp_path):
    save(tmp_path, "copies", "ascend950")
    first = (tmp_path / "t.json").read_bytes()
    save(tmp_path, "copies", "ascend950")
    assert (tmp_path / "t.json").read_bytes() == first
