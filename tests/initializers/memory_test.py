# SPDX-License-Identifier: Apache-2.0
"""muster-initializer needs at most 64 MiB of memory, however large an object is and however many there are."""

import io
import os
import random
import re
import subprocess
import sys
import tarfile
import unittest
import zipfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from initializer_case import BINARY, MIB, InitializerCase, clean_environment, main

import certificate
from class_runner import not_emulated
from hub_server import HubServer
from sanitizer import sanitizer_of
from web_server import WebServer

MOST = 64 * MIB
MANY = 20_000


@not_emulated("qemu's translations of the program count as its memory")
class Peak(InitializerCase):
    @classmethod
    def setUpClass(cls):
        if sanitizer_of(BINARY) is not None:
            raise unittest.SkipTest("a sanitizer's memory is its own")

    def peak(self, uri, *flags, env=None):
        """Peak memory in bytes, as counted by the kernel, of a successful run; and the last event."""
        told = os.path.join(self.dir, "peak")
        of_its_guard = f"read -r _ _ _ parent _ < /proc/$PPID/stat; cat /proc/$parent/status > {told}"
        code, end = self.fetch(uri, "--then", of_its_guard, *flags, env=env)
        self.assertEqual((code, end.get("event")), (0, "done"), self.said)
        with open(told) as file:
            status = file.read()
        self.assertIn("Name:\tmuster-initiali", status)
        return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) << 10, end

    def of_a_web_server(self, tls=None):
        server = WebServer()
        self.addCleanup(server.close)
        if tls:
            server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        server.files["/large"] = random.Random(1).randbytes(MIB) * 768
        return server

    def check_large(self, path, end):
        self.assertEqual((end["received"], end["bytes"]), (768 * MIB, 768 * MIB))
        self.assertEqual(os.path.getsize(os.path.join(self.target, path)), 768 * MIB)

    def test_one_large_object(self):
        server = self.of_a_web_server()
        peak, end = self.peak(f"{server.url}/large")
        self.check_large("large", end)
        self.assertEqual(end["unverified_files"], 0)
        self.assertLessEqual(peak, MOST)

    def test_one_large_object_over_tls(self):
        folder = os.path.join(self.dir, "certificates")
        ca = certificate.make(folder)
        server = self.of_a_web_server(certificate.server_context(folder))
        peak, end = self.peak(f"https://127.0.0.1:{server.server_address[1]}/large", "--ca-bundle", ca)
        self.check_large("large", end)
        self.assertLessEqual(peak, MOST)

    def test_one_large_object_that_is_cut_again_and_again(self):
        server = self.of_a_web_server()

        def cut(request):
            request.cut = 3 * MIB

        server.faults = [cut] * 60
        peak, end = self.peak(f"{server.url}/large")
        self.assertEqual((end["bytes_done"], server.faults), (768 * MIB, []))
        self.assertLessEqual(peak, MOST)

    def tar(self, data, *packer):
        info = tarfile.TarInfo("data")
        info.size = len(data)
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            archive.addfile(info, io.BytesIO(data))
        return subprocess.run(packer, input=packed.getvalue(), stdout=subprocess.PIPE, check=True).stdout

    def archives(self, name, packed, size):
        """Brings and unpacks several archives in parallel."""
        hub = HubServer()
        self.addCleanup(hub.close)
        hub.add("muster/packed", {f"{n}/{name}": packed for n in range(12)})
        peak, end = self.peak("hf://models/muster/packed", "--extract", env={"HF_ENDPOINT": hub.url})
        self.assertEqual((end["unpacked_files"], end["unpacked_bytes"]), (12, 12 * size))
        self.assertLessEqual(peak, MOST)

    def test_unpacking_takes_little_memory(self):
        data = random.Random(2).randbytes(40 * MIB)
        self.archives("a.tar.gz", self.tar(data, "gzip", "-1"), len(data))

    def test_archives_of_a_large_window(self):
        """The largest window that zstd accepts by default."""
        data = random.Random(2).randbytes(40 * MIB)
        self.archives("a.tar.zst", self.tar(data, "zstd", "-q", "-1", "--zstd=wlog=23"), len(data))

    def test_zips_of_a_large_window(self):
        data = random.Random(2).randbytes(16 << 10) * 2560
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_LZMA) as archive:
            archive.writestr("data", data)
        self.archives("a.zip", packed.getvalue(), len(data))

    def test_many_small_files_of_a_hub(self):
        """Also large listings: pages of the list are not kept."""
        hub = HubServer()
        self.addCleanup(hub.close)
        files = {f"data/{n % 100:02}/{n:05}.json": b"%d" % n for n in range(MANY)}
        repository = hub.add("muster/many", files)
        repository.private = True  # files are sent without a redirect
        hub.tokens.add("hf_reader")
        repository.readers.add("hf_reader")
        peak, end = self.peak("hf://models/muster/many", env={"HF_ENDPOINT": hub.url, "HF_TOKEN": "hf_reader"})
        self.assertEqual((end["files"], end["unverified_files"]), (MANY, 0))
        self.assertEqual(self.target_files(), files)
        self.assertLessEqual(peak, MOST)

    def test_many_small_files_of_a_folder(self):
        source = os.path.join(self.dir, "source")
        files = {f"{n % 100:02}/{n:05}": b"%d" % n for n in range(MANY)}
        for folder in {os.path.dirname(path) for path in files}:
            os.makedirs(os.path.join(source, folder))
        for path, data in files.items():
            with open(os.path.join(source, path), "wb") as file:
                file.write(data)
        peak, end = self.peak(f"file://{source}")
        self.assertEqual(end["files"], MANY)
        self.assertEqual(self.target_files(), files)
        self.assertLessEqual(peak, MOST)
        done = subprocess.run(
            [BINARY, "verify", self.target], capture_output=True, text=True, env=clean_environment(), timeout=300
        )
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    main()
