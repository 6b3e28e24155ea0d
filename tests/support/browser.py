"""A headless Chromium on a pipe: opens a page, evaluates scripts, sends keys, keeps what the page complained about.

It speaks the Chrome DevTools Protocol over `--remote-debugging-pipe` (messages end with a NUL byte), so no driver and
no package is needed. It knows nothing of the pages.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
KEYS = {"Enter": 13, "Escape": 27, "Tab": 9, "PageUp": 33, "PageDown": 34, "End": 35, "Home": 36}
KEYS |= {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}


def chromium() -> str | None:
    """The browser's path: `LOGITREE_CHROMIUM`, else the first that is installed; None without one."""
    return os.environ.get("LOGITREE_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One browser with one tab. A context manager."""

    def __init__(self, path: str) -> None:
        self._folder = tempfile.mkdtemp(prefix="logitree-browser-")
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        arguments = [path, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        arguments += ["--no-first-run", "--disable-background-networking", "--disable-component-update"]
        arguments += ["--disable-extensions", "--mute-audio", "--hide-scrollbars", "--force-color-profile=srgb"]
        arguments += [f"--user-data-dir={self._folder}", "--remote-debugging-pipe", "about:blank"]
        # The browser reads its file descriptor 3 and writes 4. The shell moves the pipes there.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 20) for end in (to_read, to_write)]
        shell = f'exec "$@" 3<&{ends[0]} 4>&{ends[1]} {ends[0]}<&- {ends[1]}>&-'
        command = ["bash", "-c", shell, "browser", *arguments]
        quiet = subprocess.DEVNULL
        self._process = subprocess.Popen(command, pass_fds=ends, stdin=quiet, stdout=quiet, stderr=quiet)
        for end in (to_read, to_write, *ends):
            os.close(end)
        self._buffer, self._id, self._session = b"", 0, ""
        self.requests: list[str] = []
        """Addresses that the page asked for, its own not counted."""
        self.complaints: list[str] = []
        """Errors and warnings on the console, uncaught exceptions and violations of the page's policy."""
        tabs = self.call("Target.getTargets")["targetInfos"]
        tab = next(tab["targetId"] for tab in tabs if tab["type"] == "page")
        self._session = self.call("Target.attachToTarget", targetId=tab, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_raised: object) -> None:
        with contextlib.suppress(Exception):
            self._session = ""
            self.call("Browser.close", timeout=5)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        self._process.kill()
        self._process.wait()
        os.close(self._write)
        os.close(self._read)
        shutil.rmtree(self._folder, ignore_errors=True)

    def call(self, method: str, *, timeout: float = 60, **params: Any) -> dict[str, Any]:
        """Calls a method of the protocol and gives its result.

        Raises:
            RuntimeError: the browser refused.
            TimeoutError: it did not answer in `timeout` seconds.
        """
        self._id += 1
        message: dict[str, Any] = {"id": self._id, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + timeout
        while True:
            found = self._message(end)
            if found.get("id") == self._id:
                if "error" in found:
                    raise RuntimeError(f"{method}: {found['error']['message']}")
                result: dict[str, Any] = found["result"]
                return result

    def _message(self, end: float) -> dict[str, Any]:
        """The next message, an event noted."""
        while b"\0" not in self._buffer:
            if not select.select([self._read], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            part = os.read(self._read, 1 << 20)
            if not part:
                raise RuntimeError("the browser ended")
            self._buffer += part
        one, _, self._buffer = self._buffer.partition(b"\0")
        found: dict[str, Any] = json.loads(one)
        self._note(found.get("method", ""), found.get("params", {}))
        return found

    def _note(self, method: str, params: dict[str, Any]) -> None:
        if method == "Network.requestWillBeSent" and params["request"]["url"] != params["documentURL"]:
            self.requests.append(params["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.complaints.append(" ".join(str(one.get("value")) for one in params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.complaints.append(params["entry"]["text"])

    def view(self, width: int, height: int, *, dark: bool = False, scale: float = 1) -> None:
        """Sets the size of the window in CSS pixels, and the colour scheme that the user prefers."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=False
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, page: Path | str, ready: str, fragment: str = "") -> float:
        """Opens a page, a file or an address, waits until the expression `ready` is true, and gives the seconds that
        this took."""
        address = page if isinstance(page, str) else page.resolve().as_uri()
        # A change of the fragment alone would not load the page again.
        self.call("Page.navigate", url="about:blank")
        began = time.monotonic()
        self.call("Page.navigate", url=address + fragment)
        self.wait(f"location.protocol !== 'about:' && document.readyState === 'complete' && !!({ready})")
        return time.monotonic() - began

    def wait(self, expression: str, seconds: float = 60) -> None:
        """Waits until an expression is true in the page.

        Raises:
            TimeoutError: it is not, after so many seconds.
        """
        end = time.monotonic() + seconds
        while not self.run(f"!!({expression})"):
            if time.monotonic() > end:
                raise TimeoutError(f"not so in {seconds} s: {expression}; {self.complaints}")
            time.sleep(0.01)

    def run(self, expression: str) -> Any:
        """The value of an expression in the page; a promise is awaited.

        Raises:
            RuntimeError: it threw.
        """
        made = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in made:
            raise RuntimeError(made["exceptionDetails"]["exception"]["description"])
        return made["result"].get("value")

    def press(self, *keys: str) -> None:
        """Presses keys, by their DOM names."""
        for key in keys:
            code = KEYS.get(key) or ord(key.upper())
            given: dict[str, Any] = {"key": key, "windowsVirtualKeyCode": code}
            if len(key) == 1:
                given["text"] = key
            if key == "Enter":
                given["text"] = "\r"
            self.call("Input.dispatchKeyEvent", type="keyDown", **given)
            self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def click(self, selector: str) -> None:
        """Clicks the middle of the first element that a selector finds, scrolled into view, once it no longer moves."""
        middle = """(async () => { const at = () => {
                const e = document.querySelector(%s);
                e.scrollIntoView({block: "nearest"});
                const b = e.getClientRects()[0]; return [b.left + b.width / 2, b.top + b.height / 2] };
            let now = at();
            for (let before = [], n = 0; n < 100 && (before[0] !== now[0] || before[1] !== now[1]); n++) {
                await new Promise((done) => setTimeout(done, 20));
                [before, now] = [now, at()];
            }
            return now })()"""
        x, y = self.run(middle % json.dumps(selector))
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def screenshot(self, path: Path) -> None:
        """Writes what is seen as a PNG file."""
        data = self.call("Page.captureScreenshot", format="png")["data"]
        path.write_bytes(base64.b64decode(data))

    def accessible(self) -> list[dict[str, Any]]:
        """The accessibility tree: what a screen reader gets."""
        nodes: list[dict[str, Any]] = self.call("Accessibility.getFullAXTree")["nodes"]
        return nodes
