# SPDX-License-Identifier: Apache-2.0
"""Where a user's script called pypto: what messages about buffers and launches quote."""
from __future__ import annotations

import os
import sys

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def caller() -> str:
    """"train.py:31": the innermost frame outside this package; "" when there is none."""
    try:
        frame = sys._getframe(1)
    except (AttributeError, ValueError):  # the interpreter is going down
        return ""
    while frame is not None:
        name = frame.f_code.co_filename
        if not os.path.abspath(name).startswith(_PACKAGE):
            return f"{os.path.basename(name)}:{frame.f_lineno}"
        frame = frame.f_back
    return ""
