"""Files over HTTP/2 by hypercorn: http2_server.py PORT CERTIFICATES FOLDER. Prints "listening"; says of each request which HTTP it was."""
import asyncio
import os
import sys

from hypercorn.asyncio import serve
from hypercorn.config import Config

BLOCK = 1 << 20


async def app(scope, _, send):
    if scope["type"] != "http":
        return
    print(scope["http_version"], flush=True)
    path = os.path.join(sys.argv[3], scope["path"].lstrip("/"))
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
    if scope["method"] != "HEAD":
        with open(path, "rb") as file:
            for at in range(first, last + 1, BLOCK):
                file.seek(at)
                await send({"type": "http.response.body", "body": file.read(min(BLOCK, last + 1 - at)), "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def main():
    config = Config()
    config.bind = [f"127.0.0.1:{sys.argv[1]}"]
    config.certfile, config.keyfile = f"{sys.argv[2]}/public.crt", f"{sys.argv[2]}/private.key"
    config.loglevel = "WARNING"
    ready = asyncio.get_running_loop().create_task(serve(app, config))
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", int(sys.argv[1]))
            writer.close()
            break
        except OSError:
            await asyncio.wait([ready], timeout=0.02)
            if ready.done():
                ready.result()
    print("listening", flush=True)
    await ready


asyncio.run(main())
