# SPDX-License-Identifier: Apache-2.0
"""Devices and streams: where tensors live and kernels run."""
from __future__ import annotations

import atexit
import sys
import threading
import time
from typing import Any

from pypto import _pypto
from pypto.machine import Machine

_lock = threading.RLock()
_devices: dict[tuple[Any, ...], "Device"] = {}
_current: "Device | None" = None

# How long the end of the program waits for kernels that nobody waited for.
_EXIT_SECONDS = 5.0


class Device:
    """A device. `device(name)` makes one and makes it current.

    Used as a context manager (`with pto.device("emulated:ascend950"):`) it is current inside the `with`;
    after it the device is again that was current before this one was chosen.
    Devices are shared: the same name and options give the same object, with the same memory.
    """

    def __init__(self, impl: _pypto.Device, checks: str) -> None:
        self._impl = impl
        self.checks = checks
        self._chosen_over: Device | None = None
        self._former: list[Device | None] = []

    @property
    def name(self) -> str:
        """The name that opens it: "sim", "emulated:ascend950", "npu:0"."""
        return self._impl.name

    @property
    def kind(self) -> str:
        """"sim", "emulated" or "npu"."""
        return self._impl.kind

    @property
    def description(self) -> str:
        """One line for people."""
        return self._impl.description

    @property
    def is_emulated(self) -> bool:
        """True where a simulator stands in for hardware."""
        return self._impl.is_emulated

    @property
    def machine(self) -> Machine:
        """Its machine profile: shape, limits and latencies."""
        return Machine._wrap(self._impl.profile)

    @property
    def allocated(self) -> int:
        """Bytes of tensors on it that are not freed."""
        return self._impl.usage()[0]

    def sync(self) -> None:
        """Waits for every launch made so far; see `pypto.sync`."""
        try:
            self._impl.sync()
        finally:
            self._show_prints()

    def stream(self) -> "Stream":
        """A new stream: its launches run in order, beside those of other streams."""
        return Stream(self, self._impl.make_stream())

    def interrupt(self) -> None:
        """Ends the kernels that run and drops the launches that wait."""
        self._impl.interrupt()

    def _show_prints(self) -> None:
        for line in self._impl.take_prints():
            print(line)

    def __enter__(self) -> "Device":
        global _current
        with _lock:
            self._former.append(self._chosen_over if _current is self else _current)
            _current = self
        return self

    def __exit__(self, *_: object) -> None:
        global _current
        with _lock:
            _current = self._former.pop()

    def __repr__(self) -> str:
        return f"<pypto.Device {self.name}: {self.description}>"


class Stream:
    """A sequence of launches. Give it to `launch(..., stream=s)`.

    Dropping it does not end its work. Launches on different streams that share a tensor keep the
    order in which they were made.
    """

    def __init__(self, device: Device | None = None, impl: _pypto.Stream | None = None) -> None:
        self.device = device if device is not None else current_device()
        self._impl = impl if impl is not None else self.device._impl.make_stream()

    def sync(self) -> None:
        """Waits for every launch made on it so far. Raises KernelError where one of them failed."""
        try:
            self._impl.sync()
        finally:
            self.device._show_prints()

    @property
    def is_idle(self) -> bool:
        """True if nothing runs or waits on it."""
        return self._impl.is_idle()

    def record(self) -> "Event":
        """The point after all work made on it so far."""
        return Event(self.device, self._impl.record())

    def wait(self, event: "Event") -> None:
        """Work made on this stream from now on starts after `event`, a point of any stream of the device."""
        self._impl.wait(event._impl)

    def __repr__(self) -> str:
        return f"<pypto.Stream of {self.device.name}{'' if self.is_idle else ', busy'}>"


class Event:
    """A point in a stream; made by `Stream.record`."""

    def __init__(self, device: Device, impl: _pypto.Event) -> None:
        self.device = device
        self._impl = impl

    @property
    def is_done(self) -> bool:
        """True if all work before it is done."""
        return self._impl.is_done()

    def wait(self) -> None:
        """Until all work before it is done. Raises KernelError where the last launch before it failed."""
        try:
            self._impl.wait()
        finally:
            self.device._show_prints()

    def __repr__(self) -> str:
        return f"<pypto.Event {'done' if self.is_done else 'pending'}>"


def open_device(
    name: str,
    *,
    profile: "str | Machine | None" = None,
    noise: float = 0.0,
    seed: int = 0,
    checks: str = "",
) -> Device:
    """The device of that name, without making it current. Arguments as of `device`."""
    machine = profile if isinstance(profile, Machine) else None
    text = "" if profile is None or machine is not None else str(profile)
    key = (name, text, machine.to_json() if machine else "", noise, seed, checks)
    with _lock:
        found = _devices.get(key)
        if found is None:
            _pypto.check_names(checks)
            impl = _pypto.Device(name, text, machine._impl if machine else None, noise, seed, 0)
            found = _devices[key] = Device(impl, checks)
        return found


def device(
    name: str | None = None,
    *,
    profile: "str | Machine | None" = None,
    noise: float = 0.0,
    seed: int = 0,
    checks: str = "",
) -> Device:
    """Makes a device current and returns it; without a name: the current one.

    name: "sim" computes; "sim:PROFILE" with the limits of another machine than `reference`;
        "emulated:PROFILE" computes and keeps that machine's time, a stand-in for hardware; "npu" or
        "npu:0" is a board.
    profile: a machine profile by name, by path or as a `Machine`, instead of the one in the name.
    noise: of an emulated device's clock, as a relative standard deviation (0.05 is 5 %), from `seed`.
    checks: what launches on it look for unless they say otherwise: "mem,race", "all".

    Raises DeviceUnavailableError, which lists what was looked for.
    """
    global _current
    if name is None:
        return current_device()
    found = open_device(name, profile=profile, noise=noise, seed=seed, checks=checks)
    with _lock:
        if _current is not found:
            found._chosen_over = _current
            _current = found
    return found


def current_device() -> Device:
    """The device that new tensors go to: "sim" until another was chosen."""
    global _current
    with _lock:
        if _current is None:
            _current = open_device("sim")
        return _current


def sync() -> None:
    """Waits for every launch made so far on every device, and shows what kernels printed.

    Raises KernelError if one of them failed and no wait has said so yet.
    """
    with _lock:
        devices = list(_devices.values())
    for one in devices:
        one.sync()


def devices() -> list[tuple[str, bool, str, list[str]]]:
    """What there might be: (name, is it usable, one line, places that were looked at)."""
    return list(_pypto.probe_devices())


def _end() -> None:
    """At exit: kernels that nobody waited for get a moment; what they say and what failed is shown."""
    for one in list(_devices.values()):
        try:
            if not one._impl.wait_idle(_EXIT_SECONDS):
                one._impl.interrupt()
                print(
                    f"pypto: the program ends while kernels run on {one.name}; after "
                    f"{_EXIT_SECONDS:g} s they were ended (sync() waits for them)",
                    file=sys.stderr,
                )
                one._impl.wait_idle(_EXIT_SECONDS)
            one.sync()
        except KeyboardInterrupt:
            one._impl.interrupt()
        except Exception as error:  # nobody is left to catch it
            print(f"pypto: {type(error).__name__} of a launch that nobody waited for: {error}",
                  file=sys.stderr)  # fmt: skip
    # Other threads that have waited too must be back in Python before the interpreter ends.
    deadline = time.monotonic() + _EXIT_SECONDS
    while _pypto.waiting_threads() and time.monotonic() < deadline:
        time.sleep(0.001)


atexit.register(_end)
