# SPDX-License-Identifier: Apache-2.0
"""Keys of muster-initializer from a program (credential_process), with a strict server (MinIO's STS)."""

import os
import signal
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from initializer_case import DEADLINE, UNREACHABLE, main

from credentials_test import EXPIRED, FILES, Identities  # skips the test where its packages are missing


class Process(Identities):
    """credential_process, as the AWS CLI and SDKs run it."""

    def test_its_keys(self):
        self.works(**self.process(self.program()))
        self.assertEqual(self.machine.count("/v1/credentials"), 1)

    def test_keys_for_good(self):
        """Keys without an expiration; the program is found on PATH."""
        command, _ = self.kept()
        self.works(**self.process(command))

    def test_a_role_by_its_keys(self):
        variables = self.process(self.program(), "base")
        with open(variables["AWS_CONFIG_FILE"], "a") as file:
            file.write("[profile reader]\nrole_arn = arn:aws:iam::123456789012:role/reader\nsource_profile = base\n")
        self.works(AWS_PROFILE="reader", AWS_ENDPOINT_URL_STS=self.machine.url, **variables)
        self.assertEqual(self.machine.requests, [("GET", "/v1/credentials"), ("POST", "/")])

    def test_keys_that_are_about_to_expire(self):
        """The program is run again before each use."""
        self.machine.lifetime = 30
        self.works(**self.process(self.program()))
        self.assertGreater(self.machine.count("/v1/credentials"), 1)

    def test_what_goes_wrong(self):
        secret = self.keys["SecretAccessKey"]
        for command, code, words in (
            (
                f"sh -c 'echo {secret}; echo no ticket >&2; echo run kinit >&2; exit 7'",
                1,
                "it ended with exit code 7: 'no ticket / run kinit'",
            ),
            ("sh -c 'kill -9 $$'", 1, "it ended with exit code 137"),
            ("/no/such/program", 1, "/no/such/program: No such file or directory; give the program's absolute path"),
            ("~/program", 1, "~/program: No such file or directory; .* no shell runs it"),
            ("/etc/passwd", 1, "/etc/passwd: Permission denied; give the program.s absolute path"),
            (f"echo {secret}", 1, "the answer is not JSON"),
            ("true", 1, "the answer is not JSON"),
            (
                f"""echo '{{"Version": 2, "SecretAccessKey": "{secret}"}}'""",
                1,
                "the Version of the answer is '2', and only 1 is known",
            ),
            (f"""echo '{{"Version": 1, "SecretAccessKey": "{secret}"}}'""", 1, "the answer has no AccessKeyId"),
            (f"sh -c 'while :; do echo {secret}; done'", 1, "it wrote more than 65536 bytes to stdout"),
            (f"echo '{secret}", 78, "a quote that is not closed"),
        ):
            with self.subTest(words):
                self.fails(
                    code,
                    f"credential_process in profile default of {self.dir}/config: .*{words}",
                    **self.process(command),
                )

    def test_old_keys_again(self):
        """The program prints the expired keys again: fails at once, since another try would not help."""
        command, _ = self.kept()
        self.proxy.faulty = lambda exchange: True
        self.proxy.always(lambda exchange: exchange.answer(400, EXPIRED, ("Content-Type", "application/xml")))
        self.refused(
            "s3://data/",
            1,
            f"credential_process in profile default of {self.dir}/config: it gave the same keys again, which "
            "the store has refused as expired",
            env=self.around(**self.process(command)),
        )
        self.assertEqual(len(self.proxy.exchanges), 1)

    def test_new_keys_after_old_ones(self):
        command, keep = self.kept()

        def once(exchange):
            keep(self.later)
            exchange.answer(400, EXPIRED, ("Content-Type", "application/xml"))

        self.proxy.faulty = lambda exchange: True
        self.proxy.faults = [once]
        self.succeeds("s3://data/", FILES, env=self.around(**self.process(command)))
        tokens = [headers.get("x-amz-security-token") for _, _, headers in self.proxy.exchanges]
        self.assertEqual((tokens[0], set(tokens[1:])), (self.keys["Token"], {self.later["Token"]}))

    def hanging(self):
        """A program that never ends; and a pipe that it and its children hold open, which shows their end."""
        pipe = os.path.join(self.dir, "pipe")
        os.mkfifo(pipe)
        return pipe, self.around(**self.process(f"sh -c 'exec 3>{pipe}; echo waiting >&2; sleep 1000000 & wait'"))

    def test_one_that_hangs(self):
        pipe, env = self.hanging()
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        self.refused(
            "s3://data/",
            UNREACHABLE,
            "credential_process .*: it did not end within 1 s, and was killed(: 'waiting')?$",
            "--patience",
            "1",
            env=env,
        )
        self.assertEqual(self.proxy.exchanges, [])
        os.set_blocking(reader, True)
        self.assertEqual(os.read(reader, 1), b"", "nobody holds the other end")

    def test_it_ends_with_us(self):
        for number in (signal.SIGTERM, signal.SIGKILL):
            with self.subTest(number):
                pipe, env = self.hanging()
                process = self.start("s3://data/", env=env)
                with open(pipe) as reader:
                    process.send_signal(number)
                    self.assertEqual(reader.read(), "", "it is killed")
                self.assertEqual(process.wait(DEADLINE), 143 if number == signal.SIGTERM else -number)
                os.unlink(pipe)


if __name__ == "__main__":
    main()
