# SPDX-License-Identifier: Apache-2.0
"""muster-initializer beside the hub's own client, huggingface_hub: same files, and the client finds what we stored."""

import os
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from initializer_case import BINARY, DEADLINE, MIB, clean_environment, main, needs

needs("hub-client", "run build-support/setup-venv hub-client", "huggingface_hub")

from hub_case import FILES, NAME, URI, HubCase, some_bytes, subset


class ClientCase(HubCase):
    """`call`: a Python expression with huggingface_hub, evaluated in another process."""

    def client(self, call, **env):
        environment = clean_environment(
            **self.keys(
                HF_HOME=os.path.join(self.dir, "hf"),
                HF_HUB_DISABLE_PROGRESS_BARS="1",
                HF_HUB_DISABLE_TELEMETRY="1",
                **env,
            )
        )
        done = subprocess.run(
            [sys.executable, "-I", "-c", f"import huggingface_hub as hub\nprint({call})"],
            env=environment,
            capture_output=True,
            text=True,
            timeout=DEADLINE,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()


def tree(folder):
    """Path -> content, without the clients' own files."""
    found = {}
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in (".cache", ".muster")]
        for name in names:
            path = os.path.join(parent, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, folder)] = file.read()
    return found


class Client(ClientCase):
    """The hub's own client and muster-initializer bring the same files from the same hub."""

    def same(self, uri, call, *flags, env=None):
        theirs = os.path.join(self.dir, "theirs")
        self.anew()
        shutil.rmtree(theirs, ignore_errors=True)
        self.client(f"hub.snapshot_download({call}, local_dir={theirs!r})", **(env or {}))
        brought = tree(theirs)
        self.assertTrue(brought)
        self.hub.reset()
        self.succeeds(uri, brought, *flags, env=self.keys(**(env or {})))
        return brought

    def test_a_model(self):
        self.assertEqual(self.same(URI, f"{NAME!r}"), FILES)

    def test_each_page_of_a_listing_is_read(self):
        self.hub.page = 3
        self.assertEqual(self.same(URI, f"{NAME!r}"), FILES)

    def test_private_and_gated_and_renamed(self):
        token = self.token(self.repository)
        self.hub.renamed["models", "old/name"] = NAME
        for self.repository.private, self.repository.gated in ((True, False), (False, True)):
            self.same(URI, f"{NAME!r}", env={"HF_TOKEN": token})
            self.same("hf://old/name", "'old/name'", env={"HF_TOKEN": token})

    def test_a_data_set_at_a_revision(self):
        data = self.hub.add("muster/data", {"a/b.csv": b"1", "c.parquet": some_bytes(2 * MIB)}, kind="datasets")
        data.commit("refs/convert/parquet", {"d.parquet": some_bytes(3 * MIB)})
        self.same("hf://datasets/muster/data", "'muster/data', repo_type='dataset'")
        self.same(
            "hf://datasets/muster/data@refs/convert/parquet",
            "'muster/data', repo_type='dataset', revision='refs/convert/parquet'",
        )

    def test_patterns_choose_the_files(self):
        for include, ignore in (
            (["*.json"], []),
            (["onnx/"], []),
            ([], ["onnx/", "*.bin"]),
            (["*e*"], ["*[!n]", "s*"]),
            (["?onfig.json", "sub*"], []),
            (["*.txt"], ["config*"]),
        ):
            flags = [
                word
                for name, patterns in (("--include", include), ("--ignore", ignore))
                if patterns
                for word in (name, ",".join(patterns))
            ]
            self.same(URI, f"{NAME!r}, allow_patterns={include or None}, ignore_patterns={ignore or None}", *flags)


class Cache(ClientCase):
    """--hf-cache: the hub's own client finds the files without a network."""

    def setUp(self):
        super().setUp()
        self.cache = os.path.join(self.dir, "cache")
        self.target = self.cache  # for --to; the repository's folder is inside

    def bring_cached(self, uri, *flags, env=None):
        code, end = self.fetch(uri, "--hf-cache", *flags, env=env)
        self.assertEqual((code, end.get("event")), (0, "done"), self.said)
        return end

    def offline(self, call, cache=None):
        self.hub.reset()
        found = self.client(call, HF_HUB_OFFLINE="1", HF_HUB_CACHE=cache or self.cache)
        self.assertEqual(self.hub.count("hub"), 0)
        return found

    def test_the_client_finds_it(self):
        self.bring_cached(URI)
        commit = self.repository.branches["main"]
        folder = os.path.join(self.cache, "models--muster--model")
        self.assertEqual(
            self.offline(f"hub.snapshot_download({NAME!r}, local_files_only=True)"), f"{folder}/snapshots/{commit}"
        )
        self.assertEqual(tree(f"{folder}/snapshots/{commit}"), FILES)
        for path in FILES:
            self.assertEqual(
                self.offline(f"hub.hf_hub_download({NAME!r}, {path!r})"), f"{folder}/snapshots/{commit}/{path}"
            )
        self.assertEqual(
            self.offline(f"hub.snapshot_download({NAME!r}, revision={commit!r})"), f"{folder}/snapshots/{commit}"
        )
        self.assertEqual(sorted(os.listdir(folder)), [".muster", "refs", "snapshots"])
        with open(f"{folder}/refs/main") as file:
            self.assertEqual(file.read(), commit)
        self.assertIn("1 repos", self.offline("f'{len(hub.scan_cache_dir().repos)} repos'"))

    def test_beside_others(self):
        """A cache is shared: its other folders stay unchanged."""
        data = self.hub.add("muster/data", {"a": b"1"}, kind="datasets")
        theirs = self.client("hub.snapshot_download('muster/data', repo_type='dataset')", HF_HUB_CACHE=self.cache)
        before = tree(self.cache)
        self.bring_cached(URI)
        self.repository.commit("refs/pr/1", {"b": b"2"})
        self.bring_cached(f"{URI}@refs/pr/1")
        after = tree(self.cache)
        self.assertEqual({path: after.get(path) for path in before}, before)
        self.assertEqual(self.offline("hub.snapshot_download('muster/data', repo_type='dataset')"), theirs)
        self.assertEqual(tree(self.offline(f"hub.snapshot_download({NAME!r})")), FILES)
        self.assertEqual(tree(self.offline(f"hub.snapshot_download({NAME!r}, revision='refs/pr/1')")), {"b": b"2"})
        self.assertEqual(tree(theirs), data.commits[data.branches["main"]])

    def test_what_the_client_brings_later(self):
        """The client continues in the folder that muster-initializer has made."""
        self.bring_cached(URI, "--include", "config.json")
        self.hub.reset()
        found = self.client(f"hub.snapshot_download({NAME!r})", HF_HUB_CACHE=self.cache)
        self.assertEqual(tree(found), FILES)

    def test_what_the_client_brought_before(self):
        """Files replace the client's links to blobs; its blobs stay unchanged."""
        self.client(f"hub.snapshot_download({NAME!r})", HF_HUB_CACHE=self.cache)
        blobs = os.path.join(self.cache, "models--muster--model", "blobs")
        before = tree(blobs)
        self.bring_cached(URI)
        self.assertEqual(tree(blobs), before)
        self.assertEqual(tree(self.offline(f"hub.snapshot_download({NAME!r})")), FILES)

    def test_another_commit(self):
        self.bring_cached(URI)
        before = self.repository.branches["main"]
        files = {**FILES, "config.json": b'{"a": 2}'}
        commit = self.repository.commit("main", files)
        end = self.bring_cached(URI)
        self.assertEqual(end["received"], len(files["config.json"]), "the rest is linked from the commit before")
        folder = os.path.join(self.cache, "models--muster--model", "snapshots")
        self.assertEqual((tree(f"{folder}/{before}"), tree(f"{folder}/{commit}")), (FILES, files))
        self.assertEqual(self.offline(f"hub.snapshot_download({NAME!r})"), f"{folder}/{commit}")
        self.assertTrue(self.bring_cached(URI)["unchanged"])
        verified = subprocess.run([BINARY, "verify", os.path.dirname(folder)], capture_output=True)
        self.assertEqual(verified.returncode, 0, verified.stderr)

    def test_a_pinned_commit_is_cached_without_a_ref(self):
        commit = self.repository.branches["main"]
        self.bring_cached(f"{URI}@{commit}", "--include", "*.json")
        self.assertEqual(
            tree(os.path.join(self.cache, "models--muster--model", "snapshots", commit)),
            subset("config.json", "tokenizer.json"),
        )
        self.assertFalse(os.path.exists(os.path.join(self.cache, "models--muster--model", "refs")))
        self.hub.reset()
        self.assertTrue(self.bring_cached(f"{URI}@{commit}", "--include", "*.json")["unchanged"])
        self.assertEqual(self.hub.count("hub"), 0)
        self.offline(f"hub.hf_hub_download({NAME!r}, 'config.json', revision={commit!r})")

    def test_nothing_is_wanted(self):
        ended, end = self.fetch(URI, "--hf-cache", "--include", "*.gguf")
        self.assertEqual(ended, 1, self.said)
        self.assertRegex(end["reason"], "nothing in it is wanted")
        self.assertFalse(os.path.exists(os.path.join(self.cache, "models--muster--model", "refs")))

    def test_the_default_cache(self):
        for env, cache in (
            ({}, ".cache/huggingface/hub"),
            ({"HF_HOME": os.path.join(self.dir, "home")}, "home/hub"),
            ({"HF_HUB_CACHE": os.path.join(self.dir, "named")}, "named"),
        ):
            process = subprocess.run(
                [BINARY, "model", f"{URI}/config.json", "--hf-cache"],
                env=clean_environment(**self.keys(**env)),
                capture_output=True,
                text=True,
                timeout=DEADLINE,
            )
            self.assertEqual(process.returncode, 0, process.stderr)
            cache = os.path.join(self.dir, cache)
            self.assertEqual(tree(self.offline(f"hub.snapshot_download({NAME!r})", cache=cache)), subset("config.json"))


if __name__ == "__main__":
    main()
