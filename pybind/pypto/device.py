# SPDX-License-Identifier: Apache-2.0
"""Devices and streams: where tensors live and kernels run."""
from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from typing import Any, Callable

from pypto import _pypto
from pypto.checked import U64, instance, real, shown, text, whole
from pypto.errors import DeviceError
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

    In a child process that fork() made, a device begins anew, with empty memory; tensors, streams, launches
    and debug sessions of the parent raise DeviceError there. A board raises it too: fork() does not copy it.
    """

    def __init__(self, opened: Callable[[], _pypto.Device], checks: str) -> None:
        self._open = opened
        self._opened: _pypto.Device | None = opened()
        self._kind = self._opened.kind
        self.checks = checks
        self._chosen_over: Device | None = None
        self._former: list[Device | None] = []

    @property
    def _impl(self) -> _pypto.Device:
        with _lock:
            if self._opened is None:
                if self._kind == "npu":
                    raise DeviceError(
                        "a board that the parent process has opened cannot be used after fork(): start the "
                        'process with multiprocessing.get_context("spawn"), or open the board in the child only'
                    )
                self._opened = self._open()
            return self._opened

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
        """Waits for every launch made so far; see `pypto.sync`. Raises KernelError."""
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
        if device is not None:
            instance("device", device, Device, "what pypto.device(name) returns")
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
        """Work made on this stream from now on starts after `event`, a point of any stream of the device.

        Raises WrongDeviceError for one of another device."""
        instance("event", event, Event, "what Stream.record() returns")
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
    """The device of that name, without making it current. Arguments and errors as of `device`."""
    text("the name of the device", name, 'a string such as "sim"')
    machine = profile if isinstance(profile, Machine) else None
    if not (profile is None or machine is not None or isinstance(profile, (str, os.PathLike))):
        raise TypeError(f"profile is {shown(profile)}; expected a name, a path or a pypto.Machine")
    path = "" if profile is None or machine is not None else os.fspath(profile)
    noise = real("noise", noise)
    seed = whole("seed", seed, high=U64)
    text("checks", checks, 'names such as "mem,race", or "all"')
    key = (name, path, machine.to_json() if machine else "", noise, seed, checks)
    with _lock:
        found = _devices.get(key)
        if found is None:
            _pypto.check_names(checks)

            def opened() -> _pypto.Device:
                return _pypto.Device(name, path, machine._impl if machine else None, noise, seed, 0)

            found = _devices[key] = Device(opened, checks)
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

    Raises DeviceUnavailableError, which lists what was looked for and says what is wrong with a profile or
    the noise; InputError for names of checks; TypeError and ValueError.
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
    for one in _used():
        one.sync()


def _used() -> list[Device]:
    """Devices that have been opened in this process."""
    with _lock:
        return [one for one in _devices.values() if one._opened is not None]


def devices() -> list[tuple[str, bool, str, list[str]]]:
    """What there might be: (name, is it usable, one line, places that were looked at)."""
    return list(_pypto.probe_devices())


def _end() -> None:
    """At exit: kernels that nobody waited for get a moment; what they say and what failed is shown."""
    for one in _used():
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
    while _pypto.waiting_threads() > 0 and time.monotonic() < deadline:
        time.sleep(0.001)


def _after_fork() -> None:
    """In the child: threads of the parent's devices are not there, so none of its devices can be used."""
    global _lock
    _lock = threading.RLock()  # a thread that is not there may have held it
    for one in _devices.values():
        one._opened = None


atexit.register(_end)
os.register_at_fork(after_in_child=_after_fork)
