"""Runs the planted faults of tests/checks/*.pto and their corrected twins.

A case is introduced by three comment lines:

    //! case NAME              kernels NAME_bad and NAME_good
    //! run ARGUMENTS          of ptosim, for both
    //! finds KIND[=N] ... ["text"]   what --checks=all must report for the bad kernel: every kind
                               named (N findings of it, if given), no other kind, and the text in
                               some message, hint, location or insn of an earlier access

The good kernel must give no finding. `//! clean NAME` and a run line stand for a kernel NAME that
must give none either. Used by tests/python/test_checks.py; by hand:
    run_checks.py BIN_DIR [NAME ...]
"""

import json
import pathlib
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass

HERE = pathlib.Path(__file__).resolve().parent


@dataclass(frozen=True)
class CheckCase:
    file: pathlib.Path
    name: str
    run: str
    kinds: tuple  # (kind, count or None)
    text: str

    def __str__(self):
        return self.name


def load_cases():
    cases = []
    for file in sorted(HERE.glob("*.pto")):
        fields = {}
        for line in file.read_text().splitlines():
            match = re.match(r"//! (case|clean|run|finds) (.*)", line)
            if not match:
                continue
            fields[match[1]] = match[2]
            if match[1] == "case":
                fields.pop("clean", None)
            if match[1] == "run" and "clean" in fields:
                cases.append(CheckCase(file, fields["clean"], match[2], (), ""))
            if match[1] == "finds":
                text = re.search(r'"([^"]*)"', match[2])
                words = re.sub(r'"[^"]*"', "", match[2]).split()
                kinds = tuple(
                    (w.split("=")[0], int(w.split("=")[1]) if "=" in w else None) for w in words
                )
                cases.append(
                    CheckCase(file, fields["case"], fields["run"], kinds, text[1] if text else "")
                )
    return cases


def findings(bin_dir, case, variant, extra=()):
    """The findings of one kernel, and the exit status."""
    command = [str(pathlib.Path(bin_dir) / "ptosim"), str(case.file)]
    kernel = f"{case.name}_{variant}" if case.kinds else case.name
    command += ["--kernel", kernel, "--functional", "--checks=all", "--json"]
    command += ["--max-instructions", "3000000", *shlex.split(case.run), *extra]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if done.returncode not in (0, 1):
        raise AssertionError(f"{shlex.join(command)}\nexit {done.returncode}\n{done.stderr}")
    report = json.loads(done.stdout)
    return report["findings"], done.returncode


def verdict(bin_dir, case):
    """What is wrong with the case, as text; empty if nothing is."""
    wrong = faulty(bin_dir, case) if case.kinds else []
    found, status = findings(bin_dir, case, "good")
    for finding in found:
        wrong.append(f"good: {finding['kind']}: {finding['message']} ({finding['hint']})")
    if status != 0:
        wrong.append(f"good: exit status {status}, expected 0")
    return "\n".join(wrong)


def faulty(bin_dir, case):
    wrong = []
    found, status = findings(bin_dir, case, "bad")
    for kind, count in case.kinds:
        number = sum(f["kind"] == kind for f in found)
        if number == 0 or (count is not None and number != count):
            wrong.append(f"bad: {number} findings of kind {kind}, expected {count or 'some'}")
    for finding in found:
        if finding["kind"] not in [kind for kind, _ in case.kinds]:
            wrong.append(f"bad: unexpected {finding['kind']}: {finding['message']}")
    told = " ".join(
        " ".join([f["message"], f["hint"], f.get("location", ""), f.get("there", {}).get("insn", "")])
        for f in found
    )
    if case.text.lower() not in told.lower():
        wrong.append(f"bad: nothing mentions '{case.text}': {told}")
    if status != 1:
        wrong.append(f"bad: exit status {status}, expected 1")
    return wrong


def main():
    cases = [c for c in load_cases() if len(sys.argv) < 3 or c.name in sys.argv[2:]]
    failed = 0
    for case in cases:
        problem = verdict(sys.argv[1], case)
        if problem:
            failed += 1
            print(f"{case.file.name}: {case.name}\n  " + problem.replace("\n", "\n  "))
    print(f"{len(cases) - failed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
