#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the commands that the documents show and compares what they print.

Usage: check_readme.py [-u] DOCUMENT...

Every block fenced with ```console is a session: lines that start with `$ ` are commands (a line that
ends in a backslash goes on, and so do lines that start with `> `), the lines below one are what it prints, output and errors together. All
sessions of a document run in order in one scratch folder that sees the project's folders, so that an
earlier command may write what a later one reads, with the built programs ($PTO_BIN_DIR) first on
PATH. In the expected text

  ...              alone in a line stands for any number of lines,
  1.23 ms, 45 M/s  and the like: measured times and rates match any others.

A command that ends with a status other than 0 shows it in a last line `[exit status 1]`. With
<!-- not run: reason --> in the line before the fence, a block is left alone. -u writes what is
printed now into the documents (blocks with a `...` excepted).
"""

import argparse
import difflib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
FENCE = re.compile(
    r"(?P<skip><!-- not run: [^\n]*-->\n)?^```console\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL
)
NUMBER = r"\d[\d,]*(?:\.\d+)?"
MEASURED = [
    # 1.2 s, 340 ms, 12.5 M insns/s, 3 MB/s
    (re.compile(NUMBER + r" ?(?:ns|us|µs|ms|s|min)\b(?!\w)"), "<time>"),
    (re.compile(NUMBER + r" ?[kMG]?(?:i?B| ?[a-z]+)?/s\b"), "<rate>"),
]


def normalise(line):
    for pattern, name in MEASURED:
        line = pattern.sub(name, line)
    return line.rstrip()


def matches(expected, actual):
    """Whether lines agree, a `...` in `expected` standing for any number of lines."""
    if not expected:
        return not actual
    if expected[0].strip() == "...":
        return any(matches(expected[1:], actual[i:]) for i in range(len(actual) + 1))
    return bool(actual) and expected[0] == actual[0] and matches(expected[1:], actual[1:])


def steps_of(body):
    """(command, expected lines) of a session."""
    steps = []
    lines = body.splitlines()
    while lines:
        line = lines.pop(0)
        if line.startswith("$ "):
            command = [line]
            while lines and (command[-1].endswith("\\") or lines[0].startswith("> ")):
                command.append(lines.pop(0))
            steps.append((command, []))
        elif steps:
            steps[-1][1].append(line)
        else:
            raise ValueError(f"a session starts with a line that is no command: {line!r}")
    return steps


def run(command, folder):
    text = "\n".join(line.removeprefix("> ") for line in command)[2:]
    environment = dict(os.environ, LC_ALL="C.UTF-8", TERM="dumb", COLUMNS="100")
    environment["PATH"] = f"{os.environ['PTO_BIN_DIR']}:{environment['PATH']}"
    done = subprocess.run(["/bin/bash", "-c", text], cwd=folder, env=environment, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=120)
    lines = done.stdout.splitlines()
    if done.returncode != 0:
        lines.append(f"[exit status {done.returncode}]")
    return lines


def check_document(path, is_update):
    """Runs a document's sessions; returns the number of commands and of those that differ."""
    text = path.read_text(encoding="utf-8")
    count = failures = 0
    pieces = []
    end = 0
    with tempfile.TemporaryDirectory() as scratch:
        for folder in ROOT.iterdir():
            if folder.is_dir() and not folder.name.startswith(".") and folder.name != "build":
                (pathlib.Path(scratch) / folder.name).symlink_to(folder)
        for fence in FENCE.finditer(text):
            if fence["skip"]:
                continue
            body = []
            for command, expected in steps_of(fence["body"]):
                count += 1
                actual = run(command, scratch)
                is_same = matches([normalise(line) for line in expected],
                                  [normalise(line) for line in actual])
                if not is_same and not is_update:
                    failures += 1
                    line_number = text.count("\n", 0, fence.start("body")) + 1
                    print(f"{path}:{line_number}: {command[0]}")
                    print("\n".join(difflib.unified_diff(
                        expected, actual, "shown in the document", "printed now", lineterm="")))
                keeps = is_same or any(line.strip() == "..." for line in expected)
                body += command + (expected if keeps else actual)
            pieces += [text[end:fence.start("body")], "".join(f"{line}\n" for line in body)]
            end = fence.end("body")
    if is_update:
        path.write_text("".join(pieces) + text[end:], encoding="utf-8")
    return count, failures


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-u", "--update", action="store_true",
                        help="write what is printed now into the documents")
    parser.add_argument("documents", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    if "PTO_BIN_DIR" not in os.environ:
        parser.error("PTO_BIN_DIR is not set; expected the folder of the built programs")

    count = failures = 0
    for document in options.documents:
        ran, failed = check_document(document, options.update)
        count += ran
        failures += failed
    print(f"{count} commands in {len(options.documents)} documents, {failures} differ")
    return 1 if failures or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
