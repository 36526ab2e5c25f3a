#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs golden files: commands of the real programs with their input and their exact output.

A case is one file tests/golden/TOPIC/NAME.golden, made of sections. A section starts with a line
"=== KIND":

    === about            what the case shows (required)
    === file k.pto       a file in the folder that the commands run in; any number
    === stdin            what the commands read
    === command          one command a line, words as in a shell: ptosim k.pto --grid 2
    === status           the status of the last command, if it is not 0
    === stdout           what they print, together; an absent section is an empty one
    === stderr

Commands run in order in an empty folder, until one fails. `{root}` in a command is the repository;
its path and that of the folder never appear in the output (`{root}`, `{dir}` do). Programs are
found in $PTO_BIN_DIR, else in the newest build/*/bin.

Usage: run_golden.py [-u] [TOPIC | FILE]...       (default: all topics)
-u rewrites status, stdout and stderr with what the programs do now: read the diff as code.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import difflib
import io
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
GOLDEN = ROOT / "tests" / "golden"
OUTCOME = ("status", "stdout", "stderr")
TIMEOUT = 60


class CaseError(Exception):
    """The file is no golden case."""


@dataclasses.dataclass
class Section:
    kind: str
    argument: str
    text: str


def parse(path: pathlib.Path) -> list[Section]:
    sections: list[Section] = []
    # Line ends and odd bytes of inputs are kept as they are.
    text = path.read_bytes().decode("utf-8", "surrogateescape")
    for line in io.StringIO(text, newline="\n"):
        if line.startswith("=== "):
            kind, _, argument = line[4:].strip().partition(" ")
            sections.append(Section(kind, argument, ""))
        elif sections:
            sections[-1].text += line
        elif line.strip():
            raise CaseError(f"text before the first section: {line.strip()!r}")
    known = {"about", "file", "stdin", "command", *OUTCOME}
    for section in sections:
        if section.kind not in known:
            raise CaseError(f"unknown section '{section.kind}'; known are {', '.join(sorted(known))}")
        if (section.kind == "file") != bool(section.argument):
            raise CaseError(f"section '{section.kind}': only 'file' takes a name, and needs one")
    kinds = [section.kind for section in sections]
    for kind in known - {"file"}:
        if kinds.count(kind) > 1:
            raise CaseError(f"section '{kind}' twice")
    for kind in ("about", "command"):
        if kind not in kinds:
            raise CaseError(f"no section '{kind}'")
    return sections


def text_of(sections: list[Section], kind: str) -> str:
    return next((section.text for section in sections if section.kind == kind), "")


def programs() -> pathlib.Path:
    if directory := os.environ.get("PTO_BIN_DIR"):
        return pathlib.Path(directory).resolve()
    built = sorted(ROOT.glob("build/*/bin"), key=lambda folder: folder.stat().st_mtime)
    if not built:
        sys.exit("run_golden: no build/*/bin: build the project or set PTO_BIN_DIR")
    return built[-1]


def execute(sections: list[Section], bin_dir: pathlib.Path) -> dict[str, str]:
    """What the commands do: texts by section kind."""
    with tempfile.TemporaryDirectory(prefix="pto-golden-") as folder:
        for section in sections:
            if section.kind == "file":
                target = pathlib.Path(folder, section.argument)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(section.text.encode("utf-8", "surrogateescape"))
        environment = {**os.environ, "NO_COLOR": "1", "LC_ALL": "C.UTF-8", "COLUMNS": "100"}
        status, stdout, stderr = 0, "", ""
        for line in text_of(sections, "command").splitlines():
            words = shlex.split(line.replace("{root}", str(ROOT)), comments=True)
            if not words:
                continue
            done = subprocess.run(
                [bin_dir / words[0], *words[1:]],
                cwd=folder,
                env=environment,
                input=text_of(sections, "stdin").encode("utf-8", "surrogateescape"),
                capture_output=True,
                timeout=TIMEOUT,
            )
            stdout += done.stdout.decode("utf-8", "surrogateescape")
            stderr += done.stderr.decode("utf-8", "surrogateescape")
            status = done.returncode
            if status != 0:
                break

    def neutral(text: str) -> str:
        text = text.replace(folder, "{dir}").replace(str(ROOT), "{root}")
        return text if not text or text.endswith("\n") else text + "\n"

    return {
        "status": f"{status}\n" if status else "",
        "stdout": neutral(stdout),
        "stderr": neutral(stderr),
    }


def rewrite(path: pathlib.Path, sections: list[Section], outcome: dict[str, str]) -> None:
    kept = [section for section in sections if section.kind not in OUTCOME]
    parts = kept + [Section(kind, "", outcome[kind]) for kind in OUTCOME if outcome[kind]]
    text = "".join(f"=== {f'{part.kind} {part.argument}'.strip()}\n{part.text}" for part in parts)
    path.write_bytes(text.encode("utf-8", "surrogateescape"))


def run_case(path: pathlib.Path, bin_dir: pathlib.Path, update: bool) -> str | None:
    """None if the case holds (or was rewritten), else what is wrong."""
    try:
        sections = parse(path)
        outcome = execute(sections, bin_dir)
    except (CaseError, OSError) as error:
        return f"{error}\n"
    except subprocess.TimeoutExpired:
        return f"still running after {TIMEOUT} s\n"
    wanted = {kind: text_of(sections, kind) for kind in OUTCOME}
    if wanted == outcome:
        return None
    if update:
        rewrite(path, sections, outcome)
        print(f"rewrote {path.relative_to(ROOT)}")
        return None
    lines: list[str] = []
    for kind in OUTCOME:
        lines += difflib.unified_diff(
            wanted[kind].splitlines(keepends=True),
            outcome[kind].splitlines(keepends=True),
            f"{kind} expected",
            f"{kind} now",
        )
    return "".join(lines).encode("utf-8", "backslashreplace").decode()


def find_cases(names: list[str]) -> list[pathlib.Path]:
    cases: list[pathlib.Path] = []
    for name in names or ["."]:
        path = pathlib.Path(name) if name.endswith(".golden") else GOLDEN / name
        found = [path.resolve()] if path.is_file() else sorted(path.glob("**/*.golden"))
        if not found:
            sys.exit(f"run_golden: no case in {path}")
        cases += found
    return cases


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-u", "--update", action="store_true", help="rewrite expected outcomes")
    parser.add_argument("names", nargs="*", metavar="TOPIC|FILE")
    options = parser.parse_args()
    cases = find_cases(options.names)
    bin_dir = programs()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        failures = list(pool.map(lambda path: run_case(path, bin_dir, options.update), cases))
    for path, failure in zip(cases, failures):
        if failure is not None:
            print(f"FAILED {path.relative_to(ROOT)}\n{failure}", end="")
    failed = sum(failure is not None for failure in failures)
    print(f"{len(cases)} golden cases, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
