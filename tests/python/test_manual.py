# SPDX-License-Identifier: Apache-2.0
"""docs/isa.md is what the instruction table says."""

import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_manual_is_not_stale():
    ptoas = pathlib.Path(os.environ["PTO_BIN_DIR"], "ptoas")
    generated = subprocess.run([ptoas, "--manual"], capture_output=True, check=True, text=True).stdout
    written = (ROOT / "docs" / "isa.md").read_text()
    assert written == generated, "docs/isa.md is stale: ptoas --manual -o docs/isa.md"


def test_every_instruction_has_its_page():
    ptoas = pathlib.Path(os.environ["PTO_BIN_DIR"], "ptoas")
    listing = subprocess.run(
        [ptoas, "--list-instructions"], capture_output=True, check=True, text=True
    ).stdout
    manual = (ROOT / "docs" / "isa.md").read_text()
    mnemonics = [line.split()[0].split(".")[0].split("[")[0] for line in listing.splitlines()]
    assert len(mnemonics) > 50
    for mnemonic in mnemonics:
        assert f"\n### {mnemonic.upper()}\n" in manual, mnemonic
        page = subprocess.run(
            [ptoas, "--explain", mnemonic], capture_output=True, check=True, text=True
        ).stdout
        assert page.startswith(f"{mnemonic.upper()}: ")
