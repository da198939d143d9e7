# SPDX-License-Identifier: Apache-2.0
"""`muster wait`: takes the place of busybox loops in init containers, and prints each reason once."""

import os
import signal
import socket
import subprocess

from muster_case import DEADLINE, MUSTER, Agent, MusterCase, clean, main

from credentials_test import Authority

TIMED_OUT = 200
BAD_CONFIGURATION = 78
USAGE = 64


class WaitCase(MusterCase):
    def wait_for(self, *arguments, prefix=(), env=None):
        """Starts `muster wait arguments`; its output is a growing file."""
        path = os.path.join(self.dir, f"wait-{len(self.agents)}.txt")
        with open(path, "w") as output:
            process = subprocess.Popen(
                [*prefix, MUSTER, "wait", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=clean(**(env or {})),
                cwd=self.dir,
            )
        agent = Agent(process, path)
        self.agents.append(agent)
        return agent

    def bound(self):
        """A bound port, which refuses until the test calls listen()."""
        holder = socket.socket()
        self.addCleanup(holder.close)
        holder.bind(("127.0.0.1", 0))
        return holder, f"127.0.0.1:{holder.getsockname()[1]}"

    def lines(self, agent, word):
        return [line for line in agent.output().splitlines() if word in line]


class Ports(WaitCase):
    def test_a_port_that_is_open(self):
        holder, address = self.bound()
        holder.listen()
        agent = self.wait_for(address)
        self.assertEqual(agent.wait(), 0)
        self.assertRegex(agent.output(), rf"^muster wait: ready: tcp {address}, after [^\n]*\n$")

    def test_a_port_that_opens_later(self):
        holder, address = self.bound()
        agent = self.wait_for(address)
        self.wait_for_output(agent, f"waiting for tcp {address}: nothing listens there yet \\(up to 300 s\\)")
        holder.listen()
        self.assertEqual(agent.wait(), 0)
        self.assertEqual(len(agent.output().splitlines()), 2, agent.output())

    def test_several_targets_are_waited_for(self):
        (one, first), (two, second) = self.bound(), self.bound()
        two.listen()
        agent = self.wait_for(first, second, "localhost", second)
        for said in (f"waiting for tcp {first}", f"ready: tcp {second}", "ready: name localhost"):
            self.wait_for_output(agent, said)
        self.assertIsNone(agent.process.poll())
        one.listen()
        self.assertEqual(agent.wait(), 0)
        self.assertEqual(len(self.lines(agent, "ready")), 3, agent.output())

    def test_three_hundred(self):
        with socket.socket() as holder:
            holder.bind(("0.0.0.0", 0))
            holder.listen(512)
            port = holder.getsockname()[1]
            agent = self.wait_for(*[f"127.0.{i // 250}.{i % 250 + 1}:{port}" for i in range(300)])
            self.assertEqual(agent.wait(), 0, agent.output())
        self.assertEqual(len(self.lines(agent, "ready")), 300)

    def test_the_timeout_names_each(self):
        (_one, first), (_two, second), (three, third) = self.bound(), self.bound(), self.bound()
        three.listen()
        agent = self.wait_for("--timeout", "1500ms", first, second, third)
        self.assertEqual(agent.wait(), TIMED_OUT)
        for address in (first, second):
            self.assertEqual(len(self.lines(agent, f"waiting for tcp {address}")), 1, agent.output())  # and many tries
            self.assertIn(f"gave up after 1.5 s on tcp {address}: Connection refused\n", agent.output())
        self.assertEqual(len(self.lines(agent, third)), 1)

    def test_no_time_is_one_try(self):
        (_one, first), (two, second) = self.bound(), self.bound()
        two.listen()
        agent = self.wait_for("--timeout=0", first, second)
        self.assertEqual(agent.wait(), TIMED_OUT)
        self.assertIn(f"ready: tcp {second}", agent.output())
        self.assertIn(f"gave up after one try on tcp {first}: Connection refused\n", agent.output())
        self.assertEqual(len(agent.output().splitlines()), 2, agent.output())
        self.assertEqual(self.wait_for("--timeout", "0s", second).wait(), 0)

    def test_the_timeout_ends_an_attempt(self):
        """An address that never answers: a listener whose queue is full."""
        holder, address = self.bound()
        holder.listen(0)
        fillers = []
        self.addCleanup(lambda: [filler.close() for filler in fillers])
        for _ in range(4):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(holder.getsockname())
            fillers.append(filler)
        agent = self.wait_for("--timeout", "0.2", address)
        self.assertEqual(agent.wait(), TIMED_OUT)
        self.assertIn(f"gave up after 200 ms on tcp {address}: no answer\n", agent.output())

    def test_a_signal_ends_the_wait(self):
        _holder, address = self.bound()
        for number in (signal.SIGTERM, signal.SIGINT):
            agent = self.wait_for(address)
            self.wait_for_output(agent, "waiting for")
            agent.send(number)
            self.assertEqual(agent.wait(), 128 + number)
            self.assertIn(f"stopped by {number.name}", agent.output())

    def test_sigterm_as_the_first_process_of_a_container(self):
        """As PID 1, a signal without a handler would be lost."""
        prefix = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--"]
        if subprocess.run([*prefix, "true"], capture_output=True).returncode:
            self.skipTest("NOT TESTED: no namespaces to be had here")
        _holder, address = self.bound()
        agent = self.wait_for(address, prefix=prefix)
        self.wait_for_output(agent, "waiting for")
        with open(f"/proc/{agent.pid}/task/{agent.pid}/children") as children:
            os.kill(int(children.read()), signal.SIGTERM)
        self.assertEqual(agent.wait(), 143)

    def test_wrong_targets_are_named(self):
        for arguments, said in (
            ((), "TARGET"),
            (("",), "not a host name"),
            (("host:0",), "1 to 65535"),
            (("host:70000",), "1 to 65535"),
            (("host:http",), "1 to 65535"),
            (("http://host:80",), "not a host name"),
            (("a..b",), "not a host name"),
            (("x" * 64,), "not a host name"),
            (("[::1",), "bracket"),
            (("[host]:80",), "IPv6"),
            (("--tcp", "host"), "port"),
            (("--dns", "--tcp", "host"), "excludes"),
            (("--timeout", "soon", "host"), "duration"),
            (("--timeout", "-1", "host"), "duration"),
            (("--no-such-flag", "host"), "no-such-flag"),
            (("good:80", "bad:", "worse/"), "worse/"),
        ):
            agent = self.wait_for(*arguments)
            self.assertEqual(agent.wait(), USAGE, (arguments, agent.output()))
            self.assertIn(said, agent.output())


class Names(WaitCase):
    def own_hosts(self, *lines):
        """A mount namespace with its own hosts file and a name server that does not exist; returns (prefix, path)."""
        hosts, servers = os.path.join(self.dir, "hosts"), os.path.join(self.dir, "resolv.conf")
        with open(hosts, "w") as file:
            file.writelines(line + "\n" for line in lines)
        with open(servers, "w") as file:
            file.write("nameserver 127.0.0.1\n")
        script = f'mount --bind {hosts} /etc/hosts && mount --bind {servers} /etc/resolv.conf && exec "$@"'
        prefix = ["unshare", "--user", "--map-root-user", "--net", "--mount", "sh", "-c", script, "sh"]
        if subprocess.run([*prefix, "true"], capture_output=True).returncode:
            self.skipTest("NOT TESTED: no namespaces to be had here")
        return prefix, hosts

    def test_a_name_that_is_there(self):
        prefix, _ = self.own_hosts("192.0.2.7 master-0.train master-0")
        for target in ("master-0", "MASTER-0.train.", "localhost", "192.0.2.9", "::1", "[2001:db8::1]"):
            agent = self.wait_for(target, prefix=prefix)
            self.assertEqual(agent.wait(), 0, agent.output())

    def test_a_port_does_not_matter_to_a_name(self):
        prefix, _ = self.own_hosts("192.0.2.7 master-0")
        agent = self.wait_for("--dns", "master-0:29500", prefix=prefix)
        self.assertEqual(agent.wait(), 0, agent.output())

    def test_a_name_that_comes_later(self):
        prefix, hosts = self.own_hosts()
        agent = self.wait_for("master-0", prefix=prefix)
        self.wait_for_output(agent, "waiting for name master-0: ")
        with open(hosts, "a") as file:
            file.write("192.0.2.7 master-0\n")
        self.assertEqual(agent.wait(), 0)
        self.assertEqual(len(agent.output().splitlines()), 2, agent.output())

    def test_a_port_behind_a_name_that_never_comes(self):
        prefix, _ = self.own_hosts()
        agent = self.wait_for("--timeout", "1", "nobody.invalid:29500", "nobody.invalid", prefix=prefix)
        self.assertEqual(agent.wait(), TIMED_OUT)
        for name in ("tcp nobody.invalid:29500", "name nobody.invalid"):
            self.assertEqual(len(self.lines(agent, f"waiting for {name}:")), 1, agent.output())
            self.assertRegex(agent.output(), rf'gave up after 1 s on {name}: .*"nobody.invalid"')

    def test_each_change_of_the_reason_is_said(self):
        prefix, hosts = self.own_hosts()
        agent = self.wait_for("--tcp", "--timeout", "300", "master-0:29500", prefix=prefix)
        self.wait_for_output(agent, r'waiting for tcp master-0:29500: .*"master-0"')
        with open(hosts, "a") as file:
            file.write("127.0.0.1 master-0\n")  # the namespace's loopback is down
        self.wait_for_output(agent, r"waiting for tcp master-0:29500: 127\.0\.0\.1:29500: ")
        self.assertEqual(len(agent.output().splitlines()), 2, agent.output())
        agent.send(signal.SIGTERM)
        self.assertEqual(agent.wait(), 143)


class Coordinators(WaitCase):
    def coordinator(self, *arguments):
        server = self.with_pipes([MUSTER, "coordinator", *arguments], stderr=subprocess.DEVNULL, text=True)
        line = server.stdout.readline()
        self.assertIn("listening on", line)
        return f"127.0.0.1:{line.strip().rsplit(':', 1)[1]}"

    def test_one_that_is_there(self):
        address = self.coordinator("--listen", "127.0.0.1:0")
        agent = self.wait_for("--rendezvous", address)
        self.assertEqual(agent.wait(), 0, agent.output())
        self.assertIn(f"ready: rendezvous {address}, after", agent.output())
        self.assertEqual(self.wait_for("--rendezvous", "--timeout", "0", address).wait(), 0)

    def test_one_that_comes_later_where_another_service_was(self):
        """The port refuses, then another program closes connections, then there is the coordinator: each is printed."""
        holder, address = self.bound()
        agent = self.wait_for("--rendezvous", address)
        self.wait_for_output(agent, f"waiting for rendezvous {address}: nothing listens there yet")
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.listen()
        holder.settimeout(DEADLINE)
        guest, _ = holder.accept()
        guest.close()
        self.wait_for_output(agent, f"waiting for rendezvous {address}: (?!nothing listens)")
        holder.close()
        self.coordinator("--listen", address)
        self.assertEqual(agent.wait(), 0, agent.output())
        self.assertTrue(agent.output().splitlines()[-1].startswith(f"muster wait: ready: rendezvous {address}"))

    def test_a_silent_service_is_no_coordinator(self):
        holder, address = self.bound()
        holder.listen()
        agent = self.wait_for("--rendezvous", "--timeout", "0", address)
        self.assertEqual(agent.wait(), TIMED_OUT)
        self.assertIn("does not answer as a coordinator", agent.output())

    def test_the_port_is_the_usual_one(self):
        agent = self.wait_for("--rendezvous", "--timeout", "0", "127.99.98.97")
        self.assertEqual(agent.wait(), TIMED_OUT)
        self.assertIn("rendezvous 127.99.98.97:29400", agent.output())

    def test_the_token(self):
        token = os.path.join(self.dir, "token")
        with open(token, "w") as file:
            file.write("s3cret-of-this-test\n")
        address = self.coordinator("--listen", "127.0.0.1:0", "--token-file", token)
        stranger = self.wait_for("--rendezvous", "--timeout", "2", address)
        self.assertEqual(stranger.wait(), TIMED_OUT)
        self.assertIn("token", stranger.output())
        self.assertEqual(len(self.lines(stranger, "waiting for")), 1, stranger.output())
        self.assertEqual(self.wait_for("--rendezvous", "--token-file", token, address).wait(), 0)
        self.assertEqual(self.wait_for("--rendezvous", address, env={"MUSTER_TOKEN_FILE": token}).wait(), 0)

    def test_a_coordinator_with_tls_is_waited_for(self):
        ours = Authority(self.dir, "ours")
        cert, key = ours.issue("a")
        flags = ["--tls-cert", cert, "--tls-key", key, "--tls-ca", ours.ca]
        address = self.coordinator("--listen", "127.0.0.1:0", *flags)
        self.assertEqual(self.wait_for("--rendezvous", *flags, address).wait(), 0)
        stranger = self.wait_for("--rendezvous", "--timeout", "2", address)
        self.assertEqual(stranger.wait(), TIMED_OUT)
        self.assertRegex(stranger.output(), "(?i)tls")

    def test_files_that_are_missing(self):
        missing = os.path.join(self.dir, "no-such-file")
        agent = self.wait_for("--rendezvous", "--token-file", missing, "127.0.0.1:1")
        self.assertEqual(agent.wait(), BAD_CONFIGURATION)
        self.assertIn(missing, agent.output())
        holder, address = self.bound()
        holder.listen()
        self.assertEqual(self.wait_for(address, env={"MUSTER_TOKEN_FILE": missing}).wait(), 0)


if __name__ == "__main__":
    main()
