# SPDX-License-Identifier: Apache-2.0
"""Standard streams of all programs: output that is lost, input that cannot be read, Ctrl-C at any moment."""

import json
import os
import signal
import subprocess
import time

import numpy as np
import pytest
from command_lines import EMULATED, SIM, files, program, run

# ------------------------------------------------------------------------------ standard streams

PRINTERS = [
    ["ptoas", "--help"],
    ["ptoas", "--version"],
    ["ptoas", "--manual"],
    ["ptoas", "k.pto", "-o", "-"],
    ["ptoas", "k.pto", "--listing"],
    ["ptosim", "--help"],
    [*SIM],
    [*SIM, "--json"],
    [*SIM, "-q", "-p", "a"],
    ["ptosim", "diff", "--help"],
    ["ptoprof", "--help"],
    ["ptoprof", "devices"],
    ["ptoprof", "schema"],
    ["ptoprof", "report", "p.json", "--json"],
    ["ptodbg", "--version"],
    ["ptodbg", "k.pto", "--batch", "-ex", "list"],
    ["ptodbg", "k.pto", "--batch", "--json", "-ex", "help", "-ex", "list"],
]


@pytest.mark.parametrize("command", PRINTERS, ids=" ".join)
@pytest.mark.parametrize("stream", ["full", "closed"])
def test_output_that_is_lost_is_an_error(files, command, stream):
    reason = {"full": "No space left on device", "closed": "Bad file descriptor"}[stream]
    message = f"cannot write to standard output: {reason}"
    if stream == "full":
        with open("/dev/full", "w") as full:
            done = run(files, *command, stdout=full)
    else:
        done = run(files, *command, stdout=None, preexec_fn=lambda: os.close(1))
    assert done.returncode == 1, done.stderr
    if "--json" in command:
        [diagnostic] = json.loads(done.stderr)["diagnostics"]
        assert diagnostic["message"] == message
    else:
        assert done.stderr == f"{command[0]}: error: {message}\n"


def test_a_file_never_takes_the_place_of_a_closed_stream(tmp_path, files):
    def close_all():
        for descriptor in (0, 1, 2):
            os.close(descriptor)

    out = tmp_path / "o.npy"
    done = run(files, *SIM, "--grid", "4", "-o", f"a={out}", stdout=None, stderr=None,
               preexec_fn=close_all)
    assert done.returncode == 1  # the summary is lost, the file is not
    assert np.load(out).tolist() == [0, 1, 2, 3]


def test_standard_input_that_cannot_be_read(files):
    folder = os.open("/", os.O_RDONLY)
    for command in (["ptoas", "-", "--check"], ["ptosim", "-"]):
        done = run(files, *command, stdin=folder)
        assert done.returncode == 1
        assert done.stderr == ("error: cannot read standard input: it is a directory, a file was "
                               "expected\n")
        done = run(files, *command, preexec_fn=lambda: os.close(0))
        assert done.returncode == 1
        assert done.stderr == "error: cannot read standard input: Bad file descriptor\n"
    os.close(folder)


# ------------------------------------------------------------------------------ Ctrl-C


def start(folder, *words, **options):
    environment = dict(os.environ, HOME=str(folder))
    return subprocess.Popen([program(words[0]), *words[1:]], cwd=folder, text=True, env=environment,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


def interrupt(process, after=1.0):
    time.sleep(after)
    assert process.poll() is None, process.communicate()
    process.send_signal(signal.SIGINT)


@pytest.mark.parametrize("device", ["sim", EMULATED])
def test_interrupt_on_a_device(files, device):
    process = start(files, "ptosim", "endless.pto", "-a", "a=zeros:[1]", "-p", "a", "--device", device)
    interrupt(process)
    stdout, stderr = process.communicate(timeout=20)
    assert process.returncode == 130, (stdout, stderr)
    assert "ptosim: interrupted" in stderr
    assert "[0]  7\n" in stdout


def test_interrupt_while_nobody_reads(files):
    count = 100_000
    command = ["ptosim", "k.pto", "-q", "-a", f"a=iota:[{count}]", "--functional", "-p", f"a:{count}"]
    expected = run(files, *command).stdout
    assert len(expected) > 500_000  # more than a pipe holds
    process = start(files, *command)
    interrupt(process)
    stdout, stderr = process.communicate(timeout=20)
    assert (process.returncode, stderr) == (0, "")
    assert stdout == expected


def test_interrupt_of_the_debugger_while_nobody_reads(files):
    command = ["ptodbg", "k.pto", "-a", "a=iota:[60000]", "--batch", "-ex", "set elements 60000",
               "-ex", "start", "-ex", "x/60000uw hbm:a"]
    expected = run(files, *command).stdout
    assert len(expected) > 200_000
    process = start(files, *command)
    interrupt(process, after=2.0)
    stdout, stderr = process.communicate(timeout=20)
    assert stderr == ""
    assert stdout == expected
    assert process.returncode in (0, 130)  # 130 if the command itself was not over yet


def test_interrupted_schedules_do_not_agree(files):
    process = start(files, *SIM, "--json", "--schedule-fuzz", "1000000000")
    interrupt(process)
    stdout, stderr = process.communicate(timeout=20)
    assert process.returncode == 130, stderr
    fuzz = json.loads(stdout)["schedule_fuzz"]
    assert fuzz["interrupted"] is True
    assert fuzz["agree"] is None
    assert len(fuzz["schedules"]) > 4
    complete = json.loads(run(files, *SIM, "--json", "--schedule-fuzz", "2").stdout)["schedule_fuzz"]
    assert (complete["interrupted"], complete["agree"]) == (False, True)


DEBUG_ENDLESS = ["ptodbg", "endless.pto", "-a", "a=zeros:[1]", "-nx"]


def test_interrupted_batch(files):
    process = start(files, *DEBUG_ENDLESS, "--batch", "-ex", "run", "-ex", "echo after")
    interrupt(process)
    stdout, stderr = process.communicate(timeout=20)
    assert process.returncode == 130, (stdout, stderr)
    assert "nterrupted" in stdout
    assert "after" not in stdout


def test_interrupted_script(tmp_path, files):
    script = tmp_path / "script"
    script.write_text("run\necho after\n")
    process = start(files, *DEBUG_ENDLESS, "--batch", "-x", str(script))
    interrupt(process)
    stdout, stderr = process.communicate(timeout=20)
    assert process.returncode == 130, (stdout, stderr)
    assert stderr == f"{script}:1: interrupted; the script ends here\n"
    assert "after" not in stdout


def test_interrupt_of_commands_from_a_pipe(files):
    process = start(files, *DEBUG_ENDLESS, stdin=subprocess.PIPE)
    for _ in range(2):  # a front end may do so as often as it likes
        process.stdin.write("run\n")
        process.stdin.flush()
        interrupt(process)
    process.stdin.write("echo next\nprint $r0")
    stdout, stderr = process.communicate(timeout=20)
    assert process.returncode == 0, (stdout, stderr)
    assert "next\n" in stdout and stdout.endswith("= 7\n")
    process = start(files, *DEBUG_ENDLESS, stdin=subprocess.PIPE)
    interrupt(process)  # while it waits for a command
    assert process.wait(timeout=20) == 130
    process.communicate()
