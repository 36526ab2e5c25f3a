#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the generated files of the repository with what the built programs generate now.

Usage: check_generated.py [-u]      (-u writes them; programs in $PTO_BIN_DIR)
"""

import difflib
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
GENERATED = {
    "docs/isa.md": ["ptoas", "--manual"],
    "runtime/profile/profile.schema.json": ["ptoprof", "schema"],
}


def main():
    if sys.argv[1:] not in ([], ["-u"]) or "PTO_BIN_DIR" not in os.environ:
        sys.exit(__doc__)
    stale = 0
    for name, (program, *arguments) in GENERATED.items():
        path = ROOT / name
        command = [os.path.join(os.environ["PTO_BIN_DIR"], program), *arguments]
        fresh = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        if len(sys.argv) > 1:
            path.write_text(fresh, encoding="utf-8")
            continue
        old = path.read_text(encoding="utf-8") if path.exists() else ""
        if old != fresh:
            stale += 1
            difference = difflib.unified_diff(old.splitlines(), fresh.splitlines(), name,
                                              f"{program} {' '.join(arguments)}", lineterm="")
            print("\n".join(list(difference)[:40]))
            print(f"{name} is stale; run tests/check_generated.py -u and commit it")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
