# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests against the hub: a hub with a repository that has each kind of file, and tokens."""

import hashlib
import shutil

from initializer_case import MIB, InitializerCase, clean_environment, some_bytes

from fault_proxy import FaultProxy
from hub_server import HubServer, git_oid

NAME = "muster/model"
URI = f"hf://{NAME}"


FILES = {
    "config.json": b'{"a": 1}',
    "empty": b"",
    "sub dir/\u00e9+%41.txt": b"text\n",
    "tokenizer.json": some_bytes(700 << 10, 1),  # in git, of more than one block
    "small.bin": some_bytes(3000, 2),  # in LFS, though small
    "model.safetensors": some_bytes(20 * MIB + 5, 3),
    "onnx/model.onnx": some_bytes(MIB, 4),
}
LFS = {"small.bin"}


def hash_of(path, data):
    large = path in LFS or len(data) >= MIB
    return f"sha256:{hashlib.sha256(data).hexdigest()}" if large else f"git-blob:{git_oid(data)}"


class HubCase(InitializerCase):
    role = "model"

    def setUp(self):
        super().setUp()
        self.hub = HubServer()
        self.addCleanup(self.hub.close)
        self.repository = self.hub.add(NAME, FILES, lfs=LFS)

    def keys(self, **more):
        return {"HOME": self.dir, "HF_ENDPOINT": self.hub.url, **more}

    def environment(self):
        return clean_environment(**self.keys())

    def token(self, *repositories, token="hf_reader"):
        """Makes a token of the hub that may read them."""
        self.hub.tokens.add(token)
        for repository in repositories:
            repository.readers.add(token)
        return token

    def requests(self, origin):
        with self.hub.lock:
            return [(verb, path, headers) for at, verb, path, headers in self.hub.requests if at == origin]

    def anew(self):
        shutil.rmtree(self.target, ignore_errors=True)
        self.hub.reset()


class HubProxy(FaultProxy):
    """In front of both the hub and its CDN: the hub's redirects to the CDN lead back to this proxy."""

    def __init__(self, hub, tls=None):
        super().__init__("127.0.0.1", hub.server.server_address[1], tls)
        self.hub = hub
        hub.link_base = self.url

    def pass_on(self, handler, body):
        origin = self.hub.cdn if handler.path.startswith("/lfs/") else self.hub.server
        exchange = super().pass_on(handler, body, origin.server_address)
        exchange.headers = [
            (name, value.replace(self.hub.cdn.url, self.url) if name == "Location" else value)
            for name, value in exchange.headers
        ]
        return exchange


def subset(*paths):
    return {path: FILES[path] for path in paths}
