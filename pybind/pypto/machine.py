# SPDX-License-Identifier: Apache-2.0
"""Machine profiles: shape, limits and latencies of a machine."""
from __future__ import annotations

import json
import os
from typing import Any

from pypto import _pypto
from pypto.checked import path
from pypto.checked import text as _string


class Machine:
    """A machine profile. A value: `with_figures` gives a changed copy.

    >>> pypto.Machine("reference").with_figures("latency.FMA.latency=6", "cores=8")
    """

    def __init__(self, name_or_path: "str | os.PathLike[str]" = "reference") -> None:
        """A shipped profile by name (`machine_names()`) or a JSON file by path. Raises InputError, TypeError."""
        self._impl = _pypto.MachineProfile.load(path("the machine", name_or_path))

    @classmethod
    def _wrap(cls, impl: _pypto.MachineProfile) -> "Machine":
        machine = cls.__new__(cls)
        machine._impl = impl
        return machine

    @classmethod
    def from_json(cls, text: str, name: str = "<text>") -> "Machine":
        """From the text of a profile file; `name` is what messages call it. Raises InputError, TypeError."""
        return cls._wrap(_pypto.MachineProfile.parse(_string("text", text), _string("name", name)))

    def with_figures(self, *assignments: str) -> "Machine":
        """A copy with figures changed, each "path=value". Raises InputError, TypeError."""
        copy = self._impl.copy()
        for assignment in assignments:
            copy.set(_string("a figure", assignment, 'a string such as "cores=8"'))
        return Machine._wrap(copy)

    @property
    def name(self) -> str:
        """Its name."""
        return self._impl.name

    @property
    def description(self) -> str:
        """One paragraph for people."""
        return self._impl.description

    @property
    def clock_mhz(self) -> float:
        """Cycles a microsecond."""
        return self._impl.clock_mhz

    @property
    def cores(self) -> int:
        """Number of cores."""
        return self._impl.cores

    def to_json(self) -> str:
        """All figures as JSON text."""
        return self._impl.to_json()

    def to_dict(self) -> dict[str, Any]:
        """All figures."""
        return json.loads(self.to_json())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Machine) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.to_json())

    def __repr__(self) -> str:
        return f"<pypto.Machine {self.name}>"


def machine_names() -> list[str]:
    """Names of the shipped profiles."""
    return list(_pypto.machine_names())
