# SPDX-License-Identifier: Apache-2.0
"""An HTTP proxy like those of companies: CONNECT for https, absolute URIs for http, optionally with a password."""

import base64
import selectors
import socket
import socketserver
import threading
import urllib.parse

import server_errors


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        proxy = self.server.proxy
        request = self.rfile.readline().decode("latin-1").split()
        if len(request) != 3:
            return
        method, target, _ = request
        headers = []
        while line := self.rfile.readline().decode("latin-1").strip():
            headers.append(line)
        with proxy.lock:
            proxy.requests.append((method, target))
        said = {name.lower(): value.strip() for name, _, value in (header.partition(":") for header in headers)}
        if (
            proxy.password
            and said.get("proxy-authorization") != "Basic " + base64.b64encode(proxy.password.encode()).decode()
        ):
            self.wfile.write(
                b'HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm="p"\r\n'
                b"Content-Length: 0\r\nConnection: close\r\n\r\n"
            )
            return
        url = urllib.parse.urlsplit(f"//{target}" if method == "CONNECT" else target)
        with socket.create_connection(proxy.leads_to or (url.hostname, url.port or 80)) as there:
            if method == "CONNECT":
                self.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                kept = [header for header in headers if not header.lower().startswith(("proxy-", "connection:"))]
                path = url.path + (f"?{url.query}" if url.query else "")
                there.sendall(
                    "\r\n".join([f"{method} {path} HTTP/1.1", *kept, "Connection: close", "", ""]).encode("latin-1")
                )
            self.pass_on(there)

    def pass_on(self, there):
        with selectors.DefaultSelector() as ready:
            ready.register(self.connection, selectors.EVENT_READ, there)
            ready.register(there, selectors.EVENT_READ, self.connection)
            while True:
                for key, _ in ready.select():
                    try:
                        data = key.fileobj.recv(1 << 16)
                        if not data:
                            return
                        key.data.sendall(data)
                        while getattr(key.fileobj, "pending", int)():  # bytes that TLS has buffered
                            key.data.sendall(key.fileobj.recv(1 << 16))
                    except OSError:
                        return


class Server(server_errors.Recording, socketserver.ThreadingTCPServer):
    daemon_threads = True


class ForwardProxy:
    def __init__(self, password=None, tls=None, leads_to=None):
        """`password`: the required "user:password". `tls`: SSL context, for a proxy over TLS. `leads_to`: (host, port)
        in place of every requested host, so that a test server can stand for it."""
        self.password = password
        self.leads_to = leads_to
        self.requests = []
        self.lock = threading.Lock()
        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.proxy = self
        if tls:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.address = f"127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
