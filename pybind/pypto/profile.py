# SPDX-License-Identifier: Apache-2.0
"""Measuring kernels on a device."""
from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

from pypto import _pypto
from pypto.device import Device, current_device, open_device
from pypto.errors import DeviceError
from pypto.launch import DEFAULT_BLOCK, DEFAULT_GRID, Dim, _as_args, _compile, _device_of, as_dim, raw_arguments
from pypto.machine import Machine
from pypto.programs import program_of


@dataclass(frozen=True)
class InstructionCycles:
    """One kind of instruction in a kernel."""

    key: str
    """"LOAD", or "ADD.f32" where types differ."""
    count: int
    """Instructions that warps issued in a run."""
    cycles: float
    """Of one, on the device."""
    simulated: float
    """Of one, as the simulator says; 0 where there is nothing to compare with."""


class CycleBreakdown:
    """What each instruction of a kernel cost on the device, beside the simulator. `str()` is a table."""

    def __init__(self, data: dict[str, Any]) -> None:
        self._text: str = data["text"]
        self.kernel: str = data["kernel"]
        self.device: str = data["device"]
        """With the word `emulated` where it is."""
        self.machine: str = data["machine"]
        """Profile that `simulated` comes from."""
        self.cycles: float = data["cycles"]
        self.spread: float = data["spread"]
        self.simulated_cycles: float = data["simulated_cycles"]
        self.runs: int = data["runs"]
        self.rejected_runs: int = data["rejected_runs"]
        self.rows = [InstructionCycles(*row) for row in data["rows"]]
        self.pairs: list[tuple[str, str, bool, int, float]] = data["pairs"]
        """(first, second, does the device issue both as one, count, cycles)"""
        self.warnings: list[str] = data["warnings"]

    def __getitem__(self, key: str) -> InstructionCycles:
        for row in self.rows:
            if row.key == key:
                return row
        raise KeyError(key)

    def differences(self) -> dict[str, tuple[float, float]]:
        """Instructions on which device and simulator disagree: key -> (device, simulator) cycles."""
        return {r.key: (r.cycles, r.simulated) for r in self.rows if r.simulated and r.cycles != r.simulated}

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__


class Profile:
    """What was measured on a device; made by `profile_on_npu` or read from a file of `ptoprof`."""

    def __init__(self, impl: _pypto.Profile) -> None:
        self._impl = impl

    @classmethod
    def load(cls, path: "str | os.PathLike[str]") -> "Profile":
        """From a file that `save` or `ptoprof run` wrote. Raises InputError."""
        return cls(_pypto.Profile.load(os.fspath(path)))

    @property
    def device(self) -> str:
        """Its name, with the word `emulated` where it is."""
        return self._impl.device

    @property
    def is_emulated(self) -> bool:
        """True where a simulator stood in for hardware."""
        return self._impl.is_emulated

    @property
    def kernels(self) -> list[str]:
        """Names of the kernels that were measured."""
        return self._impl.kernels

    def cycle_breakdown(self, kernel: str = "") -> CycleBreakdown:
        """Cycles by instruction of a kernel (the first, unless named). Raises InputError for another name."""
        return CycleBreakdown(self._impl.breakdown(kernel))

    def to_dict(self) -> dict[str, Any]:
        """Everything, raw runs included."""
        return json.loads(self._impl.to_json())

    def save(self, path: "str | os.PathLike[str]") -> None:
        """Writes the file that `ptoprof` reads."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self._impl.to_json())

    def __repr__(self) -> str:
        return f"<pypto.Profile of {', '.join(self.kernels)} on {self.device}>"


def profile_on_npu(
    kernel: Any,
    args: tuple[Any, ...] = (),
    grid: Dim = DEFAULT_GRID,
    block: Dim = DEFAULT_BLOCK,
    *,
    device: "str | Device" = "npu",
    compare: "str | Machine | None" = None,
    runs: int = 5,
    noise: float = 0.0,
    seed: int = 0,
) -> Profile:
    """Measures a kernel on a board: cycles of its runs and of each kind of instruction.

    kernel, args, grid, block: as of `launch`; tensors stay as they are. device: "npu", or
    "emulated:PROFILE" for a stand-in, which says so in everything it prints. compare: the machine whose
    figures stand beside it; default that of the tensors' device. runs: how often it is run. noise, seed:
    of an emulated device's clock, as a relative standard deviation.

    Raises DeviceUnavailableError, which lists what was looked for, where there is no such device.
    """
    target = device if isinstance(device, Device) else open_device(device)
    if not target.is_emulated:
        raise DeviceError(
            f"device {target.name} cannot measure single instructions from Python: `ptoprof run` instruments "
            'kernels for a board; device="emulated:PROFILE" measures a stand-in'
        )
    if runs < 1:
        raise ValueError(f"runs is {runs}; expected at least 1")
    args = _as_args(args)
    compiled = _compile(kernel, args)
    bound = compiled.bind(args)
    home = _device_of(bound, None) if bound else current_device()
    machine = home.machine if compare is None else compare if isinstance(compare, Machine) else Machine(compare)
    impl = _pypto.measure(
        target._impl,
        machine._impl,
        program_of(compiled),
        as_dim("grid", grid),
        as_dim("block", block),
        raw_arguments(bound),
        runs,
        noise,
        seed,
    )
    return Profile(impl)
