# SPDX-License-Identifier: Apache-2.0
"""ptoprof on a board, by the tests' own toolkit: run, microbench, calibrate, report, devices."""

import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = pathlib.Path(os.environ["PTO_BIN_DIR"])
TOOLKIT = PROGRAMS.parent / "tests" / "npu" / "toolkit"
VECTOR_ADD = [ROOT / "examples" / "vector_add.pto", "-g", "2", "-b", "64", "-a", "a=rand:f32[128]"]
VECTOR_ADD += ["-m", "reference", "-a", "b=rand:f32[128]", "-a", "o=zeros:f32[128]", "-a", "n=128"]


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("npu-cache")


@pytest.fixture
def board(monkeypatch, cache):
    monkeypatch.setenv("ASCEND_HOME_PATH", str(TOOLKIT))
    monkeypatch.setenv("PTO_NPU_CACHE", str(cache))
    monkeypatch.setenv("PTO_HOST_CYCLES", "fmaf=6,load=20,store=5,asc_nop=15")


def ptoprof(*options, **environment):
    return subprocess.run(
        [PROGRAMS / "ptoprof", *options], capture_output=True, text=True, env=os.environ | environment
    )


def test_run_gives_insns_and_pairs(board, tmp_path):
    out = tmp_path / "p.json"
    done = ptoprof("run", *VECTOR_ADD, "-d", "npu", "--runs", "4", "-o", out)
    assert done.returncode == 0, done.stderr
    assert "vector_add on npu:0:" in done.stdout and "emulated" not in done.stdout
    assert "LOAD: 20 cycles (simulator: 4), 8 warp insns" in done.stdout
    assert "FMA: 6 cycles (simulator: 8), 4 warp insns" in done.stdout
    assert "LOAD -> FMA: 26 cycles, 4 times" in done.stdout
    kernel = json.loads(out.read_text())["kernels"][0]
    assert len(kernel["runs"]) == 4
    insns = {insn["key"]: insn for insn in kernel["insns"]}
    assert insns["LOAD.hbm.f32"]["cycles"] == 20 and insns["LOAD.hbm.f32"]["count"] == 8
    assert "clock read before" in insns["LOAD.hbm.f32"]["definition"]
    assert kernel["counters"] == [{"name": "clock_reads.overhead_cycles", "combine": "mean", "value": 1}]
    report = ptoprof("report", out)
    assert report.returncode == 0, report.stderr
    assert "npu:0" in report.stdout and "FMA" in report.stdout
    page = tmp_path / "p.html"
    assert ptoprof("report", out, "--html", page).returncode == 0
    assert page.read_text().startswith("<!doctype html>")
    fitted = tmp_path / "fitted.json"
    done = ptoprof("calibrate", out, "--base", "reference", "-o", fitted)
    assert done.returncode == 0, done.stderr
    latency = json.loads(fitted.read_text())["latency"]
    assert latency["FMA"]["latency"] == 6 and latency["LOAD"]["latency"] == 20
    assert "npu:0" in latency["FMA"]["source"]
    assert "CMP.ge.u32: 0 cycles between clock reads make no latency" in done.stdout + done.stderr


def test_run_tells_what_fails(board):
    done = ptoprof("run", *VECTOR_ADD, "-d", "npu", PTO_FAKE_ACL_FAIL="aclrtSynchronizeStream:12")
    assert done.returncode == 1
    assert "EZ9999: told to fail in aclrtSynchronizeStream" in done.stderr
    done = ptoprof("run", *VECTOR_ADD, "-d", "npu:7")
    assert done.returncode == 1
    assert "sees 1 devices" in done.stderr


def test_microbench_measures_and_calibrates(board, tmp_path):
    out = tmp_path / "bench.json"
    options = ["microbench", "-d", "npu", "--role", "latency", "--key", "FMA.f32", "--warm-up", "0"]
    done = ptoprof(*options, "-o", out, PTO_HOST_SLOW="5")
    assert done.returncode == 0, done.stderr
    assert "npu:0: 9 kernels measured, 0 of them to look closer at joined pairs" in done.stdout
    assert "run 5 rejected" in done.stdout and "run 10 rejected" in done.stdout
    kernels = json.loads(out.read_text())["kernels"]
    assert all(len(kernel["runs"]) == 16 for kernel in kernels)
    rejected = [run["rejected"] for run in kernels[0]["runs"] if "rejected" in run]
    assert len(rejected) == 3 and all("where the median of 16 runs is" in why for why in rejected)
    assert {kernel["micro"]["repeats"] for kernel in kernels} == {8, 16, 48}  # N, 2N and more
    fitted = tmp_path / "fitted.json"
    done = ptoprof("calibrate", out, "--base", "reference", "-o", fitted)
    assert done.returncode == 0, done.stderr
    assert json.loads(fitted.read_text())["latency"]["FMA"]["latency"] == 6


def test_microbench_keeps_what_was_measured(board, tmp_path):
    out = tmp_path / "bench.json"
    options = ["microbench", "-d", "npu", "--role", "latency", "--key", "FMA.f32", "--runs", "2"]
    failing = {"PTO_FAKE_ACL_FAIL": "aclrtSynchronizeStream:9"}
    done = ptoprof(*options, "--warm-up", "1", "-o", out, **failing)
    assert done.returncode == 1
    assert "not measured: " in done.stderr and "told to fail" in done.stderr
    written = json.loads(out.read_text())
    assert len(written["kernels"]) == 8 and len(written["notes"]) == 1


def test_microbench_without_a_pattern_is_wrong_usage():
    done = ptoprof("microbench", "-d", "emulated:reference", "--key", "NOTHING")
    assert done.returncode == 2
    assert "no pattern" in done.stderr


def test_devices_lists_the_board_and_what_was_looked_for(board):
    done = ptoprof("devices")
    assert done.returncode == 0
    assert "npu:0" in done.stdout
    done = ptoprof("devices", ASCEND_HOME_PATH="/nowhere")
    assert "ASCEND_HOME_PATH=/nowhere: no such folder" in done.stdout


def test_places_are_listed_once():
    done = ptoprof("run", *VECTOR_ADD, "-d", "npu", ASCEND_HOME_PATH="/nowhere")
    assert done.returncode == 1
    assert done.stderr.count("/usr/local/Ascend/latest") == 1
