"""Controls a headless Chromium over its DevTools pipe, without a driver or a package.

Each browser has a new, empty profile, which is deleted at the end.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-default-apps", "--disable-extensions", "--hide-scrollbars",
    "--remote-debugging-pipe", "--force-color-profile=srgb",
)  # fmt: skip
_FIRST_FREE_FD = 10
"""The first file descriptor for pipes: it does not conflict with 3 and 4, which Chromium uses."""
_TIMEOUT_S = 60.0
_CHUNK = 1 << 16


class Browser:
    """One tab of a browser. Every call waits for its answer.

    `requests`: every address that the page requested. `complaints`: the page's console messages and
    errors.
    """

    def __init__(self, read: int, write: int) -> None:
        self._read, self._write = read, write
        self._number, self._buffer = 0, b""
        self._session: str | None = None
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self._is_loaded = False

    def attach(self) -> Self:
        """Opens the tab that all calls use."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        answer = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = answer["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        return self

    def open(self, path: Path, fragment: str = "") -> None:
        """Opens a file and waits until it is loaded; clears earlier requests and complaints."""
        self._go("about:blank")
        self.requests.clear()
        self.complaints.clear()
        self._go(path.resolve().as_uri() + fragment)

    def _go(self, url: str) -> None:
        self._is_loaded = False
        self.call("Page.navigate", url=url)
        end = time.monotonic() + _TIMEOUT_S
        while not self._is_loaded:
            self._listen(end)

    def run(self, script: str) -> Any:
        """Returns the value of a JavaScript expression, or of its promise."""
        answer = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise AssertionError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def resize(self, width: int, height: int) -> None:
        """Sets the window's inner size in CSS pixels."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip

    def emulate_media(self, kind: str = "", **features: str) -> None:
        """Emulates the medium `kind`, such as `print`, or a colour scheme:
        `prefers_color_scheme="dark"`.
        """
        media_features = [{"name": k.replace("_", "-"), "value": v} for k, v in features.items()]
        self.call("Emulation.setEmulatedMedia", media=kind, features=media_features)

    def press(self, key: str, *, shift: bool = False) -> None:
        """Presses a key like the keyboard: `Tab`, `Enter`, ` `."""
        codes = {"Tab": 9, "Enter": 13, " ": 32}
        text = {"Enter": "\r", " ": " "}.get(key)
        key_fields = {
            "key": key,
            "windowsVirtualKeyCode": codes[key],
            "modifiers": 8 if shift else 0,
        }
        key_down = {"type": "keyDown" if text else "rawKeyDown", **({"text": text} if text else {})}
        self.call("Input.dispatchKeyEvent", **key_fields, **key_down)
        self.call("Input.dispatchKeyEvent", **key_fields, type="keyUp")

    def type(self, text: str) -> None:
        """Types text at the cursor."""
        self.call("Input.insertText", text=text)

    def screenshot(self, *, full_page: bool = False) -> bytes:
        """Returns the visible part as PNG; with `full_page`, the whole page."""
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=full_page)
        return base64.b64decode(answer["data"])

    def to_pdf(self) -> bytes:
        """Returns the page as PDF."""
        answer = self.call("Page.printToPDF", printBackground=True)
        return base64.b64decode(answer["data"])

    def call(self, method: str, **params: Any) -> Any:
        """Sends a DevTools command; returns its answer.

        Raises AssertionError with Chromium's message.
        """
        self._number += 1
        message_id = self._number
        message = {"id": message_id, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        unsent = json.dumps(message).encode() + b"\0"
        while unsent:
            unsent = unsent[os.write(self._write, unsent) :]
        end = time.monotonic() + _TIMEOUT_S
        while True:
            answer = self._listen(end)
            if answer.get("id") == message_id:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return answer["result"]

    def _listen(self, end: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(end - time.monotonic(), 0))
            chunk = os.read(self._read, _CHUNK) if ready else b""
            if not chunk:
                raise AssertionError("Chromium gave no answer")
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        self._record_event(message.get("method", ""), message.get("params", {}))
        return message

    def _record_event(self, event: str, params: dict[str, Any]) -> None:
        if event == "Page.loadEventFired":
            self._is_loaded = True
        elif event == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif event == "Runtime.exceptionThrown":
            self.complaints.append(str(params["exceptionDetails"]))
        elif event == "Runtime.consoleAPICalled":
            self.complaints.append(str(params["args"]))
        elif event == "Log.entryAdded":
            self.complaints.append(params["entry"]["text"])


def chromium() -> str | None:
    """Returns the path of an installed Chromium; None if there is none."""
    return next(filter(None, map(shutil.which, _NAMES)), None)


@contextmanager
def browser() -> Iterator[Browser]:
    """Opens a browser for a `with` block. Raises FileNotFoundError if no Chromium is installed."""
    program = chromium()
    if program is None:
        raise FileNotFoundError("no Chromium is installed: on Debian, `apt-get install chromium`")
    pipes = os.pipe(), os.pipe()
    (their_read, our_write), (our_read, their_write) = pipes
    high_fds = [fcntl.fcntl(fd, fcntl.F_DUPFD, _FIRST_FREE_FD) for fd in (their_read, their_write)]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(  # noqa: S603 - our own arguments
            [
                *(
                    "/bin/bash",
                    "-c",
                    f'exec "$@" 3<&{high_fds[0]} 4>&{high_fds[1]}',
                    "chromium",
                    program,
                ),
                *_FLAGS,
                f"--user-data-dir={profile}",
            ],
            pass_fds=high_fds,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for fd in (their_read, their_write, *high_fds):
            os.close(fd)
        try:
            yield Browser(our_read, our_write).attach()
        finally:
            process.terminate()
            process.wait(timeout=_TIMEOUT_S)
            os.close(our_read)
            os.close(our_write)
