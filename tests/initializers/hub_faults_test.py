# SPDX-License-Identifier: Apache-2.0
"""muster-initializer on the hub, behind a proxy that damages answers of the hub and of its CDN."""

import os
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hub_case import NAME, URI, HubCase, HubProxy
from initializer_case import MIB, main, some_bytes

from store_faults import (
    KilledAnywhere,
    LatencyFaults,
    PatienceFaults,
    PermanentFaults,
    Store,
    TransientFaults,
    answering,
)


class FaultCase(HubCase):
    """A small and a large file in git, a large file in LFS."""

    large = ("model.safetensors",)
    uri = URI
    busy = staticmethod(answering(503, b"", ("Content-Type", "text/plain")))
    is_data = staticmethod(lambda exchange: exchange.path.startswith(("/lfs/", "/api/resolve-cache/")))
    is_list = staticmethod(lambda exchange: "/tree/" in exchange.path)

    def setUp(self):
        super().setUp()
        self.objects = {
            "config.json": some_bytes(8 << 10, 1),
            "tokenizer.json": some_bytes(700 << 10, 2),
            "model.safetensors": some_bytes(20 * MIB + 5, 3),
        }
        self.repository = self.hub.add(NAME, self.objects)
        self.proxy = HubProxy(self.hub)
        self.addCleanup(self.proxy.close)

    def keys(self, **more):
        return super().keys(HF_ENDPOINT=self.proxy.url, **more)

    def put(self, name, data):
        main = self.repository.commits[self.repository.branches["main"]]
        self.repository.commit("main", {**main, name: data})


class Transient(FaultCase, TransientFaults):
    def test_overwritten_between_a_cut_and_its_resume(self):
        """The run stays at its commit, which the hub still has."""
        for name in self.large:

            def cut(exchange):
                exchange.cut = len(exchange.body) // 2  # however short a range it is
                self.put(name, some_bytes(len(self.objects[name]) - 5, 9))

            shutil.rmtree(self.target, ignore_errors=True)
            self.proxy.faulty = self.is_data  # else the hub's answers about the commit would be cut
            self.proxy.faults = [cut]
            self.succeeds(f"{self.uri}/{name}", {name: self.objects[name]})
            self.assertEqual(self.proxy.faults, [])


class Latency(FaultCase, LatencyFaults):
    """For this store, because its server runs on every machine."""


class Permanent(FaultCase, PermanentFaults):
    busy_words = "503"


class Patience(FaultCase, PatienceFaults):
    pass


class Killed(FaultCase, KilledAnywhere):
    points = 20


class Shards(FaultCase, Store):
    """More large files in parallel than most test machines have CPUs: the receiving thread hashes each."""

    def setUp(self):
        super().setUp()
        self.objects = {f"model-{n}-of-4.safetensors": some_bytes(24 * MIB + 1000 * n, n) for n in range(1, 5)}
        self.repository = self.hub.add(NAME, self.objects)
        self.proxy.faulty = self.is_data

    def test_cuts_and_flipped_bits(self):
        flipped = []

        def cut(exchange):
            exchange.cut = 700_001

        def flip(exchange):
            if not flipped:
                flipped.append(exchange.flip(exchange.range[0] + 100))

        def nothing(exchange):
            pass

        self.proxy.faults = [cut, nothing, cut, nothing, nothing, cut, flip, nothing, nothing, cut, cut]
        end = self.succeeds(self.uri, self.objects)
        self.assertEqual((self.proxy.faults, flipped, end["unverified_files"]), ([], [True], 0))

    def test_goes_on_after_it_was_killed(self):
        total = sum(map(len, self.objects.values()))
        for part in (0.1, 0.3, 0.3):
            self.kill_after(int(part * total), self.uri)
            self.check_nothing()
        self.succeeds(self.uri, self.objects)


if __name__ == "__main__":
    main()
