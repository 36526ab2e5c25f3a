# SPDX-License-Identifier: Apache-2.0
"""Runs a Case by the program ptosim, or writes it to a directory as files and command lines."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import shlex
import subprocess
import tempfile
from collections.abc import Sequence

import numpy as np

from .case import ROOT, Case, Launch


class RunError(Exception):
    """ptosim ended with another status than 0; the text holds its command line and messages."""


def find_program(name: str = "ptosim") -> pathlib.Path:
    """The built program: in $PTO_BIN_DIR, else in the newest build/*/bin of the repository."""
    if directory := os.environ.get("PTO_BIN_DIR"):
        return pathlib.Path(directory) / name
    built = sorted(ROOT.glob(f"build/*/bin/{name}"), key=lambda path: path.stat().st_mtime)
    if not built:
        raise FileNotFoundError(f"no build/*/bin/{name}: build the project or set PTO_BIN_DIR")
    return built[-1]


def _scalar(value) -> str:
    return repr(value.item()) if isinstance(value, np.float64) else str(value)


@dataclasses.dataclass(frozen=True)
class Result:
    outputs: dict[str, np.ndarray]
    stdout: str
    stderr: str


class PreparedCase:
    """A case in a directory.

    <buffer>.npy is a buffer before the first launch, <buffer>.<i>.npy after launch number i
    (0, 1, ...) if that launch may change it, expected.<buffer>.npy what an output must be.
    """

    def __init__(self, case: Case, directory: pathlib.Path):
        self.case = case
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        for name, array in case.buffers.items():
            np.save(directory / f"{name}.npy", array)
        for name, array in case.expected.items():
            np.save(directory / f"expected.{name}.npy", array)

    def command(
        self, index: int, program: str, options: Sequence[str] = (), expect: bool = False
    ) -> list[str]:
        """The command line of launch number index, to be run in the directory.

        expect adds ptosim's own comparison to the last launch.
        """
        launch: Launch = self.case.launches[index]
        line = [program, str(self.case.file), "--kernel", launch.kernel]
        line += ["--grid", ",".join(map(str, launch.grid))]
        line += ["--block", ",".join(map(str, launch.block))]
        for parameter, value in launch.args.items():
            text = f"@{self._latest(value, index)}" if isinstance(value, str) else _scalar(value)
            line += ["--arg", f"{parameter}={text}"]
        for parameter, value in launch.args.items():
            if isinstance(value, str) and value in launch.writes:
                line += ["--out", f"{parameter}={value}.{index}.npy"]
        if expect and index == len(self.case.launches) - 1:
            for parameter, value in launch.args.items():
                if isinstance(value, str) and value in self.case.expected:
                    line += ["--expect", f"{parameter}=expected.{value}.npy"]
            line += ["--rtol", str(self.case.rtol), "--atol", str(self.case.atol)]
        return line + list(options)

    def _latest(self, buffer: str, index: int) -> str:
        """The file with a buffer's contents before launch number index."""
        for earlier in reversed(range(index)):
            if buffer in self.case.launches[earlier].writes:
                return f"{buffer}.{earlier}.npy"
        return f"{buffer}.npy"

    def run(self, program: str, options: Sequence[str] = (), timeout: float = 120.0) -> Result:
        """All launches in order. RunError where one fails; results are not compared."""
        stdout = stderr = ""
        for index in range(len(self.case.launches)):
            line = self.command(index, program, options)
            done = subprocess.run(
                line, cwd=self.directory, capture_output=True, text=True, timeout=timeout
            )
            stdout += done.stdout
            stderr += done.stderr
            if done.returncode != 0:
                messages = done.stderr or done.stdout
                raise RunError(f"status {done.returncode}: {shlex.join(line)}\n{messages}")
        after = len(self.case.launches)
        outputs = {
            name: np.load(self.directory / self._latest(name, after)) for name in self.case.outputs
        }
        return Result(outputs, stdout, stderr)

    def write_script(self, program: str = "ptosim", options: Sequence[str] = ()) -> pathlib.Path:
        """run.sh: the launches as a person would type them, with ptosim's own comparison."""
        lines = ["#!/bin/sh", f"# {self.case.name}", 'cd "$(dirname "$0")" || exit 2', "set -e"]
        lines += [
            shlex.join(self.command(index, program, options, expect=True))
            for index in range(len(self.case.launches))
        ]
        script = self.directory / "run.sh"
        script.write_text("\n".join(lines) + "\n")
        script.chmod(0o755)
        return script


def run(case: Case, program: str | None = None, options: Sequence[str] = ()) -> Result:
    """Runs a case in a temporary directory.

    RunError if ptosim fails, AssertionError if a result is wrong.
    """
    with tempfile.TemporaryDirectory(prefix="pto-corpus-") as directory:
        prepared = PreparedCase(case, pathlib.Path(directory))
        result = prepared.run(program or str(find_program()), options)
    if difference := case.mismatch(result.outputs):
        raise AssertionError(f"{case.name}: {difference}")
    return result
