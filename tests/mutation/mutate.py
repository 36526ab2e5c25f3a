#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Mutants of the corpus: one barrier, wait or fence deleted or weakened at a time.

    mutate.py                     all mutants: found by the checks? another result under some schedule?
    mutate.py scan transpose      those of some files
    mutate.py --list              the mutants, without running anything
    mutate.py --markdown          the tables of docs/checks.md

A mutant *changes the meaning* if some case of the corpus ends otherwise or gives another result under
one of the schedules (functional, lockstep, greedy and random ones). It is *found* if
--checks=init,race,sync reports anything in one functional run of one of the cases. What is neither is
judged in missed.json, by hand, with a reason. Exit status 1 if fewer than 95 % of the mutants that
change the meaning are found, or missed.json does not say why one was missed.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from corpus import manifest, ptosim  # noqa: E402
from corpus.case import EXAMPLES  # noqa: E402

MISSED = HERE / "missed.json"
AIM = 0.95
SCHEDULES = ["--functional", "--schedule=lockstep", "--schedule=greedy"]
SCHEDULES += [f"--schedule=random:{seed}" for seed in range(1, 13)]
LIMITS = ["--max-instructions", "4000000"]

# What a statement may become; None: nothing.
RULES = [
    (r"barrier_block\b.*", [None, "barrier"]),
    (r"barrier\s*$", [None]),
    (r"wait_all\s*$", [None]),
    (r"wait\s+e(\d)", [None, lambda m: f"wait e{(int(m[1]) + 4) % 8}"]),
    (r"fence\.device\b", [None, "fence.block"]),
    (r"fence\.block\b", [None]),
    (r"inval\b.*", [None]),
    (r"load((?:\.\w+)*)\.cv\b((?:\.\w+)*)(.*)", [lambda m: f"load{m[1]}{m[2]}{m[3]}"]),
]


@dataclasses.dataclass(frozen=True)
class Mutant:
    file: str  # below examples/
    line: int  # from 0
    number: int  # of the mutant in its file
    before: str
    after: str | None

    @property
    def key(self):
        text = f"{self.file} #{self.number} {self.before} -> {self.after or 'nothing'}"
        return re.sub(r"\s+", " ", text)

    def write(self, folder):
        path = folder / self.file
        lines = path.read_text().splitlines()
        lines[self.line] = lines[self.line].replace(self.before, self.after or "nop", 1)
        path.write_text("\n".join(lines) + "\n")


def mutants_of(path):
    """Every mutant of one source file. A deleted statement becomes a nop, so that labels stay."""
    result = []
    for at, line in enumerate(path.read_text().splitlines()):
        code = re.sub(r"//.*", "", line)
        code = re.sub(r"^\s*(\w+:)?\s*(@!?p\d)?\s*", "", code).rstrip()
        for pattern, changes in RULES:
            match = re.fullmatch(pattern, code)
            if not match:
                continue
            for change in changes:
                after = change(match) if callable(change) else change
                result.append(
                    Mutant(str(path.relative_to(EXAMPLES)), at, len(result), match[0], after)
                )
            break
    return result


def all_mutants(patterns):
    return [
        mutant
        for path in sorted(EXAMPLES.rglob("*.pto"))
        if any(pattern in str(path.relative_to(EXAMPLES)) for pattern in patterns)
        for mutant in mutants_of(path)
    ]


def users_of(file):
    """The source files that are, or include, a file."""
    name = pathlib.Path(file).name
    return {
        path
        for path in EXAMPLES.rglob("*.pto")
        if path == EXAMPLES / file or f'{name}"' in path.read_text()
    }


def entries_for(mutant):
    users = users_of(mutant.file)
    return [e for e in manifest.select(without={"large"}) if e.file in users]


def run(prepared, program, options):
    """(findings, how it ended) of all launches of a case."""
    findings = 0
    for index in range(len(prepared.case.launches)):
        command = prepared.command(index, program, [*options, *LIMITS, "--json"])
        done = subprocess.run(
            command, cwd=prepared.directory, capture_output=True, text=True, timeout=120
        )
        if not done.stdout:
            raise RuntimeError(f"{' '.join(command)}\n{done.stderr}")
        report = json.loads(done.stdout)
        findings += len(report["findings"])
        if report["status"] != "completed":
            return findings, report["status"]
    return findings, "completed"


def outputs_differ(prepared):
    import numpy as np

    after = len(prepared.case.launches)
    outputs = {
        name: np.load(prepared.directory / prepared._latest(name, after))
        for name in prepared.case.outputs
    }
    return prepared.case.mismatch(outputs)


@dataclasses.dataclass
class Verdict:
    mutant: Mutant
    is_found: bool = False
    changes: str = ""  # how, under which schedule; empty: not seen to


def judge(mutant, program, with_schedules):
    verdict = Verdict(mutant)
    with tempfile.TemporaryDirectory(prefix="pto-mutant-") as folder:
        examples = pathlib.Path(folder) / "examples"
        shutil.copytree(EXAMPLES, examples)
        mutant.write(examples)
        for number, entry in enumerate(entries_for(mutant)):
            case = entry.build()
            case = dataclasses.replace(case, file=examples / case.file.relative_to(EXAMPLES))
            prepared = ptosim.PreparedCase(case, pathlib.Path(folder) / str(number))
            if not verdict.is_found:
                checks = ["--functional", "--checks=init,race,sync"]
                verdict.is_found = run(prepared, program, checks)[0] != 0
            for schedule in SCHEDULES if with_schedules and not verdict.changes else []:
                _, status = run(prepared, program, [schedule])
                wrong = outputs_differ(prepared) if status == "completed" else status
                if wrong:
                    verdict.changes = f"{entry.name}, {schedule.removeprefix('--')}: {wrong}"
                    break
            if verdict.is_found and (verdict.changes or not with_schedules):
                break
    return verdict


def judge_all(mutants, program, with_schedules=True, jobs=None):
    with concurrent.futures.ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
        return list(pool.map(lambda m: judge(m, program, with_schedules), mutants))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pattern", nargs="*", default=[""], help="parts of file names")
    parser.add_argument("--program", help="ptosim (default: $PTO_BIN_DIR, else the newest build)")
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--markdown", action="store_true")
    arguments = parser.parse_args()
    mutants = all_mutants(arguments.pattern)
    if arguments.list:
        for mutant in mutants:
            print(mutant.key)
        return 0
    program = str(pathlib.Path(arguments.program or ptosim.find_program()).resolve())
    verdicts = judge_all(mutants, program, jobs=arguments.jobs)
    reasons = json.loads(MISSED.read_text())
    changing = [v for v in verdicts if v.changes]
    found = [v for v in changing if v.is_found]
    missed = [v for v in verdicts if not v.is_found]
    share = len(found) / len(changing) if changing else 1.0
    summary = (
        f"{len(mutants)} mutants; {len(changing)} change a result under some schedule, "
        f"{len(found)} of them found ({share:.0%}); {sum(v.is_found for v in verdicts)} found in all"
    )
    unexplained = [v for v in missed if v.mutant.key not in reasons]
    if arguments.markdown:
        print(summary + ".\n\n| mutant | seen to change a result | why the checks say nothing |")
        print("| --- | --- | --- |")
        for v in missed:
            seen = v.changes or "no"
            print(f"| `{v.mutant.key}` | {seen} | {reasons.get(v.mutant.key, '?')} |")
    else:
        for v in missed:
            print(f"missed: {v.mutant.key}: {v.changes or 'no other result seen'}")
            print(f"    {reasons.get(v.mutant.key, 'NO REASON GIVEN')}")
        print(summary)
    return 0 if share >= AIM and not unexplained else 1


if __name__ == "__main__":
    sys.exit(main())
