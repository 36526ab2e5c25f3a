# SPDX-License-Identifier: Apache-2.0
"""Refuses to run mixed with another distribution of the same name."""
from __future__ import annotations

import importlib.metadata

# A file that only this package has.
_OURS = "pypto/installed.py"


def check_installation() -> None:
    """Raises ImportError if another distribution named pypto is installed in this environment.

    Both would put their files into one folder `pypto`, and whichever file was written last would win.
    """
    for other in importlib.metadata.distributions(name="pypto"):
        files = other.files
        if files is not None and any(str(file) == _OURS for file in files):
            continue
        where = other.locate_file("")
        raise ImportError(
            f"another distribution named pypto is installed: version {other.version} in {where}. It and the "
            "PTO toolchain's package use the same name and cannot share an environment: uninstall it "
            "(pip uninstall pypto) or use an environment of its own (python3 -m venv)"
        )
