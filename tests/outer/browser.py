# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, driven by its own protocol over two pipes: no driver, no port, no package."""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import time

BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, BROWSERS)), None)
MISSING = "NO BROWSER: install chromium-headless-shell to have the pages tested in one"
QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-dev-shm-usage",
    "--allow-file-access-from-files",
)


def move_up(descriptor):
    """The same open file as a descriptor of at least 10."""
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(descriptor)
    return moved


class Browser:
    """One page in one browser. Calls wait for their answer; `deadline` is in seconds for each."""

    def __init__(self, profile, deadline):
        self.deadline = deadline
        # The browser reads from descriptor 3 and writes to 4; none of these may be one of the two.
        their_in, self.out, self.into, their_out = (move_up(end) for end in os.pipe() + os.pipe())
        command = (CHROMIUM, *QUIET, "--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank")
        self.process = subprocess.Popen(
            ["/bin/bash", "-c", f'exec "$@" 3<&{their_in} 4>&{their_out}', "bash", *command],
            pass_fds=(their_in, their_out),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(their_in)
        os.close(their_out)
        self.buffer = b""
        self.number = 0
        self.events = []
        self.session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Performance"):
            self.call(f"{domain}.enable")

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.out)
        os.close(self.into)

    def receive(self, until):
        """The next message of the browser."""
        while b"\0" not in self.buffer:
            if not select.select([self.into], [], [], max(0, until - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            more = os.read(self.into, 1 << 20)
            if not more:
                raise EOFError("the browser has ended")
            self.buffer += more
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def call(self, method, **parameters):
        self.number += 1
        request = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.out, json.dumps(request).encode() + b"\0")
        until = time.monotonic() + self.deadline
        while True:
            message = self.receive(until)
            if message.get("id") == self.number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self.events.append(message)

    def await_event(self, method):
        """The first event of that name since the last call of this function."""
        until = time.monotonic() + self.deadline
        while True:
            for at, event in enumerate(self.events):
                if event.get("method") == method:
                    del self.events[: at + 1]
                    return event["params"]
            self.events.append(self.receive(until))

    def open(self, url):
        self.events.clear()
        self.call("Page.navigate", url=url)
        self.await_event("Page.loadEventFired")

    def run(self, expression):
        """The value of a JavaScript expression; promises are awaited."""
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"])[:2000])
        return answer["result"].get("value")

    def wait_for(self, condition):
        """Until the expression is true, as seen after each frame."""
        look = f"const look = () => ({condition}) ? done() : requestAnimationFrame(look); look();"
        self.run(f"new Promise((done) => {{ {look} }})")

    def show_as(self, width, height=900, dark=False, **features):
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        wanted = {"prefers-color-scheme": "dark" if dark else "light", **features}
        self.call(
            "Emulation.setEmulatedMedia", features=[{"name": name, "value": value} for name, value in wanted.items()]
        )

    def press(self, key):
        codes = {"Tab": 9, "Enter": 13, " ": 32}
        text = {"Enter": "\r", " ": " "}.get(key)
        more = {"text": text} if text else {}
        self.call(
            "Input.dispatchKeyEvent",
            type="keyDown" if text else "rawKeyDown",
            key=key,
            windowsVirtualKeyCode=codes[key],
            **more,
        )
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=codes[key])

    def picture(self, path, whole=True):
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(shot))

    def printed(self):
        """The page as a PDF on A4."""
        pdf = self.call("Page.printToPDF", paperWidth=8.27, paperHeight=11.69, printBackground=True)["data"]
        return base64.b64decode(pdf)

    def metrics(self):
        return {row["name"]: row["value"] for row in self.call("Performance.getMetrics")["metrics"]}
