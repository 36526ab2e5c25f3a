# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium that a test looks at pages with, over the DevTools protocol."""

from __future__ import annotations

import base64
import itertools
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import urllib.request

import websocket


class BrowserError(Exception):
    """The browser did not do what it was asked."""


def find() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Browser:
    """One page. Errors that it reports on its console are kept in `errors`."""

    def __init__(self, width: int = 1360, height: int = 900) -> None:
        self._profile = tempfile.TemporaryDirectory(prefix="pto-chromium-")
        self._process = subprocess.Popen(
            [
                find(),
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
                "--disable-background-networking",
                "--force-color-profile=srgb",
                "--remote-debugging-port=0",
                "--remote-allow-origins=*",
                f"--window-size={width},{height}",
                f"--user-data-dir={self._profile.name}",
                "about:blank",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": self._profile.name},
        )
        self._ids = itertools.count(1)
        self.errors: list[str] = []
        try:
            self._socket = websocket.create_connection(
                self._page_address(), timeout=60, suppress_origin=True
            )
        except BaseException:
            self.close()
            raise
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.requests: list[str] = []
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def _page_address(self) -> str:
        port_file = pathlib.Path(self._profile.name, "DevToolsActivePort")
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise BrowserError(f"chromium ended with status {self._process.returncode}")
            if port_file.exists() and (lines := port_file.read_text().split()):
                with urllib.request.urlopen(f"http://127.0.0.1:{lines[0]}/json") as reply:
                    pages = [page for page in json.load(reply) if page["type"] == "page"]
                if pages:
                    return pages[0]["webSocketDebuggerUrl"]
            time.sleep(0.05)
        raise BrowserError("chromium did not open its debugging port within 60 s")

    def close(self) -> None:
        if hasattr(self, "_socket"):
            self._socket.close()
        self._process.terminate()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._profile.cleanup()

    def __enter__(self) -> "Browser":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _handle(self, message: dict) -> None:
        method = message.get("method")
        parameters = message.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "assert"):
            self.errors.append(json.dumps(parameters["args"]))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.errors.append(parameters["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif method == "Page.loadEventFired":
            self._is_loaded = True

    def call(self, method: str, **parameters: object) -> dict:
        number = next(self._ids)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv())
            if message.get("id") == number:
                if "error" in message:
                    raise BrowserError(f"{method}: {message['error']['message']}")
                return message["result"]
            self._handle(message)

    def open(self, path: pathlib.Path) -> None:
        """Loads a file and waits until it is drawn."""
        self._is_loaded = False
        self.errors.clear()
        self.requests.clear()
        self.call("Page.navigate", url=path.resolve().as_uri())
        while not self._is_loaded:
            self._handle(json.loads(self._socket.recv()))
        self.settle()

    def settle(self) -> None:
        """Waits for two frames, so that what was asked for has been drawn."""
        self.run(
            "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))"
        )

    def run(self, expression: str) -> object:
        """The value of a JavaScript expression; a promise is awaited."""
        reply = self.call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in reply:
            details = reply["exceptionDetails"]
            raise BrowserError(details.get("exception", {}).get("description", details["text"]))
        return reply["result"].get("value")

    def mouse(self, kind: str, x: float, y: float, **more: object) -> None:
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x: float, y: float) -> None:
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, button="left", clickCount=1)
        self.settle()

    def key(self, key: str, code: str, number: int) -> None:
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=code,
                windowsVirtualKeyCode=number,
            )
        self.settle()

    def prefer(self, scheme: str) -> None:
        """What the system says about "light" and "dark"."""
        self.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )
        self.settle()

    def screenshot(self, whole_page: bool = False) -> bytes:
        """PNG bytes."""
        reply = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole_page)
        return base64.b64decode(reply["data"])
