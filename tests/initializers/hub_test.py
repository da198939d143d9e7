# SPDX-License-Identifier: Apache-2.0
"""muster-initializer against a faulty hub and CDN: the bytes are right, or the run ends with a clear error."""

import json
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from hub_case import FILES, NAME, URI, HubCase, hash_of, some_bytes, subset
from initializer_case import DEADLINE, MIB, main


class Models(HubCase):
    def test_all_of_it(self):
        end = self.succeeds(URI, FILES)
        self.assertEqual(
            (end["received"], end["unverified_files"], end["retries"]), (sum(map(len, FILES.values())), 0, 0)
        )
        manifest = self.manifest()
        self.assertEqual((manifest["version"], manifest["endpoint"]), (self.repository.branches["main"], self.hub.url))
        self.assertEqual(
            {file["path"]: (file["hash"], file["verified"]) for file in manifest["files"]},
            {path: (hash_of(path, data), True) for path, data in FILES.items()},
        )
        self.assertEqual(self.hub.count("hub", "HEAD"), 0)
        for _, _path, headers in self.requests("cdn") + self.requests("hub"):
            self.assertNotIn("authorization", headers)
            self.assertEqual(headers["accept-encoding"], "identity")
        for _, _path, headers in self.requests("cdn"):
            self.assertIn("range", headers, "a CDN refuses more than 50 GB without")

    def test_data_sets_and_spaces(self):
        data = self.hub.add("muster/data", {"train.parquet": some_bytes(2 * MIB), "README.md": b"#"}, kind="datasets")
        space = self.hub.add("muster/app", {"app.py": b"1"}, kind="spaces")
        files = data.commits[data.branches["main"]]
        self.succeeds("hf://datasets/muster/data", files)
        self.anew()
        self.role = "dataset"
        self.succeeds("hf://muster/data", files)
        self.anew()
        self.succeeds("hf://spaces/muster/app", space.commits[space.branches["main"]])
        self.anew()
        self.succeeds(f"hf://models/{NAME}", FILES)

    def test_the_token_goes_to_the_hub_alone(self):
        self.repository.private = True
        token = self.token(self.repository)
        self.succeeds(URI, FILES, env=self.keys(HF_TOKEN=token + "\n"))
        for _, path, headers in self.requests("hub"):
            self.assertEqual(headers.get("authorization"), f"Bearer {token}", path)
        self.assertGreaterEqual(self.hub.count("cdn"), 3)
        for _, _path, headers in self.requests("cdn"):
            self.assertNotIn("authorization", headers)
        with open(os.path.join(self.target, ".muster", "manifest.json")) as file:
            self.assertNotIn(token, self.said + file.read())

    def test_where_a_token_may_be(self):
        self.repository.private = True
        token = self.token(self.repository)
        with open(os.path.join(self.dir, "token"), "w") as file:
            file.write(token + "\n")
        for env in (
            {"ACCESS_TOKEN": token, "HF_TOKEN": "hf_other"},
            {"HF_HOME": self.dir},
            {"HF_TOKEN_PATH": os.path.join(self.dir, "token")},
        ):
            self.anew()
            self.succeeds(f"{URI}/config.json", subset("config.json"), env=self.keys(**env))

    def test_a_revision_is_taken_from_uri_or_variable(self):
        for revision in ("v1.0", "a/branch", "refs/pr/3", "refs/convert/parquet"):
            self.repository.commit(revision, {"of": revision.encode()})
        for written, env, revision in (
            ("@v1.0", {}, "v1.0"),
            (":v1.0", {}, "v1.0"),
            ("@a%2Fbranch", {}, "a/branch"),
            ("@refs/pr/3", {}, "refs/pr/3"),
            ("@refs/convert/parquet/of", {}, "refs/convert/parquet"),
            ("", {"MODEL_VERSION": "v1.0"}, "v1.0"),
            ("@refs/pr/3", {"MODEL_VERSION": "v1.0"}, "refs/pr/3"),
            ("@" + self.repository.branches["v1.0"], {}, "v1.0"),
        ):
            with self.subTest(written, **env):
                self.anew()
                self.succeeds(URI + written, {"of": revision.encode()}, env=self.keys(**env))
                self.assertEqual(self.manifest()["version"], self.repository.branches[revision])

    def test_a_path(self):
        self.succeeds(f"{URI}/onnx", subset("onnx/model.onnx"))
        self.anew()
        self.succeeds(f"{URI}@main/onnx/", subset("onnx/model.onnx"))
        self.anew()
        self.succeeds(f"{URI}/onnx/model.onnx", subset("onnx/model.onnx"))
        self.anew()
        self.succeeds(f"{URI}/sub dir/\u00e9+%41.txt", subset("sub dir/\u00e9+%41.txt"))
        for path in ("on", "onnx/model", "config.json/", "nothing/at/all"):
            self.anew()
            self.refused(f"{URI}/{path}", 1, "there is no '.*' at 'main'")

    def test_patterns_choose_the_files(self):
        self.succeeds(URI, subset("config.json", "tokenizer.json"), "--include", "*.json,empty", "--ignore", "emp*")
        self.anew()
        self.succeeds(URI, subset("onnx/model.onnx", "sub dir/\u00e9+%41.txt"), "--include", "onnx/,*.txt")
        self.anew()
        self.succeeds(
            URI,
            {path: data for path, data in FILES.items() if not path.startswith("onnx")},
            env=self.keys(IGNORE_PATTERNS="onnx/", STORAGE_IGNORE_PATTERNS="*"),
        )
        for allowed in ('["*.json", "empty"]', "*.json, empty"):  # KServe's
            self.anew()
            self.succeeds(
                URI,
                subset("config.json", "tokenizer.json"),
                env=self.keys(STORAGE_ALLOW_PATTERNS=allowed, STORAGE_IGNORE_PATTERNS='["emp*"]'),
            )
        self.anew()
        self.refused(URI, 1, "nothing in it is wanted", "--include", "*.gguf")

    def test_an_ending_is_no_pattern(self):
        """The SDK's default has ".pt,.pth", by which the hub's client leaves nothing out either."""
        self.succeeds(URI, FILES, env=self.keys(IGNORE_PATTERNS=".json,.pth,*.gguf"))
        self.assertIn(
            "--ignore .json leaves out only a file of that name; "
            "2 files with this ending will be brought in; write *.json to leave them out",
            self.said,
        )
        self.assertNotIn(".pth", self.said)
        self.anew()
        self.succeeds(URI, subset(*(path for path in FILES if not path.endswith(".json"))), "--ignore", "*.json,.json")
        self.assertNotIn("leaves out only", self.said)

    def test_each_page_of_a_listing_is_read(self):
        many = {f"{n % 7}/{n}": b"%d" % n for n in range(1205)}
        self.hub.add("muster/many", many)
        self.succeeds("hf://muster/many", many)
        self.assertEqual(self.hub.count("hub", "GET", "/tree/"), 2)

    def test_moved_between_pages(self):
        """The first and the last page are of the same commit."""
        self.hub.page = 3
        before = self.repository.branches["main"]
        self.hub.listed = lambda: self.repository.commit("main", {f"new{len(self.repository.commits)}": b"other"})
        self.succeeds(URI, FILES)
        self.assertEqual(self.manifest()["version"], before)

    def test_a_second_run_asks_for_nothing(self):
        commit = self.repository.branches["main"]
        self.succeeds(f"{URI}@{commit}", FILES)
        for env, asked in ((self.keys(), 0), (self.keys(HF_HUB_OFFLINE="1"), 0)):
            self.hub.reset()
            end = self.succeeds(f"{URI}@{commit}", FILES, env=env)
            self.assertEqual((end["unchanged"], self.hub.count("hub") + self.hub.count("cdn")), (True, asked))
        self.anew()
        self.succeeds(URI, FILES)
        self.hub.reset()
        self.assertTrue(self.succeeds(URI, FILES)["unchanged"])
        self.assertEqual([path.split("/")[5] for _, path, _ in self.requests("hub")], ["revision", "tree"])
        self.hub.reset()
        self.assertTrue(self.succeeds(URI, FILES)["unchanged"])
        self.anew()
        self.succeeds(URI, FILES, env=self.keys(MODEL_VERSION=commit))
        self.hub.reset()
        self.assertTrue(self.succeeds(URI, FILES, env=self.keys(MODEL_VERSION=commit))["unchanged"])
        self.assertEqual(self.hub.count("hub"), 0)

    def test_another_commit_moves_what_differs(self):
        self.succeeds(URI, FILES)
        self.hub.reset()
        files = {**FILES, "config.json": b'{"a": 2}'}
        commit = self.repository.commit("main", files)
        end = self.succeeds(URI, files)
        self.assertEqual((end["received"], end["kept_files"]), (len(files["config.json"]), len(files) - 1))
        self.assertEqual((self.manifest()["version"], self.hub.count("cdn")), (commit, 0))

    def test_a_renamed_repository_is_found_and_said(self):
        self.repository.private = True
        token = self.token(self.repository)
        self.hub.renamed["models", "old/name"] = NAME
        self.succeeds("hf://old/name", FILES, env=self.keys(HF_TOKEN=token))
        self.assertIn(f"old/name is called '{NAME}' on the hub now", self.said)
        self.assertEqual(self.hub.count("hub", "GET", "/old/name/"), 1, "asked for by its new name from there on")
        self.anew()
        self.succeeds(f"hf://old/name@{self.repository.branches['main']}", FILES, env=self.keys(HF_TOKEN=token))

    def test_below_a_path_of_its_endpoint(self):
        """A mirror whose endpoint has a path: requests for the hub's own links go to the mirror."""
        self.hub.page = 3

        def below(request):
            request.url, request.path = (text.removeprefix("/mirror") for text in (request.url, request.path))

        self.hub.faulty = lambda request: request.path.startswith("/mirror")
        self.hub.always(below)
        self.succeeds(URI, FILES, env=self.keys(HF_ENDPOINT=f"{self.hub.url}/mirror/"))

    def test_a_mirror_of_the_hub_itself(self):
        """The mirror passes on the hub's own links to the next pages."""
        self.hub.page, self.hub.link_base = 3, "https://huggingface.co"
        self.succeeds(URI, FILES)

    def test_a_mirror_without_the_tree(self):
        """The revision's own list names the files; a path selects some of them."""
        self.hub.has_tree = False
        self.succeeds(URI, FILES)
        self.assertEqual(self.hub.count("hub", "GET", "/tree/"), 1)
        self.anew()
        self.succeeds(f"{URI}/onnx", subset("onnx/model.onnx"))
        self.anew()
        self.succeeds(f"{URI}/tokenizer.json", subset("tokenizer.json"))
        self.anew()
        self.refused(f"{URI}/nothing", 1, "there is no 'nothing' at 'main'")
        self.hub.has_blobs = False
        self.refused(
            URI, 1, "gives neither the tree of its files nor their sizes.*entry 1: 'config.json': it has no size"
        )

    def test_a_mirror_of_whole_files_only(self):
        """Reported once. A cut file is begun anew, even if an earlier start got ranges from another mirror."""
        self.hub.has_ranges = False
        self.succeeds(URI, FILES)
        self.assertEqual(self.said.count("gives whole files only: a file that is cut off begins anew"), 1, self.said)
        self.anew()
        self.hub.has_ranges = True
        process = self.start(URI)
        sent = [0]

        def count(size):
            sent[0] += size
            if sent[0] > 12 * MIB:
                process.kill()

        self.hub.sent = count
        process.communicate(timeout=DEADLINE)
        self.check_nothing()
        self.hub.sent = lambda size: None
        self.hub.has_ranges = False

        def cut(request):
            request.cut = MIB // 2

        self.hub.faults = [cut]
        self.succeeds(URI, FILES)

    def test_dry_run(self):
        code, end = self.fetch(URI, "--dry-run")
        self.assertEqual(
            (code, end["event"], end["files"], end["bytes"]),
            (0, "plan", len(FILES), sum(map(len, FILES.values()))),
            self.said,
        )
        self.assertFalse(os.path.exists(self.target))
        self.assertEqual(self.hub.count("hub"), 2)
        planned = [event for event in map(json.loads, self.said.splitlines()) if event["event"] == "file"]
        self.assertEqual(
            {file["path"]: file["bytes"] for file in planned}, {path: len(data) for path, data in FILES.items()}
        )
        self.assertEqual((end["planned_files"], end["planned_bytes"]), (end["files"], end["bytes"]))
        self.succeeds(URI, FILES)
        self.repository.commit("main", {**FILES, min(FILES): b"another"})
        code, end = self.fetch(URI, "--dry-run")
        self.assertEqual((code, end["planned_files"], end["planned_bytes"]), (0, 1, len(b"another")), self.said)
        self.check_right(FILES)


class Refusals(HubCase):
    def test_a_gated_repository_says_how_to_get_access(self):
        self.repository.gated = True
        self.refused(URI, 1, "401 'GatedRepo'.*ask for access on its page on the hub, then set HF_TOKEN")
        self.refused(URI, 1, "403 'GatedRepo'.*ask for access on its page", env=self.keys(HF_TOKEN=self.token()))
        self.succeeds(URI, FILES, env=self.keys(HF_TOKEN=self.token(self.repository)))

    def test_private_or_not_there(self):
        self.repository.private = True
        for uri in (URI, "hf://muster/nothing"):
            self.refused(uri, 1, "401 'RepoNotFound'.*if it is private, set HF_TOKEN")
            self.refused(uri, 1, "404 'RepoNotFound'.*that the token may read it", env=self.keys(HF_TOKEN=self.token()))
        self.refused(URI, 1, "401 'RepoNotFound'", "--anonymous", env=self.keys(HF_TOKEN=self.token(self.repository)))

    def test_a_token_that_is_none(self):
        self.refused(
            URI, 1, "Invalid credentials in Authorization header'; .*renew it", env=self.keys(HF_TOKEN="hf_s3cret")
        )
        self.assertNotIn("s3cret", self.said)
        self.refused(URI, 78, "the token in HF_TOKEN has a line break", env=self.keys(HF_TOKEN="hf_s3cret\nx"))
        self.assertNotIn("s3cret", self.said)

    def test_no_such_thing(self):
        self.refused(f"{URI}@nothing", 1, "404 'RevisionNotFound'.*a branch, a tag or a commit")
        self.refused(f"{URI}@{'0' * 40}", 1, "404 'RevisionNotFound'")
        self.refused(f"{URI}/nothing", 1, "there is no 'nothing' at 'main'")

    def test_a_disabled_repository_is_said(self):
        self.repository.disabled = True
        self.refused(URI, 1, "Access to this resource is disabled.*the hub has disabled it")

    def test_wrong_settings_are_refused(self):
        self.refused(URI, 78, "HF_HUB_OFFLINE is set", env=self.keys(HF_HUB_OFFLINE="1"))
        self.refused(URI, 78, "HF_ENDPOINT: 'hub' is not an endpoint", env=self.keys(HF_ENDPOINT="hub"))
        self.refused(URI, 1, "check its name, and the endpoint", env=self.keys(HF_ENDPOINT=f"{self.hub.url}/nothing"))
        self.refused(URI, 78, "MODEL_VERSION is 'a b'", env=self.keys(MODEL_VERSION="a b"))
        self.refused(URI, 78, "name the revision in the URI", "--version-id", "v1.0")
        self.refused("file:///x", 78, "--hf-cache is for hf:// sources", "--hf-cache")
        self.assertEqual(self.hub.count("cdn"), 0)

    def test_led_away(self):
        """A login portal that answers every request."""
        self.hub.faulty = lambda request: request.is_api
        self.hub.always(lambda request: request.plain(302, b"", ("Location", f"{self.hub.cdn.url}/login?back=x")))
        self.refused(URI, 1, "which is not the hub; check the endpoint", env=self.keys(HF_TOKEN="hf_s3cret"))
        self.assertEqual(self.hub.count("cdn"), 0)

    def test_a_circle(self):
        self.hub.faulty = lambda request: request.is_api
        self.hub.always(lambda request: request.plain(307, b"", ("Location", request.path)))
        self.refused(URI, 1, "redirected more than 5 times")
        self.hub.faulty = lambda request: not request.is_api
        self.refused(URI, 1, "redirected 5 times")

    def test_the_same_page_again(self):
        link = ("Link", '<?recursive=true&expand=false>; rel="next"')
        self.hub.faulty = lambda request: request.is_tree
        self.hub.always(lambda request: request.json([], link))
        self.refused(URI, 1, "gives the same page again")

    def test_names_that_leave_the_target(self):
        self.hub.add("muster/evil", {"../../evil": b"1"})
        self.refused("hf://muster/evil", 78, "'\\.\\./\\.\\./evil' cannot be a file below the target.*--ignore")
        self.assertEqual(os.listdir(self.dir), ["target"])


if __name__ == "__main__":
    main()
