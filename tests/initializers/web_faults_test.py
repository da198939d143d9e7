# SPDX-License-Identifier: Apache-2.0
"""muster-initializer on an https:// server behind a proxy that damages answers: the faults of all stores, over TLS."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from initializer_case import MIB, UNREACHABLE, InitializerCase, clean_environment, main, some_bytes

import certificate
from fault_proxy import FaultProxy
from store_faults import LOGIN_PAGE, KilledAnywhere, PermanentFaults, TransientFaults, answering
from web_server import WebServer


class FaultCase(InitializerCase):
    """A small file and a large one. There are no lists: each file is looked for."""

    flags = ("--patience", "20")
    large = ("large",)
    many = 30
    busy = staticmethod(answering(503))
    too_many = staticmethod(answering(429, b"", ("RateLimit", '"address";r=0;t=0')))  # t=0: wait 1 s
    is_list = staticmethod(lambda exchange: exchange.method == "HEAD")

    def setUp(self):
        super().setUp()
        self.server = WebServer()
        self.addCleanup(self.server.close)
        self.objects = {"small": some_bytes(8 << 10, 1), "large": some_bytes(20 * MIB + 5, 2)}
        for name, data in self.objects.items():
            self.put(name, data)
        folder = os.path.join(self.dir, "certificates")
        self.certificate = certificate.make(folder)
        self.proxy = FaultProxy("127.0.0.1", self.server.server_address[1], certificate.server_context(folder))
        self.addCleanup(self.proxy.close)
        self.uri = self.proxy.url

    def environment(self):
        return clean_environment(HOME=self.dir, CURL_CA_BUNDLE=self.certificate)

    def put(self, name, data):
        self.server.files[f"/{name}"] = data

    def runs(self, objects):
        return [(f"{self.uri}/{name}", {os.path.basename(name): data}) for name, data in objects.items()]


class Transient(FaultCase, TransientFaults):
    def test_a_login_page(self):
        """During the transfer. When the file is looked for, it is final: Permanent in web_test.py."""
        self.repaired(LOGIN_PAGE, LOGIN_PAGE)


class Permanent(FaultCase, PermanentFaults):
    busy_words = "503"

    def test_always_a_login_page(self):
        for uri, _ in self.each_run(self.objects):
            self.proxy.always(LOGIN_PAGE)
            self.refused(uri, UNREACHABLE, "a web page in place of", "--patience", "1")

    def test_always_busy_before_it_is_found(self):
        """The message has the URL."""
        self.proxy.faulty = self.is_list
        self.proxy.always(self.busy)
        self.refused(f"{self.uri}/large", UNREACHABLE, f"{self.uri}/large.*503.*giving up", "--patience", "1")


class Killed(FaultCase, KilledAnywhere):
    pass


if __name__ == "__main__":
    main()
