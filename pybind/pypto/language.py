# SPDX-License-Identifier: Apache-2.0
"""Everything of the kernel language in one namespace; `pypto` exports it."""
from __future__ import annotations

from pypto import types as _types
from pypto.errors import CompileError, PtoError, PtoWarning
from pypto.instructions import INSTRUCTIONS as _INSTRUCTIONS
from pypto.kernel import Compiled, Func, Kernel, Param, func, kernel, static
from pypto.types import DType, Pointer, TypedConstant, ptr

globals().update(_INSTRUCTIONS)
globals().update(_types.ALL)

__all__ = [
    "CompileError", "Compiled", "DType", "Func", "Kernel", "Param", "Pointer", "PtoError",
    "PtoWarning", "TypedConstant", "func", "kernel", "ptr", "static", *_INSTRUCTIONS, *_types.ALL,
]  # fmt: skip
