# SPDX-License-Identifier: Apache-2.0
"""What a kernel has taken from the Python around it, and whether that is still the same.

An image of an object is equal to another's if and only if kernels made of the two are the same: numbers
by type and bits (0.0 is not -0.0, a NaN is itself, True is not 1), containers by what is in them,
arrays by their bytes, everything else by identity.
"""
from __future__ import annotations

import struct
import types
from typing import Any, Callable, Hashable

import numpy as np

from pypto.types import TypedConstant

_DEPTH = 100  # of containers in each other
_METHODS = (types.MethodType, types.BuiltinMethodType)


class _Identity:
    """Equal for the same object only, which it keeps."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and (
            self.value is other.value
            or (isinstance(self.value, _METHODS) and self.value == other.value)  # made anew at each look
        )

    def __hash__(self) -> int:
        return hash(self.value) if isinstance(self.value, _METHODS) else id(self.value)


def image_of(value: Any, depth: int = 0) -> Hashable:
    """The image of an object. RecursionError for a container that holds itself."""
    kind = type(value)
    if depth > _DEPTH:
        raise RecursionError("containers are nested too deeply")
    deeper = depth + 1
    if kind is float:
        return (kind, struct.pack("<d", value))
    if isinstance(value, (bool, int, str, bytes)) and not isinstance(value, np.generic):
        return (kind, value)
    if isinstance(value, TypedConstant):
        return (kind, value.dtype.name, image_of(value.value, deeper))
    if isinstance(value, np.ndarray) and value.dtype.hasobject:
        return (kind, value.shape, tuple([image_of(item, deeper) for item in value.ravel().tolist()]))
    if isinstance(value, (np.generic, np.ndarray)):
        return (kind, value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, (tuple, list)):
        return (kind, tuple([image_of(item, deeper) for item in value]))
    if isinstance(value, dict):
        pairs = [(image_of(key, deeper), image_of(item, deeper)) for key, item in value.items()]
        return (kind, tuple(pairs))
    if isinstance(value, (set, frozenset)):
        return (kind, frozenset([image_of(item, deeper) for item in value]))
    if isinstance(value, float):
        return (kind, struct.pack("<d", value))
    return _Identity(value)


def is_fixed(value: Any) -> bool:
    """True if the object's image cannot change as long as it is the same object."""
    if isinstance(value, (tuple, frozenset)):
        return all([is_fixed(item) for item in value])
    return not isinstance(value, (list, dict, set, np.ndarray))


class Captured:
    """One object that a kernel has used: how to find it, and what it was.

    `find` returns the object that stands there now, or raises.
    """

    def __init__(self, find: Callable[[], Any], value: Any) -> None:
        self.find = find
        self.value = value
        self.is_fixed = is_fixed(value)
        self.image = image_of(value)

    def is_same(self) -> bool:
        """True if it is what it was."""
        try:
            now = self.find()
        except Exception:  # noqa: BLE001 code of the user (__getattr__): it is found no more
            return False
        if now is self.value and self.is_fixed:
            return True
        return image_of(now) == self.image
