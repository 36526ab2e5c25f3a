# SPDX-License-Identifier: Apache-2.0
"""What the command lines of all programs share: no output replaces an input, messages as JSON, values,
words and inputs without sense or end."""

import json
import os

import numpy as np
import pytest
from command_lines import (
    EMULATED,
    KERNEL,
    PROF,
    SIM,
    contents,
    expect_wrong_usage,
    files,
    program,
    run,
)

LONG = "x" * 1_000_000

# ------------------------------------------------------------------------------ files


@pytest.mark.parametrize(
    "command, message",
    [
        (["ptoas", "k.pto", "-o", "k.pto"], "-o 'k.pto' would replace the input 'k.pto'"),
        (["ptoas", "k.pto", "-o", "sub/../k.pto"], "-o 'sub/../k.pto' would replace the input"),
        (["ptoas", "k.pto", "--emit=asm", "-o", "link.pto"], "would replace the input 'k.pto'"),
        (["ptoas", "text.ptobj"], "-o 'text.ptobj' would replace the input 'text.ptobj'"),
        (["ptoas", "-d", "k.ptobj", "-o", "k.ptobj"], "-o 'k.ptobj' would replace the input"),
        (["ptoas", "main.pto", "-o", "inc.pto"], "-o 'inc.pto' would replace the included file"),
        (["ptoas", "k.pto", "--machine", "./m.json", "-o", "m.json"], "would replace --machine"),
        ([*SIM, "-o", "a=a.npy"], "--out 'a.npy' would replace --arg 'a.npy'"),
        ([*SIM, "-e", "a=e.npy", "-o", "a=./e.npy"], "--out './e.npy' would replace --expect"),
        ([*SIM, "-m", "./m.json", "--report", "m.json"], "--report 'm.json' would replace --prof"),
        ([*SIM, "-m", "./m.json", "--trace", "m.json"], "--trace 'm.json' would replace --profile"),
        ([*SIM, "-m", "./m.json", "--timeline-out", "m.json"], "--timeline-out 'm.json' would"),
        (["ptosim", "program.npy", "-a", "a=zeros:[4]", "-o", "a=program.npy"],
         "--out 'program.npy' would replace the program 'program.npy'"),
        ([*SIM, "--trace", "t.json", "--report", "t.json"],
         "--trace 't.json' and --report 't.json' would write the same file"),
        ([*SIM, "--trace", "t.json", "--timeline-out", "sub/../t.json"],
         "would write the same file"),
        ([*SIM, "-o", "a=o.npy", "-o", "a=o.npy"], "would write the same file"),
        (["ptoprof", "calibrate", "p.json", "-o", "p.json"], "-o 'p.json' would replace the input"),
        (["ptoprof", "calibrate", "p.json", "--base", "./m.json", "-o", "m.json"], "replace --base"),
        (["ptoprof", "calibrate", "p.json", "-o", "f.json", "--html", "f.json"],
         "-o 'f.json' and --html 'f.json' would write the same file"),
        (["ptoprof", "calibrate", "p.json", "sub/../p.json", "-o", "f.json"],
         "'p.json' and 'sub/../p.json' are the same profile; give it once"),
        (["ptoprof", "report", "p.json", "--html", "p.json"], "--html 'p.json' would replace the"),
        (["ptoprof", "report", "p.json", "-m", "./m.json", "--html", "m.json"], "replace --machine"),
        (["ptoprof", "import", "sub/..", "-o", "a.npy"], "-o 'a.npy' would replace the input"),
        ([*PROF, "-o", "k.pto"], "-o 'k.pto' would replace the input 'k.pto'"),
        ([*PROF, "-o", "a.npy"], "-o 'a.npy' would replace --arg 'a.npy'"),
        ([*PROF, "-m", "./m.json", "-o", "m.json"], "-o 'm.json' would replace --machine './m.json'"),
        ([*PROF[:-1], "emulated:./m.json", "-o", "m.json"], "-o 'm.json' would replace --device"),
    ],
)
def test_no_output_replaces_an_input_or_another_output(files, command, message):
    before = contents(files)
    done = run(files, *command)
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert message in done.stderr
    assert contents(files) == before


def test_an_output_may_be_appended_to_and_replaced(tmp_path, files):
    profile = tmp_path / "p.json"
    profile.write_bytes((files / "p.json").read_bytes())
    done = run(files, *PROF, "--name", "second", "--append", "-o", str(profile))
    assert done.returncode == 0, done.stderr
    assert [kernel["name"] for kernel in json.loads(profile.read_text())["kernels"]] == ["k", "second"]
    for _ in range(2):
        assert run(files, "ptoas", "k.pto", "-o", str(tmp_path / "k.ptobj")).returncode == 0


# ------------------------------------------------------------------------------ JSON


@pytest.mark.parametrize(
    "command, status, message",
    [
        (["ptoas", "gone.pto"], 1, "cannot read 'gone.pto'"),
        (["ptoas", "--frobnicate"], 2, "not expected: --frobnicate"),
        (["ptoas"], 2, "no input"),
        (["ptoas", "k.pto", "-Wno-such"], 2, "unknown warning -Wno-such"),
        (["ptoas", "k.pto", "-o", "gone/k.ptobj"], 1, "cannot write 'gone/k.ptobj'"),
        (["ptoas", "k.pto", "-o", "k.pto"], 2, "would replace the input"),
        (["ptoas", "--explain", "lod"], 2, "unknown instruction 'lod'"),
        (["ptoas", "--manual"], 2, "--manual: it is Markdown"),
        (["ptoas", "k.pto", "-v"], 2, "--verbose: it prints text"),
        (["ptosim", "gone.pto"], 1, "cannot read 'gone.pto'"),
        (["ptosim", "k.pto", "--frobnicate"], 2, "not expected: --frobnicate"),
        ([*SIM, "-b", "4000000"], 2, "block"),
        ([*SIM, "--device", "sim:foo"], 2, "device sim: no machine profile `foo`"),
        ([*SIM, "-o", "a=gone/a.npy"], 1, "--out a: cannot write 'gone/a.npy'"),
        ([*SIM, "--report", "gone/a.json"], 1, "--report: cannot write 'gone/a.json'"),
        ([*SIM, "-m", "./gone.json"], 1, "gone.json"),
        (["ptosim", "diff", "m.json", "gone.json"], 1, "its schema is missing"),
        (["ptosim", "diff", "m.json"], 2, "after is required"),
        (["ptoprof", "measure"], 2, ""),
        (["ptoprof", "run", "gone.pto", "-d", EMULATED], 1, "cannot read 'gone.pto'"),
        ([*PROF[:-1], "emulated:foo"], 2, "no machine profile `foo`"),
        ([*PROF[:-1], "sim:foo"], 2, "device sim: no machine profile `foo`"),
        ([*PROF, "-o", "gone/p.json"], 1, "cannot write 'gone/p.json'"),
        (["ptoprof", "calibrate", "gone.json", "m.json"], 1, "gone.json"),
        (["ptoprof", "report", "m.json"], 1, "m.json"),
        (["ptoprof", "microbench"], 2, "name a device"),
        (["ptodbg", "--nothing"], 2, "not expected: --nothing"),
    ],
)
def test_messages_are_one_json_object(files, command, status, message):
    done = run(files, *command, "--json")
    assert done.returncode == status, (done.stdout, done.stderr)
    report = json.loads(done.stderr)
    assert report["errors"] == len(report["diagnostics"]) > 0
    assert message in report["diagnostics"][0]["message"]
    assert all(entry["severity"] == "error" for entry in report["diagnostics"])
    if done.stdout:
        json.loads(done.stdout)


def test_every_error_is_in_the_json(files):
    done = run(files, "ptosim", "diff", "--json", "m.json", "gone.json")
    assert [entry["message"].split(":")[0] for entry in json.loads(done.stderr)["diagnostics"]] == [
        "m.json", "cannot read 'gone.json'"]


def test_lists_are_json(tmp_path, files):
    def data(*command):
        done = run(files, *command, "--json")
        assert (done.returncode, done.stderr) == (0, "")
        return json.loads(done.stdout)

    warnings = data("ptoas", "--list-warnings")
    assert {"unused-register", "unreachable-code"} <= {row["name"] for row in warnings}
    [fma] = [row for row in data("ptoas", "--list-instructions") if row["mnemonic"] == "fma"]
    assert data("ptoas", "--explain", "fma") == fma
    roles = data("ptoprof", "microbench", "--list")
    assert {"role", "kernels", "patterns", "meaning"} == set(roles[0])
    assert data("ptoprof", "microbench", "--role", "latency", "--types", "1", "-o",
                str(tmp_path / "set"))[0]["role"] == "latency"
    assert any(row["is_usable"] for row in data("ptoprof", "devices"))
    page = tmp_path / "p.html"
    assert data("ptoprof", "report", "p.json", "--html", str(page))["kernels"]
    assert page.read_text().startswith("<!")


# ------------------------------------------------------------------------------ values


@pytest.mark.parametrize(
    "command, message",
    [
        (["ptoas", "k.pto", "--machine", ""], "--machine: its value is empty"),
        (["ptoas", "k.pto", "-o", ""], "--output: its value is empty"),
        (["ptoas", ""], "input: its value is empty"),
        ([*SIM, "--max-cycles", ""], "--max-cycles: its value is empty"),
        ([*SIM, "--max-instructions", ""], "--max-instructions: its value is empty"),
        ([*SIM, "--checks", ""], "--checks: its value is empty"),
        ([*SIM, "--schedule", ""], "--schedule: its value is empty"),
        ([*SIM, "--report", ""], "--report: its value is empty"),
        ([*SIM, "--kernel", ""], "--kernel: its value is empty"),
        ([*SIM, "-I", ""], "-I: its value is empty"),
        (["ptosim", "diff", "", "p.json"], "before: its value is empty"),
        ([*SIM, "--sample", "0"], "--sample: 0 waves; expected at least 4"),
        ([*SIM, "--sample", "0", "--functional"], "--sample: there are no cycles to estimate"),
        ([*SIM, "--schedule-fuzz", "0"], "--schedule-fuzz: 0 random orders; expected 1 or more"),
        ([*PROF, "--runs", "0"], "--runs: 0 is too few; expected 1 or more"),
        ([*PROF, "--date", "2026-13-01"], "--date: '2026-13-01' is no day; expected YYYY-MM-DD"),
        ([*PROF, "--date", "2026-02-29"], "--date: '2026-02-29' is no day"),
        ([*PROF, "--date", "yesterday"], "--date: 'yesterday' is no day"),
        ([*PROF, "--date", "2026-08-211"], "--date: '2026-08-211' is no day"),
        ([*PROF, "--name", ""], "--name: its value is empty"),
        (["ptoprof", "microbench", "--list", "--types", "0"], "--types: 0 is too few"),
        (["ptodbg", "k.pto", "--checks", ""], "--checks: its value is empty"),
        (["ptodbg", "k.pto", "-m", ""], "--profile: its value is empty"),
    ],
)
def test_values_without_sense(files, command, message):
    expect_wrong_usage(files, command, message)


@pytest.mark.parametrize(
    "options, status, message",
    [
        (["-m", "referense"], 2, "no machine profile `referense`"),
        (["-m", "./gone.json"], 1, "no such file"),
        (["--set", "cores=none"], 2, "cores"),
        (["-a", "b=zeros:[4]"], 2, "'b'"),
        (["-a", "a=zeroes:[4]"], 2, "zeroes"),
        (["-a", "a=@gone.npy"], 1, "gone.npy"),
    ],
)
def test_debugger_looks_at_its_options_first(files, options, status, message):
    """And exits as ptosim does."""
    simulator = run(files, "ptosim", "k.pto", *options)
    assert simulator.returncode == status
    debug = ["ptodbg", "k.pto", "-nx", *options]
    done = run(files, *debug, "--batch", "-ex", "echo never")
    assert (done.returncode, done.stdout) == (status, "")
    assert message in done.stderr
    done = run(files, *debug, input="echo still\n")
    assert (done.returncode, done.stdout.strip()) == (status, "still")
    assert message in done.stderr


def test_debugger_reads_an_argument_once(files):
    """It may come from a pipe."""
    reader, writer = os.pipe()
    os.write(writer, np.arange(4, dtype=np.uint32).tobytes())
    os.close(writer)
    done = run(files, "ptodbg", "k.pto", "-nx", "-a", f"a=@/dev/fd/{reader}:u32[4]", "--batch",
               "-ex", "start", "-ex", "print a[3]", pass_fds=[reader])
    os.close(reader)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("= 3\n")


@pytest.mark.parametrize(
    "path, value, message",
    [
        ("cycles", -5, "-5 is no count; expected a whole number from 0 to 9223372036854775807"),
        ("cycles", 1e300, "1e+300 is no count"),
        ("cycles", 1.5, "1.5 is no count"),
        ("cycles", 2**64 - 1, "18446744073709551615 is no count"),
        ("cycles", None, "this null is no count"),
        ("cycles", LONG, "this string is no count"),
        ("cores", 2**32, "4294967296 is no count; expected a whole number from 0 to 4294967295"),
        ("stalls.empty", -1, "-1 is no count"),
        ("memory.requests", 0.5, "0.5 is no count"),
        ("insns.0.issues", -1, "-1 is no count"),
        ("insns.0.unit", LONG, "insn 0: no unit 'xxx"),
        ("lines.0.pcs.0", -1, "-1 is no count"),
        ("clock_mhz", 0, "a clock of 0 MHz"),
        ("clock_mhz", -1, "-1 is no figure; expected 0 or more"),
        ("grid.1", 0, "1x0 is no size"),
        ("core_counters.0.unit_busy_cycles.0", -0.5, "-0.5 is no figure"),
        ("timeline.rows.0.13", -2, "-2 is no count"),
        ("timeline.rows.0.13", 1000, "timeline entry 0 is impossible"),
        ("schema", "pto-run-9", 'its schema is "pto-run-9"; expected "pto-run-1"'),
        ("schema", [[LONG]], "its schema is this array"),
    ],
    ids=lambda part: str(part)[:30],
)
def test_saved_runs_with_figures_without_sense(tmp_path, files, path, value, message):
    saved = tmp_path / "run.json"
    assert run(files, *SIM, "-q", "--report", str(saved)).returncode == 0
    assert run(tmp_path, "ptosim", "diff", "run.json", "run.json").returncode == 0
    data = json.loads(saved.read_text())
    *way, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    place = data
    for part in way:
        place = place[part]
    assert place[last] != value
    place[last] = value
    (tmp_path / "edited.json").write_text(json.dumps(data))
    done = run(tmp_path, "ptosim", "diff", "run.json", "edited.json")
    assert (done.returncode, done.stdout) == (1, "")
    assert message in done.stderr
    assert len(done.stderr) < 1000




@pytest.mark.parametrize(
    "line",
    [
        f"add.u32 r1, r2, {LONG}",
        f"{LONG} r1",
        f"add.{LONG} r1, r2, r3",
        f"bra {LONG}",
        f"{LONG}:",
        f"{LONG}: {LONG}:",
        f'.include "{LONG}"',
        f'.include "{"x y " * 200_000}"',
        f".{LONG} 1",
        f"mov.u32 r1, {'9' * 1_000_000}",
        f"store.u32 hbm[{LONG}], r1",
        f"print \"{LONG}\", r1, r2",
    ],
    ids=lambda line: line[:16],
)
@pytest.mark.parametrize("form", ["text", "json"])
def test_long_words_are_not_repeated_whole(tmp_path, line, form):
    (tmp_path / "k.pto").write_text(KERNEL.replace("    exit", f"    {line}\n    exit"))
    done = run(tmp_path, "ptoas", "--check", "k.pto", *(["--json"] if form == "json" else []))
    assert done.returncode in (0, 1)
    assert len(done.stderr) < 20_000


@pytest.mark.parametrize(
    "command",
    [
        ["ptoas", "k.pto", f"-W{LONG[:100_000]}"],
        ["ptosim", "k.pto", "--kernel", LONG[:100_000]],
        ["ptosim", "k.pto", "--arg", f"{LONG[:100_000]}=1"],
        ["ptosim", "k.pto", "-m", LONG[:100_000]],
        ["ptosim", "k.pto", "--schedule", LONG[:100_000]],
        ["ptosim", "k.pto", f"--{LONG[:100_000]}"],
        ["ptoprof", "report", "p.json", "-m", LONG[:100_000]],
        ["ptodbg", "k.pto", "--checks", LONG[:100_000]],
    ],
    ids=lambda command: " ".join(command)[:24],
)
def test_long_options_are_not_repeated_whole(files, command):
    done = run(files, *command)
    assert done.returncode in (1, 2)
    assert 0 < len(done.stderr) < 5000


def test_inputs_without_end(files):
    for command, status in [
        ([*SIM, "-m", "/dev/zero"], 1),
        (["ptoprof", "report", "/dev/zero"], 1),
    ]:
        done = run(files, *command)
        assert done.returncode == status
        assert "/dev/zero" in done.stderr and "which may have no end" in done.stderr


# ------------------------------------------------------------------------------ words

NONE = "The following argument was not expected: "
COMMANDS = "run, import, calibrate, report, microbench, devices, schema"


@pytest.mark.parametrize(
    "command, message",
    [
        (["ptosim", "k.pto", "--functionall"], NONE + "--functionall; did you mean '--functional'?"),
        (["ptosim", "--functionall"], NONE + "--functionall; did you mean '--functional'?"),
        ([*SIM, "--max-cycle=7"], NONE + "--max-cycle=7; did you mean '--max-cycles'?"),
        ([*SIM, "--max-cycle", "7"], NONE + "--max-cycle; did you mean '--max-cycles'?"),
        ([*SIM, "--qwertzuiop"], NONE + "--qwertzuiop\n"),
        ([*SIM, "k.pto"], NONE + "k.pto\n"),
        (["ptosim", "diff", "m.json", "--jsno"], NONE + "--jsno; did you mean '--json'?"),
        (["ptosim", "--color=alwasy", "k.pto"],
         "--color: there is no 'alwasy'; did you mean 'always'?; expected one of: always, auto, never"),
        (["ptoas", "k.pto", "--lsiting"], NONE + "--lsiting; did you mean '--listing'?"),
        (["ptoas", "--verison"], NONE + "--verison; did you mean '--version'?"),
        (["ptoas", "k.pto", "--emit=ams"],
         "--emit: there is no 'ams'; did you mean 'asm'?; expected one of: obj, asm, json"),
        (["ptoas", "k.pto", "--color", "1"], "--color: there is no '1'; expected one of: always"),
        (["ptoas", "k.pto", "--emit=ascendc", "--instrument=pears"],
         "--instrument: there is no 'pears'; did you mean 'pairs'?"),
        (["ptodbg", "k.pto", "--lockstpe"], NONE + "--lockstpe; did you mean '--lockstep'?"),
        (["ptodbg", "--verison"], NONE + "--verison; did you mean '--version'?"),
        (["ptoprof"], f"a command is missing; expected one of: {COMMANDS}"),
        (["ptoprof", "frob"], f"there is no 'frob'; expected one of: {COMMANDS}"),
        (["ptoprof", "reprot", "p.json"],
         f"there is no 'reprot'; did you mean 'report'?; expected one of: {COMMANDS}"),
        (["ptoprof", "--verison"], NONE + "--verison; did you mean '--version'?"),
        ([*PROF, "--devcie", "npu"], NONE + "--devcie; did you mean '--device'?"),
        (["ptoprof", "microbench", "--lits"], NONE + "--lits; did you mean '--list'?"),
        (["ptoprof", "--color=nevr", "devices"], "--color: there is no 'nevr'; did you mean 'never'?"),
    ],
)
def test_wrong_words_are_named_with_the_nearest_right_one(files, command, message):
    expect_wrong_usage(files, command, message)


WORD32 = "0 to 4294967295"


@pytest.mark.parametrize(
    "command, message",
    [
        ([*SIM, "--functional", "--threads", "-1"], f"--threads: '-1' is out of range; expected {WORD32}"),
        ([*SIM, "--functional", "--threads", "99999999999"],
         f"--threads: '99999999999' is out of range; expected {WORD32}"),
        ([*SIM, "--functional", "--threads", "many"],
         f"--threads: 'many' is no whole number; expected {WORD32}"),
        ([*SIM, "--sample", "18446744073709551615"],
         "--sample: '18446744073709551615' is out of range; expected 4 to 4294967295"),
        ([*SIM, "--sample", "-4"], "--sample: '-4' is out of range; expected 4 to"),
        ([*SIM, "--dyn-l1", "4294967296"], f"--dyn-l1: '4294967296' is out of range; expected {WORD32}"),
        ([*SIM, "-e", "a=e.npy", "--rtol", "x"], "--rtol: 'x' is no number; expected 0 or more"),
        ([*SIM, "-e", "a=e.npy", "--atol", "nan"], "--atol: 'nan' is no number; expected 0 or more"),
        ([*SIM, "-e", "a=e.npy", "--atol", "-1"], "--rtol, --atol: -1 is no tolerance; expected 0 or"),
        ([*PROF, "--runs", "-1"], "--runs: '-1' is out of range; expected 1 to 100000"),
        ([*PROF, "--runs", "1.5"], "--runs: '1.5' is no whole number; expected 1 to 100000"),
        ([*PROF[:-1], "npu", "--warm-up", "-1"], f"--warm-up: '-1' is out of range; expected {WORD32}"),
        ([*PROF, "--seed", "18446744073709551616"],
         "--seed: '18446744073709551616' is out of range; expected 0 to 18446744073709551615"),
        ([*PROF, "--noise", "much"], "--noise: 'much' is no number; expected 0 to 1"),
        ([*PROF, "--doubled", "-2"], f"--doubled: '-2' is out of range; expected {WORD32}"),
        ([*PROF, "--dyn-l1", "-1"], f"--dyn-l1: '-1' is out of range; expected {WORD32}"),
        (["ptoprof", "microbench", "--types", "-1"], "--types: '-1' is out of range; expected 1 to"),
        (["ptodbg", "k.pto", "--dyn-l1", "-1"], f"--dyn-l1: '-1' is out of range; expected {WORD32}"),
        (["ptodbg", "k.pto", "--history", "-1"], "--history: '-1' is out of range; expected 0 to"),
    ],
)
def test_numbers_out_of_range_are_told_the_range(files, command, message):
    expect_wrong_usage(files, command, message)


@pytest.mark.parametrize(
    "command, message",
    [
        ([*SIM, "--threads", "2"], "--threads: one thread does this run; expected with --functional"),
        ([*SIM, "--threads", "0"], "--threads: one thread does this run"),
        ([*SIM, "--threads", "2", "--schedule", "greedy"], "--threads: one thread does this run"),
        ([*SIM, "--rtol", "1e-3"], "--rtol, --atol, --no-equal-nan: nothing is compared; expected with --exp"),
        ([*SIM, "--atol", "0"], "--rtol, --atol, --no-equal-nan: nothing is compared"),
        ([*SIM, "--no-equal-nan"], "--rtol, --atol, --no-equal-nan: nothing is compared"),
        (["ptoas", "k.pto", "-o", "-", "--kernel", "k"], "--kernel: every kernel is taken; expected with --emit"),
        (["ptoas", "k.pto", "--emit=asm", "--instrument"], "--instrument: no clock reads are written; expected"),
        (["ptoas", "k.pto", "--check", "--no-loc"], "--no-loc: nothing is disassembled; expected with -d"),
        (["ptoas", "k.pto", "--check", "-o", "sub/x"], "--check: it writes nothing; leave it or -o out"),
        ([*PROF, "--append"], "--append: no profile is written; expected with -o"),
        ([*PROF, "--warm-up", "3"], "--warm-up: it is for boards"),
        ([*PROF[:-1], "npu", "--noise", "0.1"], "--noise: a board has its own; expected with --device emul"),
        ([*PROF[:-2], "--seed", "3"], "--seed: a board has its own; expected with --device emulated"),
        (["ptoprof", "microbench", "--list", "--runs", "3"], "--runs: nothing is measured; expected with --dev"),
    ],
)
def test_options_that_would_do_nothing(files, command, message):
    expect_wrong_usage(files, command, message)


@pytest.mark.parametrize(
    "command, status",
    [
        (["ptosim", "k.pto", "-m", "foo"], 2),
        ([*SIM, "--device", "sim:foo"], 2),
        ([*SIM, "--device", "emulated:foo"], 2),
        ([*SIM, "--device", "emulated"], 2),
        ([*SIM, "--device", "smi"], 2),
        ([*SIM, "--device", "npu:x"], 2),
        ([*SIM, "--device", "sim:p.json"], 1),  # a file that holds something else
        ([*PROF[:-1], "emulated:foo"], 2),
        ([*PROF[:-1], "smi"], 2),
        ([*PROF, "-m", "foo"], 2),
        ([*PROF, "-m", "p.json"], 1),
        (["ptoprof", "report", "p.json", "-m", "foo"], 2),
        (["ptoprof", "calibrate", "p.json", "--base", "foo"], 2),
        (["ptoprof", "microbench", "--base", "foo", "--list"], 2),
        (["ptoprof", "microbench", "-d", "emulated:foo"], 2),
        (["ptoprof", "microbench", "-d", "smi"], 2),
        (["ptodbg", "k.pto", "-nx", "-a", "a=@a.npy", "-m", "foo", "--batch", "-ex", "run"], 2),
        (["ptoas", "k.pto", "-o", "-", "--machine", "foo"], 2),
    ],
)
def test_names_that_mean_nothing_are_wrong_usage(files, command, status):
    for words in (command, [*command, "--json"]):
        done = run(files, *words)
        assert done.returncode == status, (done.stdout, done.stderr)
        assert "foo" in done.stderr + done.stdout or "foo" not in str(command)


def test_a_file_to_import_is_named_as_it_was_given(files, tmp_path):
    done = run(files, "ptoprof", "import", "/nonexist")
    assert (done.returncode, done.stderr) == (1, "/nonexist: error: cannot read '/nonexist': No such file or "
                                                 "directory\n")
    cut = tmp_path / "core0.trace.json"
    cut.write_text("{")
    done = run(files, "ptoprof", "import", str(cut))
    assert done.returncode == 1 and done.stderr.startswith(f"{cut}: error: ")
