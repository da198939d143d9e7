# SPDX-License-Identifier: Apache-2.0
"""Serves files over HTTP/2 with hypercorn: http2_server.py CERTIFICATES FOLDER [cut]. Prints "listening on PORT", and
each request's HTTP version. "cut": each range's first answer ends after CUT bytes, a connection after two requests."""

import asyncio
import os
import socket
import sys

from hypercorn.asyncio import serve
from hypercorn.config import Config

BLOCK = 1 << 20
CUT = 300_000
cut = set()  # ends of the ranges that were cut


async def app(scope, _, send):
    if scope["type"] != "http":
        return
    print(scope["http_version"], flush=True)
    path = os.path.join(sys.argv[2], scope["path"].lstrip("/"))
    if not os.path.isfile(path):
        await send({"type": "http.response.start", "status": 404, "headers": []})
        await send({"type": "http.response.body", "body": b""})
        return
    size = os.path.getsize(path)
    headers = {name.decode(): value.decode() for name, value in scope["headers"]}
    first, last, status = 0, size - 1, 200
    if "range" in headers:
        low, high = headers["range"].removeprefix("bytes=").split("-")
        first, last, status = int(low), min(int(high or size - 1), size - 1), 206
    answer = [(b"content-length", str(last - first + 1).encode()), (b"etag", b'"v1"'), (b"accept-ranges", b"bytes")]
    if status == 206:
        answer.append((b"content-range", f"bytes {first}-{last}/{size}".encode()))
    await send({"type": "http.response.start", "status": status, "headers": answer})
    if "cut" in sys.argv and scope["method"] != "HEAD" and last not in cut:
        cut.add(last)
        with open(path, "rb") as file:
            file.seek(first)
            await send({"type": "http.response.body", "body": file.read(CUT), "more_body": True})
        return
    if scope["method"] != "HEAD":
        with open(path, "rb") as file:
            for at in range(first, last + 1, BLOCK):
                file.seek(at)
                await send(
                    {"type": "http.response.body", "body": file.read(min(BLOCK, last + 1 - at)), "more_body": True}
                )
    await send({"type": "http.response.body", "body": b""})


async def main():
    config = Config()
    listener = socket.create_server(("127.0.0.1", 0))  # early connections wait until it serves
    config.bind = [f"fd://{listener.fileno()}"]
    config.certfile, config.keyfile = f"{sys.argv[1]}/public.crt", f"{sys.argv[1]}/private.key"
    config.loglevel = "WARNING"
    if "cut" in sys.argv:
        config.keep_alive_max_requests = 2
    print(f"listening on {listener.getsockname()[1]}", flush=True)
    await serve(app, config)


asyncio.run(main())
