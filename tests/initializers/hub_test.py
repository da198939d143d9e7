"""muster-initializer against a hub and its CDN that go wrong, and beside the hub's own client on the same hub."""
import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from hub_server import HubServer, git_oid  # noqa: E402
from initializer_case import DEADLINE, MIB, UNREACHABLE, InitializerCase, clean_environment, needs  # noqa: E402

NAME = "muster/model"
URI = f"hf://{NAME}"
LOGIN = b"<html><body>Please log in</body></html>"


def some_bytes(count, seed=1):
    return random.Random(seed).randbytes(count)


FILES = {
    "config.json": b'{"a": 1}',
    "empty": b"",
    "sub dir/\u00e9+%41.txt": b"text\n",
    "tokenizer.json": some_bytes(700 << 10, 1),  # git's, of more than one block
    "small.bin": some_bytes(3000, 2),            # LFS's, though small
    "model.safetensors": some_bytes(20 * MIB + 5, 3),
    "onnx/model.onnx": some_bytes(MIB, 4),
}
LFS = {"small.bin"}


def hash_of(path, data):
    large = path in LFS or len(data) >= MIB
    return f"sha256:{hashlib.sha256(data).hexdigest()}" if large else f"git-blob:{git_oid(data)}"


class HubCase(InitializerCase):
    role = "model"

    def setUp(self):
        super().setUp()
        self.hub = HubServer()
        self.addCleanup(self.hub.close)
        self.repository = self.hub.add(NAME, FILES, lfs=LFS)

    def keys(self, **more):
        return {"HOME": self.dir, "HF_ENDPOINT": self.hub.url, **more}

    def environment(self):
        return clean_environment(**self.keys())

    def token(self, *repositories, token="hf_reader"):
        """A token of the hub that may read them."""
        self.hub.tokens.add(token)
        for repository in repositories:
            repository.readers.add(token)
        return token

    def requests(self, origin):
        with self.hub.lock:
            return [(verb, path, headers) for at, verb, path, headers in self.hub.requests if at == origin]

    def anew(self):
        shutil.rmtree(self.target, ignore_errors=True)
        self.hub.reset()


def subset(*paths):
    return {path: FILES[path] for path in paths}


class Models(HubCase):
    def test_all_of_it(self):
        end = self.succeeds(URI, FILES)
        self.assertEqual((end["received"], end["unverified_files"], end["retries"]), (sum(map(len, FILES.values())), 0, 0))
        manifest = self.manifest()
        self.assertEqual((manifest["version"], manifest["endpoint"]), (self.repository.branches["main"], self.hub.url))
        self.assertEqual({file["path"]: (file["hash"], file["verified"]) for file in manifest["files"]},
                         {path: (hash_of(path, data), True) for path, data in FILES.items()})
        self.assertEqual(self.hub.count("hub", "HEAD"), 0)
        for _, path, headers in self.requests("cdn") + self.requests("hub"):
            self.assertNotIn("authorization", headers)
            self.assertEqual(headers["accept-encoding"], "identity")
        for _, path, headers in self.requests("cdn"):
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
        for _, path, headers in self.requests("cdn"):
            self.assertNotIn("authorization", headers)
        with open(os.path.join(self.target, ".muster", "manifest.json")) as file:
            self.assertNotIn(token, self.said + file.read())

    def test_where_a_token_may_be(self):
        self.repository.private = True
        token = self.token(self.repository)
        with open(os.path.join(self.dir, "token"), "w") as file:
            file.write(token + "\n")
        for env in ({"ACCESS_TOKEN": token, "HF_TOKEN": "hf_other"}, {"HF_HOME": self.dir},
                    {"HF_TOKEN_PATH": os.path.join(self.dir, "token")}):
            self.anew()
            self.succeeds(f"{URI}/config.json", subset("config.json"), env=self.keys(**env))

    def test_revisions(self):
        for revision in ("v1.0", "a/branch", "refs/pr/3", "refs/convert/parquet"):
            self.repository.commit(revision, {"of": revision.encode()})
        for written, env, revision in (("@v1.0", {}, "v1.0"), (":v1.0", {}, "v1.0"), ("@a%2Fbranch", {}, "a/branch"),
                                       ("@refs/pr/3", {}, "refs/pr/3"), ("@refs/convert/parquet/of", {}, "refs/convert/parquet"),
                                       ("", {"MODEL_VERSION": "v1.0"}, "v1.0"), ("@refs/pr/3", {"MODEL_VERSION": "v1.0"}, "refs/pr/3"),
                                       ("@" + self.repository.branches["v1.0"], {}, "v1.0")):
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

    def test_patterns(self):
        self.succeeds(URI, subset("config.json", "tokenizer.json"), "--include", "*.json,empty", "--ignore", "emp*")
        self.anew()
        self.succeeds(URI, subset("onnx/model.onnx", "sub dir/\u00e9+%41.txt"), "--include", "onnx/,*.txt")
        self.anew()
        self.succeeds(URI, {path: data for path, data in FILES.items() if not path.startswith("onnx")},
                      env=self.keys(IGNORE_PATTERNS="onnx/"))
        self.anew()
        self.refused(URI, 1, "nothing in it is wanted", "--include", "*.gguf")

    def test_pages(self):
        many = {f"{n % 7}/{n}": b"%d" % n for n in range(1205)}
        self.hub.add("muster/many", many)
        self.succeeds("hf://muster/many", many)
        self.assertEqual(self.hub.count("hub", "GET", "/tree/"), 2)

    def test_moved_between_pages(self):
        """What is listed first and what is listed last are of one commit."""
        self.hub.page = 3
        before = self.repository.branches["main"]
        self.hub.listed = lambda: self.repository.commit("main", {f"new{len(self.repository.commits)}": b"other"})
        self.succeeds(URI, FILES)
        self.assertEqual(self.manifest()["version"], before)

    def test_again(self):
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

    def test_renamed(self):
        self.repository.private = True
        token = self.token(self.repository)
        self.hub.renamed["models", "old/name"] = NAME
        self.succeeds("hf://old/name", FILES, env=self.keys(HF_TOKEN=token))
        self.assertIn(f"old/name is called '{NAME}' on the hub now", self.said)
        self.assertEqual(self.hub.count("hub", "GET", "/old/name/"), 1, "asked for by its new name from there on")
        self.anew()
        self.succeeds(f"hf://old/name@{self.repository.branches['main']}", FILES, env=self.keys(HF_TOKEN=token))

    def test_below_a_path_of_its_endpoint(self):
        """A mirror with a path: what it passes on of the hub's own links is asked of the mirror."""
        self.hub.page = 3

        def below(request):
            request.url, request.path = (text.removeprefix("/mirror") for text in (request.url, request.path))
        self.hub.faulty = lambda request: request.path.startswith("/mirror")
        self.hub.always(below)
        self.succeeds(URI, FILES, env=self.keys(HF_ENDPOINT=f"{self.hub.url}/mirror/"))

    def test_a_mirror_of_the_hub_itself(self):
        """It passes on the hub's own links to the next pages."""
        self.hub.page, self.hub.link_base = 3, "https://huggingface.co"
        self.succeeds(URI, FILES)

    def test_dry_run(self):
        code, end = self.bring(URI, "--dry-run")
        self.assertEqual((code, end["event"], end["files"], end["bytes"]),
                         (0, "plan", len(FILES), sum(map(len, FILES.values()))), self.said)
        self.assertFalse(os.path.exists(self.target))
        self.assertEqual(self.hub.count("hub"), 2)


class Refusals(HubCase):
    def test_gated(self):
        self.repository.gated = True
        self.refused(URI, 1, "401 'GatedRepo'.*granted on its page on the hub, and then HF_TOKEN")
        self.refused(URI, 1, "403 'GatedRepo'.*ask for it there", env=self.keys(HF_TOKEN=self.token()))
        self.succeeds(URI, FILES, env=self.keys(HF_TOKEN=self.token(self.repository)))

    def test_private_or_not_there(self):
        self.repository.private = True
        for uri in (URI, "hf://muster/nothing"):
            self.refused(uri, 1, "401 'RepoNotFound'.*if it is private, set HF_TOKEN")
            self.refused(uri, 1, "404 'RepoNotFound'.*that the token may read it", env=self.keys(HF_TOKEN=self.token()))
        self.refused(URI, 1, "401 'RepoNotFound'", "--anonymous", env=self.keys(HF_TOKEN=self.token(self.repository)))

    def test_a_token_that_is_none(self):
        self.refused(URI, 1, "Invalid credentials in Authorization header'; .*renew it", env=self.keys(HF_TOKEN="hf_s3cret"))
        self.assertNotIn("s3cret", self.said)
        self.refused(URI, 78, "the token in HF_TOKEN has a line break", env=self.keys(HF_TOKEN="hf_s3cret\nx"))
        self.assertNotIn("s3cret", self.said)

    def test_no_such_thing(self):
        self.refused(f"{URI}@nothing", 1, "404 'RevisionNotFound'.*a branch, a tag or a commit")
        self.refused(f"{URI}@{'0' * 40}", 1, "404 'RevisionNotFound'")
        self.refused(f"{URI}/nothing", 1, "there is no 'nothing' at 'main'")

    def test_disabled(self):
        self.repository.disabled = True
        self.refused(URI, 1, "Access to this resource is disabled.*the hub has disabled it")

    def test_settings(self):
        self.refused(URI, 78, "HF_HUB_OFFLINE is set", env=self.keys(HF_HUB_OFFLINE="1"))
        self.refused(URI, 78, "HF_ENDPOINT: 'hub' is no endpoint", env=self.keys(HF_ENDPOINT="hub"))
        self.refused(URI, 1, "check its name, and the endpoint", env=self.keys(HF_ENDPOINT=f"{self.hub.url}/nothing"))
        self.refused(URI, 78, "MODEL_VERSION is 'a b'", env=self.keys(MODEL_VERSION="a b"))
        self.refused(URI, 78, "name the revision in the URI", "--version-id", "v1.0")
        self.refused("file:///x", 78, "--hf-cache is for hf:// sources", "--hf-cache")
        self.assertEqual(self.hub.count("cdn"), 0)

    def test_led_away(self):
        """A portal that takes every request for its own."""
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


class FaultCase(HubCase):
    # Each kind of file: git's small and of several blocks, LFS's small and large.
    kinds = ("config.json", "tokenizer.json", "small.bin", "model.safetensors")

    def setUp(self):
        super().setUp()
        self.uri = f"{URI}@{self.repository.branches['main']}"

    def repaired(self, *faults, kinds=kinds, faulty=None, flags=(), env=None):
        for path in kinds:
            with self.subTest(path):
                self.anew()
                self.hub.faults = list(faults)
                self.hub.faulty = faulty or self.hub.faulty
                end = self.succeeds(f"{self.uri}/{path}", subset(path), *flags, env=env)
                self.assertEqual((self.hub.faults, end["unverified_files"]), ([], 0))


def answering(*answer):
    return lambda request: request.plain(*answer)


def setting(**values):
    def fault(request):
        for name, value in values.items():
            setattr(request, name, value)
    return fault


class Transient(FaultCase):
    """Each ends in success, with the right bytes."""

    def test_a_link_that_expires(self):
        self.repaired(lambda request: self.hub.expire(), kinds=("small.bin", "model.safetensors"),
                      faulty=lambda request: request.is_cdn)
        self.anew()
        # Once in the midst of everything.
        moved = [0]

        def count(size):
            moved[0] += size
            if moved[0] > 6 * MIB and not self.hub.epoch:
                self.hub.expire()
        self.hub.epoch, self.hub.sent = 0, count
        self.hub.faults = [setting(cut=100_000) for _ in range(8)]
        self.hub.faulty = lambda request: request.is_cdn and self.hub.epoch == 0
        self.succeeds(URI, FILES)
        self.assertEqual(self.hub.epoch, 1)

    def test_a_link_is_used_for_the_rest_of_its_range(self):
        self.hub.faults = [setting(cut=300_000)] * 4
        self.hub.faulty = lambda request: request.is_cdn
        self.succeeds(f"{self.uri}/model.safetensors", subset("model.safetensors"))
        self.assertLessEqual(self.hub.count("hub", "GET", "/resolve/"), 2, "one for each range of 16 MiB at most")
        self.assertGreaterEqual(self.hub.count("cdn"), 6)

    def test_cuts(self):
        self.repaired(*[setting(cut=after) for after in (0, 1, 5)])

    def test_silence(self):
        self.repaired(setting(stall=5), kinds=("small.bin",), flags=["--stall-timeout", "1"])

    def test_a_flipped_bit(self):
        def flip(request):
            low, high = request.headers["Range"].removeprefix("bytes=").split("-")
            request.flip = (int(low) + int(high)) // 2
        self.repaired(flip)

    def test_a_login_page_for_data(self):
        page = answering(200, LOGIN, ("Content-Type", "text/html"))
        self.repaired(page, page)
        self.repaired(page, page, faulty=lambda request: "/resolve/" in request.url)

    def test_a_login_page_for_lists(self):
        page = answering(200, LOGIN, ("Content-Type", "text/html"))
        self.hub.faulty = lambda request: request.is_api
        self.hub.faults = [page, page, lambda _: None, page, answering(502, b"")]
        self.succeeds(URI, FILES)
        self.assertEqual(self.hub.faults, [])

    def test_busy(self):
        busy = [answering(429, b"", ("Retry-After", "0")), answering(503, b""), answering(500, b"")]
        self.repaired(*busy)
        self.repaired(*busy, faulty=lambda request: "/resolve/" in request.url, kinds=("config.json", "model.safetensors"))
        self.repaired(*busy, answering(408, b""), faulty=lambda request: request.is_tree, kinds=("config.json",))

    def test_too_many_requests(self):
        """The server's own word is waited for, of both kinds."""
        for headers in ([("Retry-After", "1")], [("RateLimit", '"resolvers";r=0;t=0')]):
            for faulty in (lambda request: request.is_api, lambda request: "/resolve/" in request.url):
                self.anew()
                self.hub.faulty = faulty
                self.hub.faults = [answering(429, b"", *headers)]
                end = self.succeeds(URI, subset("config.json"), "--include", "config.json")
                self.assertGreaterEqual(end["seconds"], 1)
                self.assertRegex(self.said, "429.*trying again in 1\\.[01] s as the server asks")

    def test_a_quota_is_not_overdrawn(self):
        """r=0 is waited for before the next request: no 429 is provoked. The window of 0.9 s is told as t=0: wait 1 s."""
        self.hub.page, self.hub.quota, self.hub.window = 2, {"api": 3}, 0.9
        self.succeeds(self.uri, FILES)
        self.assertEqual(self.hub.refused, 0)
        self.assertIn("the hub's rate limit is used up; going on in 1 s (it is higher with a token", self.said)

    def test_three_in_ten_fail(self):
        many = {f"many/{n}": b"%d" % n for n in range(40)}
        self.hub.add("muster/many", {**FILES, **many}, lfs={f"many/{n}" for n in range(0, 40, 2)})
        lot = random.Random(5)
        self.hub.page = 10
        self.hub.faulty = lambda request: lot.random() < 0.3
        self.hub.always(answering(503, b"busy"))
        self.succeeds("hf://muster/many", {**FILES, **many}, "--patience", "60")


class Permanent(FaultCase):
    """Each ends in a clear error, and nothing is published."""

    def test_always_a_flipped_bit(self):
        for path in self.kinds:
            with self.subTest(path):
                self.anew()
                self.hub.always(setting(flip=5))
                self.refused(f"{self.uri}/{path}", 1, f"{path}: .*expected {hash_of(path, FILES[path])}.* nothing was published")

    def test_always_busy(self):
        self.hub.always(answering(503, b""))
        for faulty in (lambda request: request.is_api, lambda request: request.is_data):
            self.hub.faulty = faulty
            self.refused(URI, UNREACHABLE, "503.*giving up", "--patience", "1")

    def test_always_a_login_page(self):
        self.hub.always(answering(200, LOGIN, ("Content-Type", "text/html")))
        for faulty, words in ((lambda request: request.is_api, "it is no JSON: '<html><body>Please log in"),
                              (lambda request: request.is_data, "is not the part that was asked for")):
            self.hub.faulty = faulty
            self.refused(URI, UNREACHABLE, words, "--patience", "1")

    def test_links_that_never_hold(self):
        self.hub.faulty = lambda request: request.is_cdn
        self.hub.always(lambda request: self.hub.expire())
        self.refused(f"{self.uri}/model.safetensors", UNREACHABLE, "403 from http.*the link has expired", "--patience", "1")

    def test_a_cdn_that_refuses(self):
        self.hub.faulty = lambda request: request.is_cdn
        self.hub.always(answering(400, b"<Error><Code>InvalidArgument</Code></Error>"))
        self.refused(self.uri, 1, "400 from http.*InvalidArgument")

    def test_the_hub_asks_for_too_long(self):
        self.hub.faulty = lambda request: request.is_api
        self.hub.always(answering(429, b"", ("Retry-After", "3600")))
        self.refused(URI, UNREACHABLE, "asks to be left alone for 3600 s")


class Killed(FaultCase):
    def test_at_any_point(self):
        """Killed at twenty points, each start goes on, and the last ends right, having moved little more than all of it."""
        total = sum(map(len, FILES.values()))
        lot = random.Random(3)
        moved = [0]
        for _ in range(20):
            process = self.start(URI)
            enough = lot.randrange(total // 8)
            sent = [0]

            def count(size):
                sent[0] += size
                moved[0] += size
                if sent[0] >= enough:
                    process.kill()
            self.hub.sent = count
            process.communicate(timeout=DEADLINE)
            if process.returncode == 0:
                break
            self.check_nothing()
        self.hub.sent = lambda size: None
        end = self.succeeds(URI, FILES)
        self.assertLess(end["received"], total, "what was there was gone on with")

    def test_room_that_is_taken_already_is_not_asked_for_again(self):
        """On a file system with room for all of it, but not for what is on its way twice."""
        if os.geteuid() != 0:
            self.skipTest("only root can mount a small file system")
        os.mkdir(self.target)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=30m", "tmpfs", self.target], capture_output=True)
        if mounted.returncode != 0:
            self.skipTest(f"cannot mount: {mounted.stderr}")
        self.addCleanup(subprocess.run, ["umount", self.target])
        process = self.start(URI)
        moved = [0]

        def count(size):
            moved[0] += size
            if moved[0] > 16 * MIB:
                process.kill()
        self.hub.sent = count
        process.communicate(timeout=DEADLINE)
        self.assertEqual(process.returncode, -signal.SIGKILL)
        self.hub.sent = lambda size: None
        self.assertGreater(self.succeeds(URI, FILES)["kept"], 0)


class ClientCase(HubCase):
    """`call`: an expression of huggingface_hub, evaluated by it in a process of its own."""

    def client(self, call, **env):
        environment = clean_environment(**self.keys(HF_HOME=os.path.join(self.dir, "hf"), HF_HUB_DISABLE_PROGRESS_BARS="1",
                                                    HF_HUB_DISABLE_TELEMETRY="1", **env))
        done = subprocess.run([sys.executable, "-I", "-c", f"import huggingface_hub as hub\nprint({call})"], env=environment,
                              capture_output=True, text=True, timeout=DEADLINE)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()


def tree(folder):
    """Path -> content; what clients keep for themselves left out."""
    found = {}
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in (".cache", ".muster")]
        for name in names:
            path = os.path.join(parent, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, folder)] = file.read()
    return found


class Client(ClientCase):
    """The hub's own client and we bring the same, from the same hub."""

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

    def test_pages(self):
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
        self.same("hf://datasets/muster/data@refs/convert/parquet",
                  "'muster/data', repo_type='dataset', revision='refs/convert/parquet'")

    def test_patterns(self):
        for include, ignore in ((["*.json"], []), (["onnx/"], []), ([], ["onnx/", "*.bin"]), (["*e*"], ["*[!n]", "s*"]),
                                (["?onfig.json", "sub*"], []), (["*.txt"], ["config*"])):
            flags = [word for name, patterns in (("--include", include), ("--ignore", ignore)) if patterns
                     for word in (name, ",".join(patterns))]
            self.same(URI, f"{NAME!r}, allow_patterns={include or None}, ignore_patterns={ignore or None}", *flags)


class Cache(ClientCase):
    """--hf-cache: the hub's own client finds what we brought, without a network."""

    def setUp(self):
        super().setUp()
        self.cache = os.path.join(self.dir, "cache")
        self.target = self.cache  # of the flag; the folder of the repository is in it

    def bring_cached(self, uri, *flags, env=None):
        code, end = self.bring(uri, "--hf-cache", *flags, env=env)
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
        self.assertEqual(self.offline(f"hub.snapshot_download({NAME!r}, local_files_only=True)"), f"{folder}/snapshots/{commit}")
        self.assertEqual(tree(f"{folder}/snapshots/{commit}"), FILES)
        for path in FILES:
            self.assertEqual(self.offline(f"hub.hf_hub_download({NAME!r}, {path!r})"), f"{folder}/snapshots/{commit}/{path}")
        self.assertEqual(self.offline(f"hub.snapshot_download({NAME!r}, revision={commit!r})"), f"{folder}/snapshots/{commit}")
        self.assertEqual(sorted(os.listdir(folder)), [".muster", "refs", "snapshots"])
        with open(f"{folder}/refs/main") as file:
            self.assertEqual(file.read(), commit)
        self.assertIn("1 repos", self.offline("f'{len(hub.scan_cache_dir().repos)} repos'"))

    def test_beside_others(self):
        """A cache is shared: what else is in it stays as it is."""
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
        """It goes on in the folder that we have laid."""
        self.bring_cached(URI, "--include", "config.json")
        self.hub.reset()
        found = self.client(f"hub.snapshot_download({NAME!r})", HF_HUB_CACHE=self.cache)
        self.assertEqual(tree(found), FILES)

    def test_what_the_client_brought_before(self):
        """Its links to blobs give way to files; its blobs stay as they are."""
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
        verified = subprocess.run([os.environ["MUSTER_INITIALIZER"], "verify", os.path.dirname(folder)], capture_output=True)
        self.assertEqual(verified.returncode, 0, verified.stderr)

    def test_pinned(self):
        commit = self.repository.branches["main"]
        self.bring_cached(f"{URI}@{commit}", "--include", "*.json")
        self.assertEqual(tree(os.path.join(self.cache, "models--muster--model", "snapshots", commit)),
                         subset("config.json", "tokenizer.json"))
        self.assertFalse(os.path.exists(os.path.join(self.cache, "models--muster--model", "refs")))
        self.hub.reset()
        self.assertTrue(self.bring_cached(f"{URI}@{commit}", "--include", "*.json")["unchanged"])
        self.assertEqual(self.hub.count("hub"), 0)
        self.offline(f"hub.hf_hub_download({NAME!r}, 'config.json', revision={commit!r})")

    def test_nothing_is_wanted(self):
        ended, end = self.bring(URI, "--hf-cache", "--include", "*.gguf")
        self.assertEqual(ended, 1, self.said)
        self.assertRegex(end["reason"], "nothing in it is wanted")
        self.assertFalse(os.path.exists(os.path.join(self.cache, "models--muster--model", "refs")))

    def test_the_default_cache(self):
        for env, cache in (({}, ".cache/huggingface/hub"), ({"HF_HOME": os.path.join(self.dir, "home")}, "home/hub"),
                           ({"HF_HUB_CACHE": os.path.join(self.dir, "named")}, "named")):
            process = subprocess.run([os.environ["MUSTER_INITIALIZER"], "model", f"{URI}/config.json", "--hf-cache"],
                                     env=clean_environment(**self.keys(**env)), capture_output=True, text=True, timeout=DEADLINE)
            self.assertEqual(process.returncode, 0, process.stderr)
            cache = os.path.join(self.dir, cache)
            self.assertEqual(tree(self.offline(f"hub.snapshot_download({NAME!r})", cache=cache)), subset("config.json"))


if __name__ == "__main__":
    if any(name.split(".")[0] in ("Client", "Cache") for name in sys.argv[1:]):
        needs("hub-client", "run build-support/setup-hub-client", "huggingface_hub")
    unittest.main(verbosity=2)
