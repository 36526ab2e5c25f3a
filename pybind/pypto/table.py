# SPDX-License-Identifier: Apache-2.0
"""The instruction table as Python data: the rows that `ptoas --list-instructions --json` prints."""
from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from typing import Any

import pypto._pypto as _pypto  # `from pypto` would call a missing module a circular import


@dataclass(frozen=True)
class Operand:
    """One operand of an instruction; `accepts` and `type` in the words of the manual."""

    name: str
    role: str
    type: str
    accepts: str
    optional: bool
    variadic: bool
    vector: bool

    @property
    def is_written(self) -> bool:
        return self.role == "written"

    def may_be(self, kind: str) -> bool:
        return kind in self.accepts


@dataclass(frozen=True)
class Modifier:
    """A suffix family; an optional one has the value ""."""

    name: str
    values: tuple[tuple[str, str], ...]  # suffix, summary

    @property
    def is_optional(self) -> bool:
        return self.values[0][0] == ""

    @property
    def suffixes(self) -> tuple[str, ...]:
        return tuple(suffix for suffix, _ in self.values if suffix)


@dataclass(frozen=True)
class Row:
    """One instruction."""

    mnemonic: str
    summary: str
    formula: str
    details: str
    example: str
    types: tuple[str, ...]
    types2: tuple[str, ...]
    modifiers: tuple[Modifier, ...]
    forms: tuple[tuple[Operand, ...], ...]
    scope: str
    unit: str
    properties: tuple[str, ...]


def _row(data: dict[str, Any]) -> Row:
    return Row(
        mnemonic=data["mnemonic"],
        summary=data["summary"],
        formula=data["formula"],
        details=data["details"],
        example=data["example"],
        types=tuple(data["types"]),
        types2=tuple(data["types2"]),
        modifiers=tuple(
            Modifier(m["name"], tuple((v["suffix"], v["summary"]) for v in m["values"]))
            for m in data["modifiers"]
        ),
        forms=tuple(tuple(Operand(**operand) for operand in form) for form in data["forms"]),
        scope=data["scope"],
        unit=data["unit"],
        properties=tuple(data["properties"]),
    )


@functools.cache
def table() -> dict[str, Row]:
    """All rows by mnemonic."""
    rows = json.loads(_pypto.instruction_table_json())
    return {data["mnemonic"]: _row(data) for data in rows}
