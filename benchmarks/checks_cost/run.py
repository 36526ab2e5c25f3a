#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the checks cost on the corpus: ratio of checked to unchecked time, and bytes a byte.

  run.py [--bin DIR] [--large] [PATTERN ...]

Runs one size of every kernel of the corpus (--large: the 512 x 512 x 512 products too) by the program
checks_cost, on one host thread, and prints a line a kernel and the medians. Build it first:
ninja checks_cost. Exit status 1 if the median ratio is above 12, or a kernel needs more than 12 bytes
a byte.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from corpus import manifest, ptosim  # noqa: E402

AIM = 12.0


def measure(entry, program, options):
    """The figures of every launch of a case, or the message of the program."""
    with tempfile.TemporaryDirectory(prefix="pto-checks-cost-") as folder:
        prepared = ptosim.PreparedCase(entry.build(), pathlib.Path(folder))
        figures = []
        for index in range(len(prepared.case.launches)):
            # A later launch reads what an earlier one left; the cost does not depend on it.
            command = prepared.command(index, program, options)
            for earlier in range(index):
                command = [word.replace(f".{earlier}.npy", ".npy") for word in command]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
            if done.returncode != 0:
                raise RuntimeError(done.stderr)
            figures.append(json.loads(done.stdout))
        return figures


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pattern", nargs="*", default=[""])
    parser.add_argument("--bin", type=pathlib.Path)
    parser.add_argument("--checks", default="all")
    parser.add_argument("--large", action="store_true")
    arguments = parser.parse_args()
    program = str((arguments.bin or ptosim.find_program("checks_cost").parent).resolve())
    program += "/checks_cost"
    without = () if arguments.large else ("large",)
    ratios, memory = [], []
    print(f"{'kernel':52} {'unchecked':>10} {'checked':>10} {'ratio':>6} {'bytes/byte':>10}")
    for entry in manifest.select(tags={"smoke"}, without=without):
        if not any(part in entry.name for part in arguments.pattern):
            continue
        figures = measure(entry, program, [f"--checks={arguments.checks}"])
        plain = sum(f["plain_seconds"] for f in figures)
        checked = sum(f["checked_seconds"] for f in figures)
        ratios.append(checked / plain)
        memory.append(max(f["bytes_a_byte"] for f in figures))
        print(
            f"{entry.name:52} {plain * 1e6:7.0f} us {checked * 1e6:7.0f} us "
            f"{ratios[-1]:6.2f} {memory[-1]:10.2f}"
        )
    ratio = statistics.median(ratios)
    print(f"{len(ratios)} kernels: median ratio {ratio:.2f} (aim: at most {AIM:g}), ", end="")
    print(f"worst {max(ratios):.2f}; bytes a byte at most {max(memory):.2f} (aim: {AIM:g})")
    return 0 if ratio <= AIM and max(memory) <= AIM else 1


if __name__ == "__main__":
    sys.exit(main())
