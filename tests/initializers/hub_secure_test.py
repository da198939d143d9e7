# SPDX-License-Identifier: Apache-2.0
"""muster-initializer on a hub over TLS: which certificates are trusted, and cut connections."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hub_case import FILES, URI, HubCase, HubProxy
from initializer_case import main

import certificate
from forward_proxy import ForwardProxy
from store_faults import answering, setting


class SecureCase(HubCase):
    def setUp(self):
        super().setUp()
        folder = os.path.join(self.dir, "certificates")
        self.certificate = certificate.make(folder)
        self.proxy = HubProxy(self.hub, certificate.server_context(folder))
        self.addCleanup(self.proxy.close)

    def keys(self, **more):
        return super().keys(HF_ENDPOINT=self.proxy.url, **more)

    def anew(self):
        super().anew()
        self.proxy.reset()


class Certificates(SecureCase):
    def test_an_unknown_authority(self):
        self.refused(URI, 1, r"certificate.*--ca-bundle \(REQUESTS_CA_BUNDLE, CURL_CA_BUNDLE, SSL_CERT_FILE, ")
        self.assertEqual(self.proxy.exchanges, [], "nothing is told to whoever answers there")

    def test_one_that_is_named(self):
        self.succeeds(URI, FILES, "--ca-bundle", self.certificate)
        for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"):
            with self.subTest(name):
                self.anew()
                self.succeeds(URI, FILES, env=self.keys(**{name: self.certificate}))

    def test_the_first_that_is_set_counts(self):
        other = certificate.make(os.path.join(self.dir, "other"))
        self.refused(URI, 1, "certificate", env=self.keys(REQUESTS_CA_BUNDLE=other, CURL_CA_BUNDLE=self.certificate))
        self.anew()
        self.succeeds(URI, FILES, env=self.keys(REQUESTS_CA_BUNDLE=self.certificate, CURL_CA_BUNDLE=other))

    def test_a_bundle_that_is_not_there(self):
        missing = os.path.join(self.dir, "nothing.crt")
        self.refused(URI, 1, "nothing.crt", env=self.keys(REQUESTS_CA_BUNDLE=missing))
        self.assertEqual(self.proxy.exchanges, [])


class OnTheWay(SecureCase):
    """Each ends in success, with the right bytes."""

    def keys(self, **more):
        return super().keys(REQUESTS_CA_BUNDLE=self.certificate, **more)

    def test_resets_in_the_list(self):
        """In the first page and in later ones, at any byte; also pages that are cut with a clean end."""
        self.hub.page = 2
        self.proxy.faulty = lambda exchange: "/tree/" in exchange.path
        self.proxy.faults = [
            setting(cut=0),
            setting(cut=1),
            lambda _: None,
            setting(cut=100),
            setting(reset=True),
            setting(ends_early=100),
            lambda _: None,
            setting(ends_early=0),
            setting(cut=200),
            answering(502),
        ]
        end = self.succeeds(URI, FILES)
        self.assertEqual((self.proxy.faults, end["unverified_files"]), ([], 0))
        self.assertGreaterEqual(end["requests"], len(FILES))

    def test_silence_in_the_list(self):
        self.hub.page = 2
        self.proxy.faulty = lambda exchange: "/tree/" in exchange.path
        self.proxy.faults = [setting(silent_after=50), lambda _: None, setting(late=float("inf"))]
        self.succeeds(URI, FILES, "--stall-timeout", "1")
        self.assertEqual(self.proxy.faults, [])

    def test_resets_of_the_first_call(self):
        self.proxy.faulty = lambda exchange: "/revision/" in exchange.path
        self.proxy.faults = [setting(reset=True), setting(cut=10), setting(ends_early=10)]
        self.succeeds(URI, FILES)
        self.assertEqual(self.proxy.faults, [])

    def test_by_a_proxy(self):
        proxy = ForwardProxy()
        self.addCleanup(proxy.close)
        host = f"127.0.0.1:{self.proxy.port}"
        for variable in ("https_proxy", "HTTPS_PROXY"):
            with self.subTest(variable):
                self.anew()
                proxy.requests.clear()
                self.succeeds(URI, FILES, env=self.keys(**{variable: f"http://{proxy.address}"}))
                self.assertEqual(set(proxy.requests), {("CONNECT", host)})
        proxy.requests.clear()
        self.anew()
        self.succeeds(URI, FILES, env=self.keys(https_proxy=f"http://{proxy.address}", no_proxy="127.0.0.1"))
        self.assertEqual(proxy.requests, [])


if __name__ == "__main__":
    main()
