#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the corpus with ptosim and compares with the expected results, or lists or dumps the cases.

  run_corpus.py                              all cases
  run_corpus.py softmax --tag smoke          some of them
  run_corpus.py -- --profile ascend950       what follows -- goes to ptosim
  run_corpus.py --list
  run_corpus.py scan --dump DIR              a directory a case, with run.sh

Exit status: 0 all agree, 1 some do not, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from corpus import manifest, ptosim  # noqa: E402
from corpus.case import Entry  # noqa: E402


def parse(argv: list[str]) -> argparse.Namespace:
    own, options = argv, []
    if "--" in argv:
        cut = argv.index("--")
        own, options = argv[:cut], argv[cut + 1 :]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pattern", nargs="*", default=[""], help="parts of case names")
    parser.add_argument("--tag", action="append", default=[], help="only cases with this tag")
    parser.add_argument("--without", action="append", default=[], help="no cases with this tag")
    parser.add_argument("--program", help="ptosim (default: $PTO_BIN_DIR, else the newest build)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="cases at a time")
    parser.add_argument("--list", action="store_true", help="print names and tags")
    parser.add_argument("--dump", type=pathlib.Path, metavar="DIR", help="write cases, run nothing")
    arguments = parser.parse_args(own)
    arguments.options = options
    return arguments


def run_one(entry: Entry, program: str, options: list[str]) -> str | None:
    try:
        ptosim.run(entry.build(), program, options)
    except (AssertionError, ptosim.RunError) as error:
        return str(error)
    except Exception as error:  # a time-out or a broken program is one failed case, not the end
        return f"{type(error).__name__}: {error}"
    return None


def main(argv: list[str]) -> int:
    arguments = parse(argv)
    chosen = [
        entry
        for entry in manifest.select(tags=arguments.tag, without=arguments.without)
        if any(part in entry.name for part in arguments.pattern)
    ]
    if not chosen:
        print("run_corpus: no case matches; --list shows all names and tags", file=sys.stderr)
        return 2
    if arguments.list:
        for entry in chosen:
            print(entry.name, *sorted(entry.tags))
        return 0
    if arguments.dump:
        for entry in chosen:
            directory = arguments.dump / entry.name.replace("/", ".")
            prepared = ptosim.PreparedCase(entry.build(), directory)
            print(prepared.write_script(options=arguments.options))
        return 0

    try:
        program = str(pathlib.Path(arguments.program or ptosim.find_program()).resolve())
    except FileNotFoundError as error:
        print(f"run_corpus: {error}", file=sys.stderr)
        return 2
    started = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        outcomes = list(pool.map(lambda entry: run_one(entry, program, arguments.options), chosen))
    failed = 0
    for entry, problem in zip(chosen, outcomes):
        if problem is not None:
            failed += 1
            print(f"FAILED {entry.name}\n  " + problem.strip().replace("\n", "\n  "))
    seconds = time.monotonic() - started
    print(f"{len(chosen) - failed} of {len(chosen)} cases agree ({seconds:.1f} s)")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
