# SPDX-License-Identifier: Apache-2.0
"""muster-initializer on real networks: proxies, IPv6, HTTP/2, latency, an outage of a minute."""

import os
import shutil
import socket
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from initializer_case import (
    DEADLINE,
    HERE,
    MIB,
    UNREACHABLE,
    InitializerCase,
    clean_environment,
    main,
    needs,
    some_bytes,
)

needs("s3-server", "run build-support/setup-venv s3-server", "hypercorn")

import certificate
from class_runner import not_emulated
from fault_proxy import FaultProxy
from forward_proxy import ForwardProxy
from free_port import free_port
from web_server import WebServer


class NetworkCase(InitializerCase):
    data = some_bytes(5 * MIB + 3)

    def serve(self, secure=False, family=socket.AF_INET):
        class Server(WebServer):
            address_family = family
            host = "::1" if family == socket.AF_INET6 else "127.0.0.1"

        server = Server()
        self.addCleanup(server.close)
        server.files["/f"] = self.data
        if secure:
            self.certificates = os.path.join(self.dir, "certificates")
            certificate.make(self.certificates, "IP:127.0.0.1,IP:::1")
            server.socket = certificate.server_context(self.certificates).wrap_socket(server.socket, server_side=True)
        return server

    def proxy(self, password=None, tls=None):
        proxy = ForwardProxy(password, tls)
        self.addCleanup(proxy.close)
        return proxy


class Mistakes(NetworkCase):
    """Mistakes of the tests themselves."""

    def test_what_fails_in_a_server_fails_the_test(self):
        server = self.serve()
        server.faults = [lambda request: self.fail("in a thread")]
        self.succeeds(f"{server.url}/f", {"f": self.data})  # the client takes it for a fault of the network
        self.assertRaisesRegex(AssertionError, "in a thread", self.check_servers)


class Proxies(NetworkCase):
    def test_plain_http_goes_through_its_proxy(self):
        server, proxy = self.serve(), self.proxy()
        for variable in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
            with self.subTest(variable):
                shutil.rmtree(self.target, ignore_errors=True)
                proxy.requests.clear()
                self.succeeds(f"{server.url}/f", {"f": self.data}, env={variable: f"http://{proxy.address}"})
                self.assertIn(("GET", f"{server.url}/f"), proxy.requests)

    def test_https_through_a_tunnel(self):
        server, proxy = self.serve(secure=True), self.proxy()
        host = f"127.0.0.1:{server.server_address[1]}"
        for variable in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
            with self.subTest(variable):
                shutil.rmtree(self.target, ignore_errors=True)
                proxy.requests.clear()
                self.succeeds(
                    f"https://{host}/f",
                    {"f": self.data},
                    "--ca-bundle",
                    f"{self.certificates}/public.crt",
                    env={variable: f"http://{proxy.address}"},
                )
                self.assertEqual(set(proxy.requests), {("CONNECT", host)})

    def test_a_proxy_that_speaks_tls(self):
        server = self.serve(secure=True)
        proxy = self.proxy(tls=certificate.server_context(self.certificates))
        host = f"127.0.0.1:{server.server_address[1]}"
        end = self.succeeds(
            f"https://{host}/f",
            {"f": self.data},
            "--ca-bundle",
            f"{self.certificates}/public.crt",
            env={"HTTPS_PROXY": f"https://{proxy.address}"},
        )
        self.assertEqual((set(proxy.requests), end["retries"]), ({("CONNECT", host)}, 0))

    def test_some_hosts_are_asked_without(self):
        server, proxy = self.serve(), self.proxy()
        for value in ("example.org 127.0.0.1", "*", "127.0.0.0/8", f"127.0.0.1:{server.server_address[1]}"):
            for through, without in (("HTTP_PROXY", "NO_PROXY"), ("http_proxy", "no_proxy")):
                with self.subTest(f"{without}={value}"):
                    shutil.rmtree(self.target, ignore_errors=True)
                    self.succeeds(
                        f"{server.url}/f", {"f": self.data}, env={through: f"http://{proxy.address}", without: value}
                    )
                    self.assertEqual(proxy.requests, [])
        shutil.rmtree(self.target)
        self.succeeds(
            f"{server.url}/f", {"f": self.data}, env={"http_proxy": f"http://{proxy.address}", "no_proxy": "127.0.0.2"}
        )
        self.assertNotEqual(proxy.requests, [])

    def test_what_is_no_proxy(self):
        """An invalid proxy is an error at once, without retries; an imprecise but clear one is accepted."""
        server, proxy = self.serve(), self.proxy()
        for value in (f'"http://{proxy.address}"', f"'{proxy.address}'", f"{proxy.address} x"):
            self.refused(
                f"{server.url}/f",
                78,
                "HTTP_PROXY is not a proxy: there .* in its value; set it to http://HOST:PORT",
                env={"HTTP_PROXY": value},
            )
        self.assertEqual(proxy.requests, [])
        for value in (f" http://{proxy.address}\n", proxy.address):
            shutil.rmtree(self.target, ignore_errors=True)
            proxy.requests.clear()
            self.succeeds(f"{server.url}/f", {"f": self.data}, env={"HTTP_PROXY": value})
            self.assertNotEqual(proxy.requests, [])

    def test_a_password(self):
        server, proxy = self.serve(), self.proxy("user:secret")
        self.succeeds(f"{server.url}/f", {"f": self.data}, env={"HTTP_PROXY": f"http://user:secret@{proxy.address}"})
        shutil.rmtree(self.target)
        self.refused(f"{server.url}/f", 1, "407", env={"HTTP_PROXY": f"http://user:wrong@{proxy.address}"})
        self.assertNotIn("wrong@", self.said)

    def test_a_tunnel_that_is_refused(self):
        server, proxy = self.serve(secure=True), self.proxy("user:secret")
        self.refused(
            f"https://127.0.0.1:{server.server_address[1]}/f",
            1,
            "407.*HTTPS_PROXY",
            env={"HTTPS_PROXY": f"http://{proxy.address}"},
        )

    def test_nobody_is_the_proxy(self):
        server = self.serve()
        port = free_port()
        self.refused(
            f"{server.url}/f", UNREACHABLE, str(port), "--patience", "1", env={"HTTP_PROXY": f"http://127.0.0.1:{port}"}
        )


class Addresses(NetworkCase):
    def test_of_six(self):
        try:
            server = self.serve(family=socket.AF_INET6)
        except OSError as error:
            self.skipTest(f"no IPv6 here: {error}")
        self.succeeds(f"http://[::1]:{server.server_address[1]}/f", {"f": self.data})

    def test_a_name_with_both_where_only_one_listens(self):
        server = self.serve()
        self.succeeds(f"http://localhost:{server.server_address[1]}/f", {"f": self.data})

    @not_emulated("with-arm64's user namespace has no right to port 53 of the machine")
    def test_a_name_server_that_never_answers_aaaa(self):
        """RFC 4074 section 4.1. The IPv4 address is used before the try times out."""
        if os.geteuid() != 0:
            self.skipTest("a resolv.conf of its own needs root")
        names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.addCleanup(names.close)
        address = f"127.53.{os.getpid() >> 8 & 255}.{os.getpid() & 255}"
        names.bind((address, 53))  # glibc uses no other port

        def answer():
            while True:
                try:
                    question, asker = names.recvfrom(512)
                except OSError:
                    return  # closed
                end = question.index(b"\0", 12) + 5
                if question[end - 4 : end - 2] == b"\0\1":  # A
                    record = b"\xc0\x0c\0\1\0\1\0\0\0\5\0\4" + socket.inet_aton("127.0.0.1")
                    names.sendto(question[:2] + b"\x81\x80\0\1\0\1\0\0\0\0" + question[12:end] + record, asker)

        threading.Thread(target=answer, daemon=True).start()
        resolv_conf = os.path.join(self.dir, "resolv.conf")
        with open(resolv_conf, "w") as file:
            file.write(f"nameserver {address}\n")
        self.prefix = [
            "unshare",
            "--mount",
            "--propagation",
            "private",
            "sh",
            "-c",
            f'mount --bind {resolv_conf} /etc/resolv.conf && exec "$@"',
            "sh",
        ]
        server = self.serve()
        end = self.succeeds(f"http://head.example:{server.server_address[1]}/f", {"f": self.data})
        self.assertEqual(end["retries"], 0)

    def test_five_seconds_of_latency(self):
        server = self.serve()
        hold = threading.Event()
        self.addCleanup(hold.set)

        def late(_):
            hold.wait(5)
            return False

        server.faults = [late] * 2
        server.faulty = lambda request: True
        end = self.succeeds(f"{server.url}/f", {"f": self.data})
        self.assertEqual((end["retries"], server.faults), (0, []))


class Outage(NetworkCase):
    def test_longer_than_most_pauses(self):
        """After the look for the file, every connection is reset for a while."""
        server = self.serve()
        proxy = FaultProxy("127.0.0.1", server.server_address[1])
        self.addCleanup(proxy.close)
        over = []

        def gone(exchange):
            if not over:
                over.append(time.monotonic() + 15)
            exchange.reset = True

        seen = []

        def faulty(_):
            seen.append(None)
            return len(seen) > 1 and (not over or time.monotonic() < over[0])

        proxy.faulty = faulty
        proxy.always(gone)
        process = self.start(f"{proxy.url}/f")
        out, err = process.communicate(timeout=DEADLINE + 120)
        self.assertEqual(process.returncode, 0, out + err)
        self.assertGreater(time.monotonic(), over[0])
        self.check_right({"f": self.data})


class Tls(NetworkCase):
    def test_certificates_by_the_environment(self):
        url = f"https://127.0.0.1:{self.serve(secure=True).server_address[1]}/f"
        self.refused(
            url, 1, r"certificate.*--ca-bundle \(CURL_CA_BUNDLE, SSL_CERT_FILE, REQUESTS_CA_BUNDLE, AWS_CA_BUNDLE, "
        )
        for name in ("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"):
            with self.subTest(name):
                shutil.rmtree(self.target, ignore_errors=True)
                self.succeeds(url, {"f": self.data}, env={name: f"{self.certificates}/public.crt"})
        shutil.rmtree(self.target)
        os.rename(f"{self.certificates}/public.crt", f"{self.certificates}/cabundle.crt")
        self.succeeds(
            url,
            {"f": self.data},
            env={"CA_BUNDLE_VOLUME_MOUNT_POINT": self.certificates, "CA_BUNDLE_CONFIGMAP_NAME": "certificates"},
        )

    def folder_of_certificates(self, hashed):
        folder = os.path.join(self.dir, "hashed" if hashed else "plain")
        os.mkdir(folder)
        shutil.copy(f"{self.certificates}/public.crt", folder)
        if hashed:
            subprocess.run(["openssl", "rehash", folder], check=True)
        return folder

    def test_a_folder_of_certificates(self):
        url = f"https://127.0.0.1:{self.serve(secure=True).server_address[1]}/f"
        folder = self.folder_of_certificates(hashed=True)
        self.succeeds(url, {"f": self.data}, "--ca-bundle", folder)
        for name, value in (
            ("AWS_CA_BUNDLE", folder),
            ("REQUESTS_CA_BUNDLE", folder),
            ("CURL_CA_BUNDLE", folder + "/"),
            ("SSL_CERT_DIR", folder),
            ("SSL_CERT_DIR", f"{self.dir}/nothing:{folder}"),
        ):
            with self.subTest(f"{name}={value}"):
                shutil.rmtree(self.target, ignore_errors=True)
                self.succeeds(url, {"f": self.data}, env={name: value})

    def test_a_folder_without_hashes(self):
        """OpenSSL finds no certificate in it. An image may set it for all its programs: no error."""
        server = self.serve(secure=True)
        url = f"https://127.0.0.1:{server.server_address[1]}/f"
        folder = self.folder_of_certificates(hashed=False)
        for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
            with self.subTest(name):
                self.refused(
                    url,
                    1,
                    f"{folder} has no certificate under its hash: run openssl rehash on it, or name a file",
                    env={name: folder},
                )
        self.refused(url, 1, r"certificate.*--ca-bundle \(.*SSL_CERT_DIR", env={"SSL_CERT_DIR": folder})
        self.assertEqual(server.requests, [])
        self.succeeds(url, {"f": self.data}, env={"SSL_CERT_DIR": folder, "CURL_CA_BUNDLE": f"{folder}/public.crt"})

    def test_a_redirect_to_where_anybody_can_listen(self):
        secure, plain = self.serve(secure=True), self.serve()
        secure.faulty = lambda request: True
        secure.faults = [lambda request: request.plain(302, b"", ("Location", f"{plain.url}/f?signature=1"))]
        self.refused(
            f"https://127.0.0.1:{secure.server_address[1]}/f",
            1,
            f"leads from https to {plain.url}/f, .*name that URL itself",
            "--ca-bundle",
            f"{self.certificates}/public.crt",
        )
        self.assertEqual(plain.requests, [])

    def test_small_records_in_one_burst(self):
        """All TLS records, one for each piece of a chunk, arrive at once; then the server sends no more."""
        self.data = some_bytes(30_000)
        server = self.serve(secure=True)

        def burst(request):
            request.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
            request.wfile.write(b"HTTP/1.1 200 OK\r\n")
            request.wfile.write(b"Transfer-Encoding: chunked\r\n\r\n")
            for begin in range(0, len(self.data), 300):
                for piece in (b"12c\r\n", self.data[begin : begin + 300], b"\r\n"):
                    request.wfile.write(piece)
            request.wfile.write(b"0\r\n\r\n")
            request.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 0)
            return True

        server.faults = [burst]
        end = self.succeeds(
            f"https://127.0.0.1:{server.server_address[1]}/f",
            {"f": self.data},
            "--ca-bundle",
            f"{self.certificates}/public.crt",
        )
        self.assertEqual((end["retries"], server.faults), (0, []))


class Http2(NetworkCase):
    data = some_bytes(40 * MIB + 1)

    def serve_two(self, *words):
        """Returns (process of the server, URL of the file, its certificate)."""
        folder = os.path.join(self.dir, "files")
        os.makedirs(folder)
        certificates = os.path.join(self.dir, "certificates")
        ca = certificate.make(certificates)
        with open(os.path.join(folder, "f"), "wb") as file:
            file.write(self.data)
        server = subprocess.Popen(
            [sys.executable, os.path.join(HERE, "http2_server.py"), certificates, folder, *words],
            stdout=subprocess.PIPE,
            text=True,
            env=clean_environment(),
        )

        def end():
            server.kill()
            server.wait()
            server.stdout.close()

        self.addCleanup(end)
        said = server.stdout.readline()
        self.assertTrue(said.startswith("listening on "), said)
        return server, f"https://127.0.0.1:{said.split()[-1]}/f", ca

    def test_it_is_spoken(self):
        server, url, ca = self.serve_two()
        self.succeeds(url, {"f": self.data}, "--http2", "--ca-bundle", ca)
        self.assertEqual(server.stdout.readline(), "2\n")
        shutil.rmtree(self.target)
        self.succeeds(url, {"f": self.data}, "--ca-bundle", ca)
        server.kill()
        self.assertEqual(set(server.stdout.read().split()), {"1.1", "2"})

    def test_what_is_cut_goes_on(self):
        """A stream that ends too early, and connections that the server closes."""
        server, url, ca = self.serve_two("cut")
        end = self.succeeds(url, {"f": self.data}, "--http2", "--ca-bundle", ca)
        self.assertGreaterEqual(end["retries"], 3)
        self.assertEqual(end["received"], len(self.data), "each goes on where it was cut")
        server.kill()
        self.assertEqual(set(server.stdout.read().split()), {"2"})


if __name__ == "__main__":
    main()
