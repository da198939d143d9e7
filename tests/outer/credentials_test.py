# SPDX-License-Identifier: Apache-2.0
"""Mutual TLS and the token on the command line: a node with them runs, a node without them is told why it cannot."""

import os
import re
import subprocess

from muster_case import DEADLINE, MUSTER, main
from nodes_case import Nodes

BAD_CONFIGURATION = 78


class Authority:
    """A certificate authority for this test, made with the openssl command."""

    def __init__(self, folder, name):
        self.folder = folder
        self.name = name
        self.ca = self._path("ca.pem")
        self._openssl(
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "2",
            "-subj",
            f"/CN={name}",
            "-keyout",
            self._path("ca.key"),
            "-out",
            self.ca,
        )

    def issue(self, who, names="IP:127.0.0.1,DNS:localhost"):
        """Certificate and key, signed by this authority."""
        cert, key, request, extensions = (self._path(f"{who}.{kind}") for kind in ("pem", "key", "csr", "ext"))
        with open(extensions, "w") as file:
            file.write(f"subjectAltName={names}\n")
        self._openssl(
            "req",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-subj",
            f"/CN={who}",
            "-keyout",
            key,
            "-out",
            request,
        )
        self._openssl(
            "x509",
            "-req",
            "-in",
            request,
            "-CA",
            self.ca,
            "-CAkey",
            self._path("ca.key"),
            "-CAcreateserial",
            "-days",
            "2",
            "-extfile",
            extensions,
            "-out",
            cert,
        )
        return cert, key

    def conf(self, who, names="IP:127.0.0.1,DNS:localhost"):
        cert, key = self.issue(who, names)
        return f"tls_cert={cert},tls_key={key},tls_ca={self.ca}"

    def _path(self, file):
        return os.path.join(self.folder, f"{self.name}-{file}")

    @staticmethod
    def _openssl(*arguments):
        subprocess.run(["openssl", *arguments], check=True, capture_output=True)


class Tls(Nodes):
    def setUp(self):
        super().setUp()
        self.ours = Authority(self.dir, "ours")

    def secured(self, endpoint, conf, *arguments, nnodes="2"):
        return self.node(endpoint, nnodes, "--rdzv-conf", conf, *arguments)

    def succeed(self, workers, agents):
        for worker in workers:
            worker.tell("exit 0")
        self.assertEqual([agent.wait() for agent in agents], [0] * len(agents))

    def test_a_job_runs_and_restarts(self):
        endpoint = self.endpoint()
        agents = [self.secured(endpoint, self.ours.conf(name), "--max-restarts", "1") for name in ("a", "b")]
        self.workers(2)[1].tell("exit 1")
        again = self.workers(2)
        self.assertEqual({worker.restarts for worker in again}, {1})
        self.succeed(again, agents)

    def test_a_stand_in_is_reached_by_tls_too(self):
        endpoint = self.endpoint()
        host, *others = (
            self.secured(
                endpoint, self.ours.conf(f"n{i}") + f",last_call_timeout=600,is_host={int(i == 0)}", nnodes="1:3"
            )
            for i in range(3)
        )
        self.workers(3)
        host.process.kill()
        self.succeed(self.round_of(2, at_least=1), others)

    def test_strangers_are_refused_and_told_why(self):
        endpoint = self.endpoint()
        first = self.secured(endpoint, self.ours.conf("a"))
        self.wait_for_port(endpoint)
        theirs = Authority(self.dir, "theirs")
        cert, key = theirs.issue("c")
        strangers = {
            "without a certificate": "is_host=0",
            "of another authority": "is_host=0," + theirs.conf("b"),
            "who trusts us, with another authority's certificate": (
                f"is_host=0,tls_cert={cert},tls_key={key},tls_ca={self.ours.ca}"
            ),
        }
        for who, conf in strangers.items():
            with self.subTest(who=who):
                stranger = self.secured(endpoint, conf + ",join_timeout=3")
                code = stranger.wait()
                self.assertIn(code, (BAD_CONFIGURATION, 200), stranger.output())
                self.assertRegex(stranger.output(), r"(?i)tls|certificate|handshake|credentials", who)
                self.assertIn(endpoint, stranger.output())
        self.assertTrue(self.no_worker_waits())
        second = self.secured(endpoint, self.ours.conf("d"))
        self.succeed(self.workers(2), [first, second])

    def test_a_secured_node_does_not_talk_to_an_open_coordinator(self):
        endpoint = self.endpoint()
        first = self.node(endpoint, "2")
        self.wait_for_port(endpoint)
        careful = self.secured(endpoint, "is_host=0,join_timeout=3," + self.ours.conf("a"))
        self.assertIn(careful.wait(), (BAD_CONFIGURATION, 200))
        self.assertRegex(careful.output(), r"(?i)tls|certificate|handshake|ssl")
        second = self.node(endpoint, "2")
        self.succeed(self.workers(2), [first, second])

    def test_a_certificate_for_another_name_is_not_believed(self):
        endpoint = self.endpoint()
        first = self.secured(endpoint, self.ours.conf("elsewhere", "DNS:elsewhere.example"))
        self.wait_for_port(endpoint)
        second = self.secured(endpoint, "is_host=0,join_timeout=3," + self.ours.conf("b"))
        self.assertIn(second.wait(), (BAD_CONFIGURATION, 200))
        self.assertRegex(second.output(), r"(?i)tls|certificate|handshake|hostname|ssl")
        self.assertTrue(self.no_worker_waits())
        first.process.kill()

    def test_wrong_files_are_named_at_once(self):
        cert, key = self.ours.issue("a")
        _, other_key = self.ours.issue("b")
        text = os.path.join(self.dir, "text")
        with open(text, "w") as file:
            file.write("not a certificate\n")
        missing = os.path.join(self.dir, "no-such-file")
        for conf, said in (
            (f"tls_cert={missing},tls_key={key},tls_ca={self.ours.ca}", re.escape(missing)),
            (f"tls_cert={cert},tls_key={missing},tls_ca={self.ours.ca}", re.escape(missing)),
            (f"tls_cert={cert},tls_key={key},tls_ca={missing}", re.escape(missing)),
            (f"tls_cert={cert},tls_key={key}", "missing: tls_ca"),
            (f"tls_cert={text},tls_key={key},tls_ca={self.ours.ca}", "tls_cert is not a certificate"),
            (f"tls_cert={cert},tls_key={other_key},tls_ca={self.ours.ca}", "not the key of"),
            (f"token_file={missing}", re.escape(missing)),
        ):
            agent = self.secured(self.endpoint(), conf)
            self.assertEqual(agent.wait(), BAD_CONFIGURATION, conf)
            self.assertRegex(agent.output(), said)

    def test_missing_files_from_the_environment_are_named_too(self):
        missing = os.path.join(self.dir, "no-such-file")
        for name, value in (("MUSTER_TOKEN_FILE", missing), ("MUSTER_TLS_CERT", missing)):
            agent = self.node(self.endpoint(), "2", env={name: value})
            self.assertEqual(agent.wait(), BAD_CONFIGURATION)
            self.assertRegex(agent.output(), f"{re.escape(missing)}|missing: tls_key tls_ca")

    def test_status_needs_the_certificate(self):
        endpoint = self.endpoint()
        agents = [self.secured(endpoint, self.ours.conf(name)) for name in ("a", "b")]
        workers = self.workers(2)
        cert, key = self.ours.issue("reader")
        with_it = subprocess.run(
            [MUSTER, "status", endpoint, "--json", "--tls-cert", cert, "--tls-key", key, "--tls-ca", self.ours.ca],
            capture_output=True,
            text=True,
            timeout=DEADLINE,
        )
        self.assertIn('"running"', with_it.stdout)
        without = subprocess.run(
            [MUSTER, "status", endpoint, "--timeout", "5"], capture_output=True, text=True, timeout=DEADLINE
        )
        self.assertNotEqual(without.returncode, 0)
        self.assertNotIn("running", without.stdout)
        self.succeed(workers, agents)

    def test_serving_without_any_is_said_once(self):
        endpoint = f"0.0.0.0:{self.free_port()}"
        secured = "is_host=1,join_timeout=1"
        said = "without token or TLS"
        bare = self.secured(endpoint, secured, "--local-addr", "192.0.2.1")
        self.assertEqual(bare.wait(), 200)
        careful = self.secured(endpoint, secured + "," + self.ours.conf("a"), "--local-addr", "192.0.2.1")
        self.assertEqual(careful.wait(), 200)
        self.assertEqual((bare.output().count(said), careful.output().count(said)), (1, 0), bare.output())


if __name__ == "__main__":
    main()
