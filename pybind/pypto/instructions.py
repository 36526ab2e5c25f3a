# SPDX-License-Identifier: Apache-2.0
"""The functions that a kernel can call: one for each instruction of the table, and a few more.

Names, help and modifiers come from the instruction table, so a new instruction is here without a line of
Python. Outside a kernel the functions only carry their help; calling one is an error.
"""
from __future__ import annotations

import inspect
import keyword
import textwrap
from typing import Any

from pypto.table import Operand, Row, table


class Instruction:
    """A function of the kernel language. `pypto.load`, `pypto.exp`, ... are of this type."""

    def __init__(
        self,
        name: str,
        doc: str,
        parameters: list[str],
        row: Row | None = None,
        modifiers: dict[str, str] | None = None,
        handler: str = "",
        data: Any = None,
    ) -> None:
        self.__name__ = self.__qualname__ = name
        self.__module__ = "pypto"
        self.__doc__ = doc
        self.__signature__ = _signature(parameters)
        self.row = row
        self.modifiers = modifiers or {}
        self.handler = handler
        self.data = data

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError(
            f"pypto.{self.__name__}() is an instruction: it can be called only in a function decorated "
            "with @pypto.kernel or @pypto.func, which is compiled and started by pypto.launch"
        )

    def __repr__(self) -> str:
        return f"<PTO instruction pypto.{self.__name__}{self.__signature__}>"

    def __reduce__(self) -> str:
        return self.__name__


def _signature(parameters: list[str]) -> inspect.Signature:
    made = []
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    for text in parameters:
        if text == "*":
            kind = inspect.Parameter.KEYWORD_ONLY
            continue
        name, _, default = text.partition("=")
        if name.startswith("*"):
            made.append(inspect.Parameter(name[1:], inspect.Parameter.VAR_POSITIONAL))
            kind = inspect.Parameter.KEYWORD_ONLY
            continue
        value = inspect.Parameter.empty if not default else _Shown(default)
        made.append(inspect.Parameter(name, kind, default=value))
    return inspect.Signature(made)


class _Shown:
    """A default value as the help prints it."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def python_name(name: str) -> str:
    """A mnemonic or operand as a Python identifier."""
    return name + "_" if keyword.iskeyword(name) else name


def arguments_of(form: tuple[Operand, ...]) -> list[Operand]:
    """Operands that a call gives; written registers and predicates are its result instead."""
    return [operand for operand in form if not is_result(operand)]


def is_result(operand: Operand) -> bool:
    return operand.is_written and (operand.may_be("register") or operand.may_be("predicate"))


def _parameters(row: Row, fixed: dict[str, str]) -> list[str]:
    names = []
    for operand in arguments_of(row.forms[0]):
        name = python_name(operand.name)
        if operand.variadic:
            name = "*" + name
        names.append(name + ("=None" if operand.optional and not operand.variadic else ""))
    names.append("*")
    for modifier in row.modifiers:
        if modifier.name not in fixed:
            names.append(modifier.name + ("=''" if modifier.is_optional else ""))
    if row.types:
        names.append("dtype=None")
    if names[-1] == "*":
        names.pop()
    return names


def _doc(row: Row, fixed: dict[str, str], extra: str = "") -> str:
    chosen = [
        summary
        for modifier in row.modifiers
        for suffix, summary in modifier.values
        if fixed.get(modifier.name) == suffix and suffix
    ]
    lines = [row.summary + "".join(f" Here: {text}." for text in chosen), "", f"    {row.formula}", ""]
    if extra:
        lines += [extra, ""]
    if row.details:
        lines += [*textwrap.wrap(row.details, 90), ""]
    scope = {"lane": "each lane", "warp": "the warp as one", "block": "the block, once"}[row.scope]
    lines.append(f"Acts for {scope}. PTO: `{row.example}`")
    if row.types:
        lines.append(f"Types: {' '.join(row.types)} (dtype=; otherwise from the operands).")
    for modifier in row.modifiers:
        if modifier.name not in fixed:
            shown = [f'"{s}" {t}' for s, t in modifier.values if s]
            lines.append(f"{modifier.name}: {', '.join(shown)}.")
    return "\n".join(lines)


# What Python adds to an instruction, or how its arguments differ from the table's operands.
_SPECIAL = {
    "load": (["pointer", "*", "cache=''", "vector=1"], "load",
             "`load(p)` gives the element that p points at, with the pointer's type; `vector=2` or `4`\n"
             "gives a tuple of neighbouring elements."),
    "store": (["pointer", "value", "nbytes=None", "*", "cache=''"], "store",
              "`store(p, v)` stores a value, converted to the pointer's type, or a tuple of 2 or 4.\n"
              "`store(p, tile, nbytes)` copies a tile to hbm and waits for the copy."),
    "fma": (["a", "b", "c", "d=None"], "fma",
            "`fma(a, b, c)` gives a*b + c. `fma(p, a, b, c)`, where p is a pointer, stores it."),
    "alloc_local": (["n", "dtype=f32"], "alloc_local",
                    "A zeroed tile of n elements, which belongs to the block; n may be a run-time number.\n"
                    "The result is a pointer."),
    "mma": (["C", "A", "B", "m", "n", "k", "lda=None", "ldb=None", "ldc=None"], "mma",
            "The element types of C and A choose the kind."),
    "print": (["format", "*values"], "print", "Also with an f-string: `pto.print(f\"{i}: {x}\")`."),
    "vote": (["p", "*", "mode"], "vote", ""),
    "cvt": (["a", "dtype", "*", "rounding=''"], "cvt",
            "`pto.f32(x)` is the shorter form; floor, ceil, trunc and rint are conversions of a float to\n"
            "its own type."),
    "cmp": (["a", "b", "q=None", "*", "comparison", "combination=''"], "",
            "Python's operators do the same: `a < b`."),
    "sel": (["a", "b", "p"], "sel", "p ? a : b; Python: `a if p else b`."),
    "mov": (["a"], "mov", "A copy; the compiler needs none, so the value itself is returned."),
    "min": (["a", "b"], "minmax", "Python's min() is the same."),
    "max": (["a", "b"], "minmax", "Python's max() is the same."),
    "mad": (["a", "b", "c", "*", "width=''"], "mad", ""),
}  # fmt: skip

_CONTROL = {"bra": "if, while and for", "call": "calls of @pto.func functions", "ret": "return"}

_EXTRA = [
    ("shared", ["n", "dtype=f32"], "shared",
     "Scratchpad for n elements (a constant), one for the block, undefined at first. A pointer."),
    ("tile", ["rows", "cols", "dtype=f32"], "tile",
     "Static scratchpad of rows x cols elements (constants), undefined at first. A pointer."),
    ("const_array", ["values", "dtype=f32"], "const_array",
     "Read-only data: the numbers of a tuple, list or array of the enclosing scope. A pointer to load\n"
     "from."),
    ("event", [], "event", "The next unused event (of eight) for async copies and `wait`."),
    ("bitcast", ["x", "dtype"], "bitcast",
     "The bits of x read as another type of the same size; of a pointer, another element type."),
    ("floor", ["x"], "round", "The largest integral value not above x, as a float."),
    ("ceil", ["x"], "round", "The smallest integral value not below x, as a float."),
    ("trunc", ["x"], "round", "x rounded toward zero to an integral value, as a float."),
    ("rint", ["x"], "round", "x rounded to the nearest integral value, ties to even, as a float."),
    ("static_range", ["start", "stop=None", "step=1"], "static_range",
     "`for i in pto.static_range(...)`: the loop is unrolled, i is a constant in each copy."),
    ("pipeline", ["depth=1"], "pipeline",
     "`with pto.pipeline(depth=2) as pl:` declares stages, see docs/python.md. depth: iterations in\n"
     "flight, each with its own buffers."),
]  # fmt: skip

_ROUNDINGS = {"floor": "rm", "ceil": "rp", "trunc": "rz", "rint": "rn"}
_INT_MAX = 2**31 - 1

# name: (special register, has dimensions, smallest, largest value or None for 32 bits)
_IDS = {
    "get_global_id": ("gid", True, 0, _INT_MAX, "The lane's coordinate in the grid."),
    "get_local_id": ("tid", True, 0, 2047, "The lane's coordinate in its block."),
    "get_block_id": ("ctaid", True, 0, _INT_MAX, "The block's coordinate in the grid."),
    "get_block_dim": ("ntid", True, 1, 2048, "Lanes of the block in a dimension."),
    "get_grid_dim": ("nctaid", True, 1, _INT_MAX, "Blocks of the grid in a dimension."),
    "get_global_size": ("gsize", True, 1, _INT_MAX, "Lanes of the grid in a dimension."),
    "get_lane_id": ("lane", False, 0, 31, "The lane's number in its warp."),
    "get_warp_id": ("warp", False, 0, 63, "The warp's number in its block."),
    "get_block_size": ("blocksize", False, 1, 2048, "Lanes in the block, over all dimensions."),
    "get_core_id": ("core", False, 0, _INT_MAX, "The core that runs the block."),
    "active_mask": ("activemask", False, 0, None, "The lanes of the warp that execute this, as bits (u32)."),
    "lanemask_eq": ("lanemask_eq", False, 0, None, "This lane's bit (u32)."),
    "lanemask_lt": ("lanemask_lt", False, 0, None, "The bits of the lanes below (u32)."),
    "lanemask_le": ("lanemask_le", False, 0, None, "The bits of the lanes up to this one (u32)."),
    "lanemask_gt": ("lanemask_gt", False, 0, None, "The bits of the lanes above (u32)."),
    "lanemask_ge": ("lanemask_ge", False, 0, None, "The bits of the lanes from this one on (u32)."),
    "clock": ("clock", False, 0, None, "The cycle counter of the core (s64)."),
}  # fmt: skip


def _make() -> dict[str, Instruction]:
    made: dict[str, Instruction] = {}
    for row in table().values():
        parameters, handler, extra = _SPECIAL.get(row.mnemonic, (None, "", ""))
        name = python_name(row.mnemonic)
        if row.mnemonic in _CONTROL:
            extra, handler = f"Made by {_CONTROL[row.mnemonic]}; it cannot be called.", "control"
        made[name] = Instruction(
            name, _doc(row, {}, extra), parameters or _parameters(row, {}), row, {}, handler
        )
        for modifier in row.modifiers:
            if modifier.is_optional:
                continue
            for suffix in modifier.suffixes:
                fixed = {modifier.name: suffix}
                shown = [p for p in parameters or _parameters(row, fixed) if p != modifier.name]
                if shown and shown[-1] == "*":
                    shown.pop()
                names = [f"{row.mnemonic}_{suffix}"]
                if "atomic" in row.properties:
                    names.append(f"atomic_{suffix}")
                for short in names:
                    made[short] = Instruction(short, _doc(row, fixed, extra), shown, row, fixed, handler)
    for name, parameters, handler, doc in _EXTRA:
        made[name] = Instruction(
            name, doc, parameters, handler=handler, data=_ROUNDINGS.get(name)
        )
    for name, (register, has_dims, low, high, doc) in _IDS.items():
        parameters = ["dim=0"] if has_dims else []
        if has_dims:
            doc += " dim: 0 for x, 1 for y, 2 for z."
        made[name] = Instruction(
            name, doc, parameters, handler="special", data=(register, has_dims, low, high)
        )
    return made


INSTRUCTIONS: dict[str, Instruction] = _make()
