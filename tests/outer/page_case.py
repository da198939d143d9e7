# SPDX-License-Identifier: Apache-2.0
"""What tests of pages in a browser share: a browser, axe-core, and an agent's stand-in that serves the live page."""

import http.server
import os
import pathlib
import queue
import subprocess
import tempfile
import threading
import unittest
import urllib.parse

from muster_case import DEADLINE, MUSTER, MusterCase

from browser import CHROMIUM, MISSING, Browser

SAMPLE = os.path.join(os.path.dirname(MUSTER), "page_sample")
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "muster"
AXE = next(CACHE.glob("axe/lib/python3*/site-packages/axe_playwright_python/axe.min.js"), None)
PICTURES = os.environ.get("MUSTER_PAGE_PICTURES")  # a folder: what the tests see is put there
# What axe looks at. color-contrast is WCAG's AA.
AXE_RUN = """axe.run(document, {resultTypes: ["violations"], runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa",
"wcag22aa", "best-practice"]}).then((r) => r.violations.map((v) => v.id + ": " + v.nodes.slice(0, 3).map(
(n) => n.target + " " + (n.any[0]?.message ?? n.failureSummary)).join("; ")))"""
# Elements that reach beyond the window, outside of what scrolls by itself.
TOO_WIDE = """[document.documentElement.scrollWidth > innerWidth, ...[...document.querySelectorAll("body *:not(svg *)")]
.filter((e) => !e.closest(".scroll") && !e.matches(".skip") && e.getBoundingClientRect().right > innerWidth + 0.5)
.slice(0, 3).map((e) => e.outerHTML.slice(0, 80))]"""


def sample(*words):
    return subprocess.run(
        [SAMPLE, *map(str, words)], capture_output=True, text=True, timeout=DEADLINE, check=True
    ).stdout


@unittest.skipUnless(CHROMIUM, MISSING)
class PageCase(MusterCase):
    def setUp(self):
        super().setUp()
        self.browser = Browser(tempfile.mkdtemp(dir=self.dir), DEADLINE)
        self.addCleanup(self.browser.close)

    def check_looks(self, name):
        """The open page at two widths, in light and dark: nothing is too wide, and axe finds nothing."""
        if AXE:
            self.browser.run(AXE.read_text())
        # What is not in the window is not drawn otherwise, and axe and a picture leave it out.
        self.browser.run("""document.querySelectorAll(".ranks details").forEach(
            (group) => { group.style.contentVisibility = "visible"; })""")
        for width in (360, 1440):
            for dark in (False, True):
                self.browser.show_as(width, dark=dark)
                self.browser.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
                self.assertEqual(self.browser.run(TOO_WIDE), [False], (name, width))
                if AXE:
                    self.assertEqual(self.browser.run(AXE_RUN), [], (name, width, dark))
                if PICTURES:
                    self.browser.picture(f"{PICTURES}/{name}-{width}-{'dark' if dark else 'light'}.png")
        self.browser.show_as(1440, **{"forced-colors": "active", "prefers-reduced-motion": "reduce"})
        self.assertEqual(self.browser.run(TOO_WIDE), [False], name)
        if PICTURES:
            self.browser.picture(f"{PICTURES}/{name}-forced.png")
        self.browser.show_as(1440)
        if not AXE:
            self.skipTest("NO AXE: run build-support/setup-venv axe to have the pages' accessibility tested")


class Stream:
    """One client of /events: its request, and what the test sends to it. None ends it."""

    def __init__(self, query):
        self.request = urllib.parse.parse_qs(query)
        self.query = query
        self.chunks = queue.Queue()

    def send(self, text):
        self.chunks.put(text)

    def end(self):
        self.chunks.put(None)


class Served:
    """Serves the page of a sample run. `pages` gets an item for each load, `streams` one for each client of /events."""

    def __init__(self, page):
        self.page = page
        self.pages, self.streams = queue.Queue(), queue.Queue()
        self.refuse = False
        served = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                path, _, query = self.path.partition("?")
                if path == "/events" and served.refuse:
                    self.send_error(503)
                elif path == "/events":
                    self.follow(Stream(query))
                elif path == "/":
                    self.answer("text/html; charset=utf-8", served.page.encode())
                    served.pages.put(path)
                else:
                    self.send_error(404)

            def answer(self, kind, body):
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def follow(self, stream):
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.end_headers()
                self.wfile.flush()
                served.streams.put(stream)
                while (chunk := stream.chunks.get()) is not None:
                    self.wfile.write(chunk.encode())
                    self.wfile.flush()

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.block_on_close = False
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def next_stream(self):
        return self.streams.get(timeout=DEADLINE)

    def close(self):
        self.server.shutdown()
        self.server.server_close()
