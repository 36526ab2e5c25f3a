# SPDX-License-Identifier: Apache-2.0
"""ptodbg at a real terminal: tmux types the keys and reads the screen."""

import os
import pathlib
import shutil
import subprocess
import time
import uuid

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("PTO_BIN_DIR", ROOT / "build" / "release" / "bin"))
PTODBG = BIN / "ptodbg"

pytestmark = pytest.mark.skipif(not PTODBG.exists() or shutil.which("tmux") is None,
                                reason="needs ptodbg and tmux")

KERNEL = """.pto 1
.kernel endless(ptr.u32 o, u32 n)
    mov.u32   r0, %tid.x
    mov.u32   r1, 0
again:
    add.u32   r1, r1, 1
    cmp.ne.u32 p0, n, 0
@p0 bra       again
    store.u32 hbm[o + r0*4], r1
    exit
.end
"""
PROMPT = "(pto)"


class Terminal:
    def __init__(self, folder, *options):
        self.socket = f"ptodbg-{uuid.uuid4().hex[:8]}"
        self.folder = folder
        command = " ".join([str(PTODBG), "k.pto", "--block", "32", "--arg",
                            "o=zeros:u32[32]", *options])
        environment = dict(os.environ, HOME=str(folder), TERM="xterm",
                           PTODBG_HISTORY=str(folder / "history"))
        environment.pop("TMUX", None)
        self.environment = environment
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", "100", "-y", "40", "-c",
                  str(folder), f"{command}; echo ended $?; sleep 100")

    def tmux(self, *arguments):
        return subprocess.run(["tmux", "-L", self.socket, *arguments], env=self.environment,
                              text=True, capture_output=True, timeout=20).stdout

    def screen(self):
        return self.tmux("capture-pane", "-p", "-S", "-200")

    def wait(self, condition, what):
        end = time.monotonic() + 30
        while time.monotonic() < end:
            text = self.screen()
            if condition(text):
                return text
            time.sleep(0.05)
        raise AssertionError(f"never saw {what}; the screen shows\n{self.screen()}")

    def keys(self, *keys):
        self.tmux("send-keys", *keys)

    def prompt(self):
        """Waits for a prompt with nothing behind it."""
        return self.wait(lambda text: text.rstrip().endswith(PROMPT), "a prompt")

    def type(self, line):
        before = self.screen().count(PROMPT)
        self.tmux("send-keys", "-l", line)
        self.keys("Enter")
        return self.wait(
            lambda text: text.count(PROMPT) > before and text.rstrip().endswith(PROMPT),
            f"a prompt after {line}")

    def close(self):
        self.tmux("kill-server")


@pytest.fixture
def open_terminal(tmp_path):
    terminals = []

    def start(*options):
        (tmp_path / "k.pto").write_text(KERNEL)
        terminal = Terminal(tmp_path, *options)
        terminals.append(terminal)
        terminal.prompt()
        return terminal

    yield start
    for terminal in terminals:
        terminal.close()


def test_completion_history_and_empty_lines(open_terminal):
    terminal = open_terminal("--arg", "n=0")
    terminal.tmux("send-keys", "-l", "brea")
    terminal.keys("Tab")
    terminal.tmux("send-keys", "-l", "ag")
    terminal.keys("Tab")
    terminal.keys("Enter")
    text = terminal.wait(lambda t: "Breakpoint 1 at" in t, "a completed breakpoint")
    assert "break again" in text
    terminal.prompt()
    terminal.type("run")
    terminal.type("print $r1")
    terminal.keys("Up")
    terminal.keys("Enter")
    terminal.wait(lambda t: "$2 = 0" in t, "the line from the history")
    terminal.prompt()
    terminal.type("stepw")
    before = terminal.screen().count("cycle ")
    terminal.keys("Enter")  # an empty line repeats
    terminal.wait(lambda t: t.count("cycle ") > before, "another step")
    terminal.prompt()
    terminal.keys("C-d")
    terminal.wait(lambda t: "ended 0" in t, "the end")
    assert "break again" in (terminal.folder / "history").read_text()
    assert terminal.screen().count("quit") == 1  # the end of input ends once


def test_ctrl_c_stops_a_kernel_and_keeps_its_state(open_terminal):
    terminal = open_terminal("--arg", "n=1")
    terminal.tmux("send-keys", "-l", "run")
    terminal.keys("Enter")
    time.sleep(0.5)
    terminal.keys("C-c")
    terminal.wait(lambda t: "Interrupted" in t, "the interruption")
    terminal.prompt()
    text = terminal.type("print $r1 > 100")
    assert "$1 = 1" in text
    text = terminal.type("reverse-step")
    assert "cycle " in text
    terminal.keys("C-c")  # at the prompt it only drops the line
    text = terminal.type("print 40 + 2")
    assert "= 42" in text
    terminal.type("kill")
    terminal.tmux("send-keys", "-l", "quit")
    terminal.keys("Enter")
    terminal.wait(lambda t: "ended 0" in t, "the end")


def test_the_window_may_change_its_size(open_terminal):
    terminal = open_terminal("--arg", "n=0")
    terminal.tmux("send-keys", "-l", "print 1 +")
    terminal.tmux("resize-window", "-x", "60", "-y", "20")
    time.sleep(0.2)
    terminal.tmux("send-keys", "-l", " 1")
    terminal.keys("Enter")
    terminal.wait(lambda t: "$1" in t or "no kernel is running" in t, "an answer")
    terminal.type("start")
    text = terminal.type("print 20 + 3")
    assert "= 23" in text
