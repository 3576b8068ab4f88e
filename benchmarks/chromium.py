"""A real Chromium without a window, driven through the two pipes of its DevTools protocol: JSON between NUL bytes."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE = 60.0  # seconds for an answer
DRAWN = "new Promise((done) => requestAnimationFrame(() => setTimeout(done)))"  # kept once a frame has been drawn
OPTIONS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"),
    *("--no-first-run", "--disable-extensions", "--disable-background-networking", "--remote-debugging-pipe"),
)


def chromium_path() -> str | None:
    """Where it is installed, if it is."""
    return next((found for found in map(shutil.which, NAMES) if found), None)


@dataclass
class Page:
    """One open page. What its console reports as an error, and what it throws, is kept in ``errors``."""

    to_browser: int  # file descriptors
    from_browser: int
    session: str | None = None
    errors: list[str] = field(default_factory=list)
    _asked: int = 0
    _rest: bytes = b""

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and wait for its answer."""
        self._asked += 1
        message = {"id": self._asked, "method": method, "params": parameters}
        if self.session is not None:
            message["sessionId"] = self.session
        os.write(self.to_browser, json.dumps(message).encode() + b"\0")
        while (answer := self._read()).get("id") != self._asked:
            self._note(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        result: dict[str, Any] = answer["result"]
        return result

    def value(self, expression: str) -> Any:
        """What a JavaScript expression is."""
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def open(self, address: str, *, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        """Load a page in a window of this size and wait until it is complete, and has been drawn once."""
        mobile = width < 600
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])
        self.ask("Page.navigate", url=address)
        until = time.monotonic() + PATIENCE
        while self.value("[location.href, document.readyState].join(' ')") != f"{address} complete":
            assert time.monotonic() < until, f"{address} does not load"
            time.sleep(0.05)
        self.value(DRAWN)

    def press(self, key: str) -> None:
        """Press and release a key where the focus is."""
        code = {"Enter": 13, " ": 32}[key]
        text = "\r" if key == "Enter" else key
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, text=text)

    def picture(self, path: Path) -> None:
        """What the window shows, as PNG."""
        path.write_bytes(base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"]))

    def _note(self, event: dict[str, Any]) -> None:
        words = event.get("params", {})
        if event.get("method") == "Runtime.exceptionThrown":
            self.errors.append(str(words["exceptionDetails"]))
        elif event.get("method") == "Runtime.consoleAPICalled" and words["type"] in ("error", "warning", "assert"):
            self.errors.append(str(words["args"]))
        elif event.get("method") == "Log.entryAdded" and words["entry"]["level"] in ("error", "warning"):
            self.errors.append(str(words["entry"]))

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            if not select.select([self.from_browser], [], [], PATIENCE)[0]:
                raise TimeoutError("the browser does not answer")
            chunk = os.read(self.from_browser, 1 << 16)
            if not chunk:
                raise EOFError("the browser has ended")
            self._rest += chunk
        message, _, self._rest = self._rest.partition(b"\0")
        answer: dict[str, Any] = json.loads(message)
        return answer


@contextmanager
def chromium(program: str) -> Iterator[Page]:
    """An empty page; the browser ends with the block."""
    their_in, our_out = os.pipe()
    our_in, their_out = os.pipe()
    # the browser reads from descriptor 3 and writes to 4
    command = f'exec "$0" "$@" 3<&{their_in} 4>&{their_out}'
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            ["/bin/bash", "-c", command, program, *OPTIONS, f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(their_in, their_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(their_in)
        os.close(their_out)
        try:
            page = Page(our_out, our_in)
            target = page.ask("Target.createTarget", url="about:blank")["targetId"]
            page.session = page.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for domain in ("Runtime", "Log", "Page"):
                page.ask(f"{domain}.enable")
            yield page
            page.session = None
            page.ask("Browser.close")
        finally:
            os.close(our_out)
            os.close(our_in)
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
