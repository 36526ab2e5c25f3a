# SPDX-License-Identifier: Apache-2.0
"""What users give, checked where it comes in: TypeError for the wrong kind, ValueError for a number out of range.

The extension module takes exact C++ types and would speak of those.
"""
from __future__ import annotations

import os
from typing import Any

import numpy as np

U32 = 2**32 - 1
U64 = 2**64 - 1


def shown(value: Any) -> str:
    """The value for a message, cut where it is long."""
    try:
        text = repr(value)
    except ValueError:  # Python writes no integer of more than 4300 digits
        text = f"an integer of {value.bit_length()} bits"
    return text if len(text) <= 60 else f"{text[:45]}... ({len(text)} characters)"


def whole(what: str, value: Any, low: int = 0, high: int = U64) -> int:
    """An integer of any type but bool."""
    if isinstance(value, (bool, np.bool_)) or not hasattr(value, "__index__"):
        raise TypeError(f"{what} is {shown(value)}; expected a whole number")
    try:
        number = value.__index__()
    except TypeError:  # an array of several
        raise TypeError(f"{what} is {shown(value)}; expected a whole number") from None
    if not low <= number <= high:
        bound = f"from {low} on" if high >= U64 and number < low else f"from {low} to {high}"
        raise ValueError(f"{what} is {shown(number)}; expected a whole number {bound}")
    return number


def optional_whole(what: str, value: Any, low: int = 0, high: int = U64) -> int | None:
    """The same, or None."""
    return None if value is None else whole(what, value, low, high)


def real(what: str, value: Any) -> float:
    """A float or integer."""
    if isinstance(value, (bool, np.bool_, str, bytes)):
        raise TypeError(f"{what} is {shown(value)}; expected a number")
    try:
        return float(value)
    except TypeError:
        raise TypeError(f"{what} is {shown(value)}; expected a number") from None
    except OverflowError:
        raise ValueError(f"{what} is {shown(value)}, more than a float can hold") from None


def text(what: str, value: Any, expected: str = "a string") -> str:
    """A string without NUL, which no name and no path can hold."""
    if not isinstance(value, str):
        raise TypeError(f"{what} is {shown(value)}; expected {expected}")
    if "\0" in value:
        raise ValueError(f"{what} is {shown(value)}, with a NUL character in it")
    return value


def flag(what: str, value: Any) -> bool:
    """True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{what} is {shown(value)}; expected True or False")
    return bool(value)


def path(what: str, value: Any) -> str:
    """A path as text. A number, which open() would take for a file that is open, is none."""
    if not isinstance(value, (str, bytes, os.PathLike)):
        raise TypeError(f"{what} is {shown(value)}; expected a path")
    return text(what, os.fsdecode(value))


def instance(what: str, value: Any, kind: type, expected: str) -> Any:
    """An object of a class of ours."""
    if not isinstance(value, kind):
        raise TypeError(f"{what} is {shown(value)}; expected {expected}")
    return value


def host_dtype(what: str, value: Any) -> np.dtype:
    """A numpy type that bytes can be read as."""
    try:
        found = np.dtype(value)
    except TypeError:
        raise TypeError(f"{what} is {shown(value)}; expected a type of pypto or numpy") from None
    if found.hasobject or found.itemsize == 0:
        raise TypeError(f"{what} is {shown(value)}; bytes of a device cannot be read as that")
    return found
