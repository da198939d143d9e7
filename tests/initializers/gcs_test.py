# SPDX-License-Identifier: Apache-2.0
"""muster-initializer against a Google Cloud Storage server (fake-gcs-server), filled by Google's own client, directly
and behind a proxy that damages answers."""

import gzip
import os
import shutil
import sys
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from initializer_case import MIB, SKIPPED, UNREACHABLE, InitializerCase, clean_environment, main, needs

needs("gcs-client", "run build-support/setup-venv gcs-client", "google_crc32c")

from google.auth.credentials import AnonymousCredentials
from google.cloud import storage

import gcs_server
from gcs_server import is_list
from store_faults import LOGIN_PAGE, KilledAnywhere, PermanentFaults, TransientFaults, answering, setting, some_bytes

if not gcs_server.binary():
    print("SKIPPED: run build-support/setup-go-server fake-gcs-server (needs Go)", file=sys.stderr)
    sys.exit(SKIPPED)

JSON = ("Content-Type", "application/json")
BUSY = b'{"error":{"code":503,"message":"Backend busy","errors":[{"reason":"backendError","message":"Backend busy"}]}}'
TOO_FAST = b'{"error":{"code":429,"message":"Too fast","errors":[{"reason":"rateLimitExceeded","message":"Too fast"}]}}'


class GcsCase(InitializerCase):
    flags = ("--patience", "20")

    @classmethod
    def setUpClass(cls):
        cls.server = gcs_server.FakeGcs()
        cls.addClassCleanup(cls.server.close)
        cls.client = storage.Client(
            project="muster", credentials=AnonymousCredentials(), client_options={"api_endpoint": cls.server.url}
        )
        cls.proxy = gcs_server.GcsProxy(cls.server.host, cls.server.port)
        cls.addClassCleanup(cls.proxy.close)

    def setUp(self):
        super().setUp()
        self.proxy.reset()
        self.bucket = self.client.create_bucket("muster-bucket")
        self.addCleanup(self.server.clear)

    def environment(self):
        return clean_environment(STORAGE_EMULATOR_HOST=self.proxy.url, HOME=self.dir)

    def put(self, name, data, encoding=None):
        blob = self.bucket.blob(name)
        blob.content_encoding = encoding
        blob.upload_from_string(data, content_type="application/octet-stream")
        return blob.generation

    def paths(self):
        return [path for _, path, _ in self.proxy.exchanges]

    uri = "gs://muster-bucket"


class Content(GcsCase):
    """Nothing goes wrong."""

    def test_siblings_stay_where_they_are(self):
        for name, data in {"a/b/1": b"one", "a/b/c/2": b"two", "a/bc/3": b"no", "a/b.txt": b"no"}.items():
            self.put(name, data)
        for uri in (f"{self.uri}/a/b", f"{self.uri}/a/b/"):
            shutil.rmtree(self.target, ignore_errors=True)
            end = self.succeeds(uri, {"1": b"one", "c/2": b"two"})
            self.assertEqual(end["unverified_files"], 0)

    def test_one_object(self):
        data = some_bytes(20 * MIB + 7)
        self.put("models/weights.bin", data)
        self.put("models/weights.bin/below", b"no")
        self.put("models/weights.bin.old", b"no")
        end = self.succeeds(f"{self.uri}/models/weights.bin", {"weights.bin": data})
        self.assertEqual((end["unverified_files"], end["retries"]), (0, 0))
        self.assertEqual(self.manifest()["files"][0]["hash"].split(":")[0], "crc32c")
        end = self.succeeds(f"{self.uri}/models/weights.bin", {"weights.bin": data})
        self.assertEqual((end["unchanged"], end["received"]), (True, 0))

    def test_a_whole_bucket(self):
        self.put("1", b"one")
        self.put("f/2", b"two")
        self.succeeds(self.uri, {"1": b"one", "f/2": b"two"})

    def test_empty_objects_and_folder_markers(self):
        for name in ("d/", "d/empty", "d/sub/"):
            self.put(name, b"")
        self.put("d/data", b"x")
        self.succeeds(f"{self.uri}/d/", {"empty": b"", "data": b"x"})
        self.assertTrue(os.path.isdir(os.path.join(self.target, "sub")))

    def test_odd_names(self):
        names = [
            "with space",
            "plus+and&amp;",
            "ünïcode/日本",
            "per%20cent%",
            "quote'\"",
            "a=b?c#d",
            "~tilde",
            "a(b)*c!",
            "x" * 200,
            "semi;colon,comma",
            "[bracket]",
            "@at$",
            "back\\slash",
            "o/b/o",
            "alt=media",
        ]
        for name in names:
            self.put(f"odd/{name}", name.encode())
        end = self.succeeds(f"{self.uri}/odd/", {name: name.encode() for name in names})
        self.assertEqual(end["unverified_files"], 0)
        self.assertTrue(
            any("/o/odd%2F%C3%BCn%C3%AFcode%2F%E6%97%A5%E6%9C%AC?" in path for path in self.paths()), self.paths()
        )
        shutil.rmtree(self.target)
        self.succeeds(f"{self.uri}/odd/per%20cent%", {"per%20cent%": b"per%20cent%"})

    def test_names_that_leave_the_target(self):
        for name in ("odd/../../escape", "odd//twice", "odd/./dot", "odd/.muster/manifest.json"):
            self.put(name, b"x")
            code, end = self.fetch(f"{self.uri}/odd/")
            self.assertNotEqual(code, 0, self.said)
            self.assertIn(name, end["reason"])
            self.assertEqual(os.listdir(self.dir), ["target"])
            self.check_nothing()
            self.bucket.blob(name).delete()

    def test_a_folder_with_bytes(self):
        self.put("d/a", b"a")
        self.put("d/sub/", b"bytes")
        code, end = self.fetch(f"{self.uri}/d/")
        self.assertNotEqual(code, 0, self.said)
        self.assertIn(
            "d/sub/: a '/' at its end makes it a folder, but it has 5 bytes; leave it out with --ignore", end["reason"]
        )
        self.check_nothing()
        self.succeeds(f"{self.uri}/d/", {"a": b"a"}, "--ignore", "sub/")

    def test_names_that_collide(self):
        self.put("c/a", b"file")
        self.put("c/a/b", b"below it")
        code, end = self.fetch(f"{self.uri}/c/")
        self.assertNotEqual(code, 0)
        self.assertIn("one is a file where the other needs a folder", end["reason"])

    def test_markers_that_are_no_folders(self):
        self.put("m/data", b"x")
        for marker, words in (
            ("m/x//", "has an empty element"),
            ("m/data/", "one is a file where the other needs a folder"),
        ):
            self.put(marker, b"")
            code, end = self.fetch(f"{self.uri}/m/")
            self.assertEqual((code, self.target_files()), (78 if marker == "m/x//" else 1, {}), self.said)
            self.assertRegex(end["reason"], f"{marker[2:]}.*{words}.*--ignore")
            self.assertFalse(os.path.exists(os.path.join(self.target, ".muster", "next.json")))
            self.bucket.blob(marker).delete()
        self.succeeds(f"{self.uri}/m/", {"data": b"x"})

    def test_a_folder_of_many_files_is_fetched(self):
        expected = {f"{n % 7}/{n}": b"%d" % n for n in range(1200)}
        threads = [
            threading.Thread(
                target=lambda part: [self.put(f"d/{key}", expected[key]) for key in part],
                args=(list(expected)[start::4],),
            )
            for start in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.succeeds(f"{self.uri}/d", expected)
        self.assertEqual(self.proxy.count("GET", "maxResults=1000"), 2)
        gets = self.proxy.count("GET")
        end = self.succeeds(f"{self.uri}/d", expected)
        self.assertEqual(
            (end["unchanged"], self.proxy.count("GET") - gets), (True, 3), "the look for an object, and the list"
        )

    def test_a_list_that_changes_between_its_pages(self):
        expected = {f"{n:04}": b"%d" % n for n in range(1003)}
        for name, data in expected.items():
            self.put(f"d/{name}", data)

        def change(_):
            self.put("d/0001", b"another content")
            self.put("d/1003", b"new")

        self.proxy.faulty = is_list
        self.proxy.faults = [change]  # the first page passes unchanged
        expected.update({"0001": b"another content", "1003": b"new"})
        self.succeeds(f"{self.uri}/d", expected)
        self.assertEqual(self.proxy.faults, [])

    def test_compressed_objects_come_as_they_are_stored(self):
        """As a whole, in ranges, and an object that is marked as compressed but is not."""
        expected = {
            "small.json": gzip.compress(b"{}" * 1000),
            "large.json": gzip.compress(some_bytes(20 * MIB), 1),
            "liar.json": b"not compressed at all",
        }
        for name, data in expected.items():
            self.put(f"z/{name}", data, "gzip")
        self.put("z/plain", b"plain")
        end = self.succeeds(f"{self.uri}/z/", {**expected, "plain": b"plain"})
        self.assertEqual((end["unverified_files"], end["retries"]), (0, 0))

    def test_composed_objects(self):
        parts = [some_bytes(6 * MIB, seed) for seed in (1, 2, 3)]
        for number, part in enumerate(parts):
            self.put(f"parts/{number}", part)
        self.bucket.blob("whole").compose([self.bucket.blob(f"parts/{number}") for number in range(3)])
        end = self.succeeds(f"{self.uri}/whole", {"whole": b"".join(parts)})
        self.assertEqual(end["unverified_files"], 0)

    def test_a_generation_can_be_asked_for(self):
        self.bucket.versioning_enabled = True
        self.bucket.patch()
        first = self.put("w", b"first")
        second = self.put("w", b"second")
        self.succeeds(f"{self.uri}/w", {"w": b"first"}, "--version-id", str(first))
        self.succeeds(f"{self.uri}/w", {"w": b"second"})
        self.assertEqual(self.manifest()["files"][0]["version"], str(second))
        shutil.rmtree(self.target)
        self.refused(f"{self.uri}/w", 1, "there is no object with the generation 17", "--version-id", "17")
        self.refused(f"{self.uri}/w/", 78, "--version-id is of one object", "--version-id", "17")
        self.refused(f"{self.uri}/w", 78, "'v1'.*generation, a number", "--version-id", "v1")

    def test_every_range_is_pinned(self):
        data = some_bytes(40 * MIB)
        generation = self.put("w", data)
        self.succeeds(f"{self.uri}/w", {"w": data})
        media = [(path, headers) for _, path, headers in self.proxy.exchanges if "alt=media" in path]
        self.assertGreater(len(media), 1)
        for path, headers in media:
            self.assertIn(f"generation={generation}", path)
            self.assertIn("range", headers)
            self.assertEqual(headers["accept-encoding"], "gzip")

    def test_who_pays(self):
        self.put("d/w", b"1")
        self.succeeds(
            f"{self.uri}/d",
            {"w": b"1"},
            env={"STORAGE_EMULATOR_HOST": self.proxy.url, "GOOGLE_CLOUD_QUOTA_PROJECT": "my-project"},
        )
        for path in self.paths():
            self.assertIn("userProject=my-project", path)

    def test_the_endpoint_is_taken_from_its_variables(self):
        self.put("w", b"1")
        override = "CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE"
        credentials = os.path.join(self.dir, "no-such-credentials.json")
        for flags, variables in (
            ([], {"STORAGE_EMULATOR_HOST": f"127.0.0.1:{self.proxy.port}"}),
            ([], {"STORAGE_EMULATOR_HOST": f"{self.proxy.url}/", "GOOGLE_APPLICATION_CREDENTIALS": credentials}),
            ([], {"STORAGE_EMULATOR_HOST": self.proxy.url, override: "https://elsewhere.invalid"}),
            (
                ["--anonymous"],
                {override: f"{self.proxy.url}/storage/v1/", "GOOGLE_APPLICATION_CREDENTIALS": credentials},
            ),
            (["--anonymous"], {override: self.proxy.url}),
        ):
            shutil.rmtree(self.target, ignore_errors=True)
            self.succeeds(f"{self.uri}/w", {"w": b"1"}, *flags, env=variables)
            self.assertEqual(self.manifest()["endpoint"], self.proxy.url)
        self.assertTrue(all("authorization" not in headers for _, _, headers in self.proxy.exchanges))
        shutil.rmtree(self.target)
        self.refused(
            f"{self.uri}/w",
            78,
            "STORAGE_EMULATOR_HOST: '...@host' is not an endpoint",
            env={"STORAGE_EMULATOR_HOST": "http://user:secret@host"},
        )

    def test_no_such_place(self):
        self.refused("gs://muster-no-such-bucket/x", 1, "404.*check the names of bucket and object, and the endpoint")
        self.refused(f"{self.uri}/nothing", 1, "there is no such object, and nothing below gs://muster-bucket/nothing/")
        self.refused(f"{self.uri}/nothing/", 1, "there is nothing below it")


class FaultCase(GcsCase):
    """A small object, a large one, and one that is stored compressed."""

    large = ("large", "packed")
    busy = staticmethod(answering(503, BUSY, JSON))
    too_many = staticmethod(answering(429, TOO_FAST, JSON, ("Retry-After", "1")))
    is_data = staticmethod(gcs_server.is_media)
    is_list = staticmethod(is_list)

    def setUp(self):
        super().setUp()
        self.objects = {
            "small": some_bytes(8 << 10, 1),
            "large": some_bytes(20 * MIB + 5, 2),
            "packed": gzip.compress(some_bytes(17 * MIB, 3), 1),
        }
        for name, data in self.objects.items():
            self.put(name, data, "gzip" if name == "packed" else None)


class Transient(FaultCase, TransientFaults):
    def test_a_busy_server_is_asked_again(self):
        busy = answering(503, BUSY, JSON, ("Retry-After", "0"))
        self.repaired(
            busy, busy, answering(429, TOO_FAST, JSON), answering(500), answering(408), answering(403, TOO_FAST, JSON)
        )

    def test_busy_with_lists_and_looks(self):
        faults = [
            answering(503, BUSY, JSON),
            answering(429, TOO_FAST, JSON, ("Retry-After", "1")),
            setting(reset=True),
            setting(cut=20),
            answering(502),
        ]
        self.all_listed(*faults)
        self.repaired(*faults, faulty=lambda exchange: "alt=media" not in exchange.path, names=["small"])

    def test_a_login_page(self):
        page = LOGIN_PAGE
        compressed = answering(200, gzip.compress(b"<html>Please log in</html>"), ("Content-Encoding", "gzip"))
        self.repaired(page, compressed, page)
        self.all_listed(page, answering(200, b'{"message":"please log in"}', JSON), compressed)
        self.repaired(page, faulty=lambda exchange: "alt=media" not in exchange.path, names=["small"])

    def test_overwritten_between_list_and_read(self):
        for name in self.objects:
            after = some_bytes(len(self.objects[name]) - 5, 9)
            shutil.rmtree(self.target, ignore_errors=True)
            self.proxy.reset()
            self.proxy.faulty = lambda exchange: "alt=media" not in exchange.path
            self.proxy.faults = [lambda _: self.put(name, after)]
            self.succeeds(f"{self.uri}/{name}", {name: after})

    def test_overwritten_where_the_server_ignores_generations(self):
        """The answer's generation shows the change."""
        after = some_bytes(len(self.objects["large"]), 9)

        def newest(exchange):
            self.put("large", after)
            first, last = exchange.range
            exchange.answer(
                206,
                after[first : last + 1],
                ("Content-Range", f"bytes {first}-{last}/{len(after)}"),
                ("X-Goog-Generation", "1"),
            )

        self.proxy.faults = [lambda _: None, newest]
        self.succeeds(f"{self.uri}/large", {"large": after})
        self.assertIn("large: another version is there now", self.said)


class Permanent(FaultCase, PermanentFaults):
    busy_words = "503 backendError: 'Backend busy'"

    def test_decompressed_on_the_way(self):
        """The proxy drops Accept-Encoding, so the store decompresses the object."""
        self.put("z", gzip.compress(b"{}" * 1000), "gzip")
        self.proxy.dropped = "Accept-Encoding"
        for name in ("z", "packed"):
            self.refused(
                f"{self.uri}/{name}", 1, f"{name}: the object was decompressed on the way \\('gzip'\\).*NO_PROXY"
            )
            shutil.rmtree(self.target)

    def test_compressed_on_the_way(self):
        def compress(exchange):
            exchange.body = bytearray(gzip.compress(bytes(exchange.body)))
            exchange.header("Content-Encoding", "gzip")

        self.proxy.always(compress)
        for name in ("small", "large"):
            self.refused(
                f"{self.uri}/{name}", 1, f"{name}: the object was compressed on the way \\('gzip'\\).*NO_PROXY"
            )
            shutil.rmtree(self.target)

    def test_denied_access_is_said(self):
        denied = (
            b'{"error":{"code":403,"message":"x does not have storage.objects.get access",'
            b'"errors":[{"reason":"forbidden"}]}}'
        )
        self.proxy.always(lambda exchange: exchange.answer(403, denied, JSON))
        for faulty in (gcs_server.is_media, is_list, lambda exchange: True):
            self.proxy.faulty = faulty
            for uri in (f"{self.uri}/", f"{self.uri}/small"):
                if faulty is is_list and uri.endswith("small"):
                    continue  # found without a list
                self.refused(uri, 1, "403 forbidden: 'x does not have.*grant the identity .*Storage Object Viewer")

    def test_unauthorized_without_a_token(self):
        for faulty in (gcs_server.is_media, is_list):
            self.proxy.reset()
            self.proxy.always(lambda exchange: exchange.answer(401, b"", JSON))
            self.proxy.faulty = faulty
            self.refused(f"{self.uri}/", 1, "401; name an identity that may read it")
            self.assertLess(self.proxy.count("GET"), 20, "asked again and again")

    def test_deleted_while_it_is_read(self):
        self.proxy.faults = [lambda exchange: self.bucket.blob("large").delete()]
        code, end = self.fetch(f"{self.uri}/large")
        if code != 0:
            self.assertEqual(code, UNREACHABLE, self.said)
            self.assertRegex(end["reason"], "gs://muster-bucket/large: 404 .*removed meanwhile")
            self.check_nothing()
        else:
            self.check_right({"large": self.objects["large"]})

    def test_what_was_not_asked_for(self):
        def other(exchange):
            exchange.answer(200, b'{"items":[{"name":"other/x","size":"1","generation":"1"}]}', JSON)

        self.put("d/a", b"a")
        self.proxy.always(other)
        self.proxy.faulty = is_list
        self.refused(f"{self.uri}/d/", 1, "the server gave 'other/x', which is outside the requested prefix")

    def test_the_same_page_for_ever(self):
        def same(exchange):
            exchange.answer(200, b'{"items":[],"nextPageToken":"t"}', JSON)

        self.proxy.always(same)
        self.proxy.faulty = is_list
        self.refused(f"{self.uri}/d/", 1, "the server gives the same page again")


class Killed(FaultCase, KilledAnywhere):
    pass


if __name__ == "__main__":
    main()
