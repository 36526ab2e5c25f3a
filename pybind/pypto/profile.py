# SPDX-License-Identifier: Apache-2.0
"""Measuring kernels on a device, and fitting the simulator's machine profile to what was measured.

    profile = pto.profile_on_npu(vector_add, args=(a, b, o, n), device="emulated:reference-fused")
    print(profile.cycle_breakdown())          # LOAD: 3 cycles (simulator: 4), 64 warp insns ...
    machine = profile.calibrate("reference")  # a Machine for pto.device(profile=machine)
"""
from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any, Iterable, Union

import numpy as np

from pypto import _pypto
from pypto.checked import U32, instance, real, shown, whole
from pypto.checked import path as checked_path
from pypto.checked import text as checked_text
from pypto.device import Device, open_device
from pypto.errors import DeviceUnavailableError
from pypto.launch import DEFAULT_BLOCK, DEFAULT_GRID, Dim, as_dim, bind
from pypto.machine import Machine
from pypto.programs import program_of

_EMULATED = "emulated:"
_WARM_UPS = 5
MOST_RUNS = 100_000


@dataclass(frozen=True)
class BreakdownRow:
    """One mnemonic (`LOAD`), or one of its types where these differ (`ADD.f32`).

    count: warp instructions in a run. cycles: of one, on the device. simulated: what the simulator says
    of the same, 0 where there is nothing to compare with.
    """

    key: str
    count: int
    cycles: float
    simulated: float


@dataclass(frozen=True)
class BreakdownPair:
    """Two neighbouring instructions, the second using the first's result or issued with it as one."""

    first: str
    second: str
    is_joined: bool
    count: int
    cycles: float


@dataclass(frozen=True)
class CycleBreakdown:
    """What each instruction of a kernel cost on the device; `str()` is for people.

    cycles, spread: of a whole run and its standard deviation. machine, simulated_cycles: what the
    simulator says of the run, empty and 0 without one.
    """

    kernel: str
    device: str
    machine: str
    cycles: float
    spread: float
    simulated_cycles: float
    rows: tuple[BreakdownRow, ...]
    pairs: tuple[BreakdownPair, ...]
    warnings: tuple[str, ...]
    _text: str

    def __getitem__(self, key: str) -> BreakdownRow:
        """The row of a mnemonic or key; KeyError lists what there is."""
        for row in self.rows:
            if row.key == key:
                return row
        raise KeyError(f"{key}; there are {', '.join(row.key for row in self.rows)}")

    def differences(self) -> dict[str, float]:
        """Cycles on the device minus cycles in the simulator, by key, where both are known."""
        return {row.key: row.cycles - row.simulated for row in self.rows if row.simulated > 0}

    def __str__(self) -> str:
        return self._text


class Profile:
    """What was measured on a device. The same file that `ptoprof` reads and writes.

    An emulated device's profile says `emulated` in everything that it prints and writes.
    """

    def __init__(self, text: str) -> None:
        """From the text of a profile file. Raises InputError that says what is wrong where, TypeError."""
        self._text = _pypto.check_profile(checked_text("the profile", text))
        self._data: dict[str, Any] = json.loads(self._text)

    @classmethod
    def load(cls, path: "str | os.PathLike[str]") -> "Profile":
        """From a file. Raises InputError, OSError where it cannot be read."""
        where = checked_path("path", path)
        with open(where, encoding="utf-8", errors="replace") as file:
            return cls(file.read().replace("\0", "\ufffd"))

    def save(self, path: "str | os.PathLike[str]") -> None:
        """Writes it as JSON. OSError where it cannot be written."""
        with open(checked_path("path", path), "w", encoding="utf-8") as file:
            file.write(self._text)

    def to_json(self) -> str:
        """Its JSON text."""
        return self._text

    def to_dict(self) -> dict[str, Any]:
        """Everything in it; see profile.schema.json."""
        return json.loads(self._text)

    @property
    def device(self) -> str:
        """The device that was measured, such as "emulated:reference-fused"."""
        return self._data["device"]["name"]

    @property
    def is_emulated(self) -> bool:
        """True if the simulator stood in for a device."""
        return self._data["device"]["is_emulated"]

    @property
    def kernels(self) -> list[str]:
        """Names of the kernels in it."""
        return [kernel["name"] for kernel in self._data["kernels"]]

    @property
    def cycles(self) -> float:
        """Of a run of its first kernel: the mean of the runs that count."""
        return self._data["kernels"][0]["cycles"]

    @property
    def runs(self) -> list[float]:
        """Cycles of each run of its first kernel, rejected ones included."""
        return [run["cycles"] for run in self._data["kernels"][0].get("runs", [])]

    def cycle_breakdown(self, kernel: str = "", *, machine: str = "") -> CycleBreakdown:
        """What each instruction cost. kernel: default the first; machine: whose simulation to show.

        Raises InputError where the profile has none of that name.
        """
        checked_text("kernel", kernel)
        checked_text("machine", machine)
        raw = _pypto.profile_breakdown(self._text, kernel, machine)
        return CycleBreakdown(
            kernel=raw["kernel"],
            device=raw["device"],
            machine=raw["machine"],
            cycles=raw["cycles"],
            spread=raw["spread"],
            simulated_cycles=raw["simulated_cycles"],
            rows=tuple(BreakdownRow(*row) for row in raw["rows"]),
            pairs=tuple(BreakdownPair(*pair) for pair in raw["pairs"]),
            warnings=tuple(raw["warnings"]),
            _text=raw["text"],
        )

    def calibrate(
        self,
        base: "str | Machine" = "reference",
        *,
        name: str = "fitted",
        others: "Iterable[Profile]" = (),
    ) -> Machine:
        """A machine profile: `base` with every figure that was measured, the rest unchanged.

        others: further profiles of the same device that go into the fit. What was fitted, with evidence,
        is in `calibration_report`. Raises InputError where the profiles do not go together.
        """
        return self._calibrate(base, name, others)[0]

    def calibration_report(self, base: "str | Machine" = "reference", *, others: "Iterable[Profile]" = ()) -> str:
        """What `calibrate` changes and why, what it leaves, and what the data cannot tell."""
        return self._calibrate(base, "fitted", others)[1]

    def _calibrate(self, base: "str | Machine", name: str, others: "Iterable[Profile]") -> tuple[Machine, str]:
        machine = base if isinstance(base, Machine) else Machine(base)
        checked_text("name", name)
        texts = [self._text] + [instance("one of others", other, Profile, "a Profile")._text for other in others]
        fitted, report = _pypto.calibrate(texts, machine._impl, name)
        return Machine._wrap(fitted), report

    def report(self) -> str:
        """All of it as text: kernels beside the simulator, rejected runs, busy units, warnings."""
        return _pypto.profile_report(self._text, False)

    def _repr_html_(self) -> str:
        return _pypto.profile_report(self._text, True)

    def __repr__(self) -> str:
        emulated = ", emulated" if self.is_emulated else ""
        return f"<pypto.Profile of {', '.join(self.kernels)} on {self.device}{emulated}>"


def profile_on_npu(
    kernel: Any,
    args: tuple[Any, ...] = (),
    grid: Dim = DEFAULT_GRID,
    block: Dim = DEFAULT_BLOCK,
    *,
    device: Union[str, Device] = "npu",
    noise: float = 0.0,
    seed: int = 1,
    runs: int = 5,
    compare: "str | Machine | None" = "reference",
    dynamic_l1: int = 0,
) -> Profile:
    """Measures a kernel: cycles of whole runs, of each instruction and of pairs of neighbours.

    kernel, args, grid, block: as of `launch`. The tensors are read, not written: runs work on copies.
    device: "npu", or "emulated:PROFILE", where the simulator with that machine profile stands in for
        hardware; everything it gives then says `emulated`. On a board whole runs are timed as they are,
        and instructions and pairs by clock reads in launches of their own.
    noise: of an emulated device: relative standard deviation of a run (0.05 is 5 %), from `seed`.
    runs: how many runs to measure; those that do not belong are rejected and named.
    compare: machine profile to simulate beside it; None: nothing.
    dynamic_l1: bytes of scratchpad behind the kernel's own.

    Ctrl-C ends it. Raises DeviceUnavailableError, which lists what was looked for, if there is no such
    device, PtoError if the kernel does not run to its end, and what `launch` raises.
    """
    compiled, bound = bind(kernel, args)
    if not isinstance(device, (str, Device)):
        raise TypeError(f'device is {shown(device)}; expected a name such as "npu", or a pypto.Device')
    name = device.name if isinstance(device, Device) else device
    runs = whole("runs", runs, 1, MOST_RUNS)
    noise, seed = real("noise", noise), whole("seed", seed)
    if not 0 <= noise <= 1:
        raise ValueError(f"noise is {noise}; expected a relative deviation from 0 to 1")
    dynamic_l1 = whole("dynamic_l1", dynamic_l1, high=U32)
    machines = [] if compare is None else [compare if isinstance(compare, Machine) else Machine(compare)]
    tensors = list(dict.fromkeys(item[1] for item in bound if item[0] == "tensor"))  # given twice: still one
    arrays = [tensor.numpy(np.uint8).tobytes() for tensor in tensors]
    arguments = [(tensors.index(item[1]), None) if item[0] == "tensor" else item[1:] for item in bound]
    shape = program_of(compiled), as_dim("grid", grid), as_dim("block", block), arrays, arguments
    simulated = [machine._impl for machine in machines]
    if not name.startswith(_EMULATED):
        board = device if isinstance(device, Device) else _open_board(device)
        return Profile(_pypto.measure_on_device(board._impl, *shape, simulated, runs, _WARM_UPS, dynamic_l1))
    hidden = Machine(name[len(_EMULATED) :])
    text = _pypto.measure_emulated(
        *shape,
        name[len(_EMULATED) :],
        hidden._impl,
        simulated,
        runs,
        noise,
        seed,
        dynamic_l1,
    )
    return Profile(text)


def _open_board(name: str) -> Device:
    try:
        return open_device(name)
    except DeviceUnavailableError as error:
        text = f'{error}\nWithout a board, device="emulated:reference-fused" measures a stand-in.'
        unavailable = DeviceUnavailableError(text)
        unavailable.tried = error.tried
        raise unavailable from None
