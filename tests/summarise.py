#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Adds up what the stages of scripts/test left behind and prints it in ctest's words.

Usage: summarise.py RESULTS STAGE...

RESULTS holds `stages` (a line a finished stage: name, exit status, seconds) and `STAGE.xml` (ctest's
JUnit output) for stages that ran tests. A stage counts as one failed test of its own when it failed
without a failed test to show for it (it did not build, or it never ended). Exits with 1 when
anything failed.
"""

import pathlib
import sys
import xml.etree.ElementTree


def cases_of(path):
    """(name, has_passed) of every test in a JUnit file; tests that were skipped are left out."""
    cases = []
    for case in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
        if case.get("status") not in ("disabled", "notrun"):
            cases.append((case.get("name"), case.get("status") == "run"))
        elif case.find("skipped") is None:
            cases.append((case.get("name"), False))
    return cases


def summarise(results, stages):
    """Returns the report's lines and the number of failed tests."""
    ended = {}
    if (results / "stages").exists():
        for line in (results / "stages").read_text().splitlines():
            name, status, seconds = line.split()
            ended[name] = (int(status), int(seconds))

    lines = [f"{'stage':<10} {'tests':>6} {'failed':>7} {'seconds':>8}"]
    total = 0
    failed = []
    for stage in stages:
        path = results / f"{stage}.xml"
        cases = cases_of(path) if path.exists() else []
        bad = [name for name, has_passed in cases if not has_passed]
        status, seconds = ended.get(stage, (None, 0))
        total += len(cases)
        failed += [f"{name} ({stage})" for name in bad]
        if not cases or (status != 0 and not bad):
            total += 1
            if status is None:
                failed.append(f"{stage} did not end")
            elif status != 0:
                failed.append(f"{stage} stopped with status {status}")
        lines.append(f"{stage:<10} {len(cases):>6} {len(bad):>7} {seconds:>8}")

    if failed:
        lines += ["", "The following tests FAILED:"] + [f"\t{name}" for name in failed]
    # Never "100%" while something failed.
    percent = 100 if not failed else min(99, 100 * (total - len(failed)) // max(total, 1))
    lines += ["", f"{percent}% tests passed, {len(failed)} tests failed out of {total}"]
    return lines, len(failed)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    lines, failures = summarise(pathlib.Path(sys.argv[1]), sys.argv[2:])
    print("\n".join(lines))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
