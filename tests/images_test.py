# SPDX-License-Identifier: Apache-2.0
"""packaging/make-images: two runs give the same images, the images follow the format, and their binaries run. An image
for several architectures is an index. And build-support/flags.cmake: a build has the same bytes in every folder."""

import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

import class_runner

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
sys.path.insert(0, os.path.join(ROOT, "packaging"))
sys.dont_write_bytecode = True
import oci_image

BIN = os.environ.get("MUSTER_BIN", os.path.join(ROOT, "build", "bin"))
NAMES = ("muster", "muster-initializer", "muster-controller")
TIME = 1700000000
with open(os.path.join(ROOT, "CMakeLists.txt")) as sources:
    VERSION = re.search(r"project\(muster VERSION (\S+)", sources.read()).group(1)


def make_images(out, *flags):
    return subprocess.run(
        [os.path.join(ROOT, "packaging", "make-images"), "--bin", BIN, "--out", out, *flags],
        capture_output=True,
        text=True,
        env={**os.environ, "SOURCE_DATE_EPOCH": str(TIME)},
    )


def paths_in(content, *folders):
    """Paths in `content` that are in one of `folders`, or one of `folders` itself. A path ends at a zero byte or a line
    feed."""
    begins = b"|".join(re.escape(folder.encode()) for folder in folders)
    return re.findall(rb"(?<![\w./])(?:" + begins + rb")(?:/[^\0\n]*)?(?=[\0\n])", content)


# Its sources print their own paths: a source, a header, and a header that the build writes.
PROGRAM = {
    "CMakeLists.txt": """cmake_minimum_required(VERSION 3.25)
project(program LANGUAGES CXX)
include(build-support/flags.cmake)
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/room/written.h CONTENT "inline const char* Written() { return __FILE__; }")
muster_room(part COLD SOURCES room/part.cc)
add_executable(program main.cc)
target_link_libraries(program PRIVATE part)
""",
    "room/part.h": "#include <vector>\nstd::vector<int> Part();\ninline const char* Header() { return __FILE__; }\n",
    "room/part.cc": '#include "room/part.h"\n#include <cassert>\n'
    "std::vector<int> Part() { std::vector<int> made(3); assert(made.size() == 3); return made; }\n",
    "main.cc": '#include <cstdio>\n#include "room/part.h"\n#include "room/written.h"\n'
    'int main() { std::printf("%s %s %s %d", __FILE__, Header(), Written(), int(Part().size())); }\n',
}


class Image:
    """An image read from its archive, as the format asks: each blob is found by its digest, which is checked together
    with its size."""

    def __init__(self, archive):
        with tarfile.open(archive) as tar:
            self.files = {member.name: tar.extractfile(member).read() for member in tar if member.isfile()}
        self.index = json.loads(self.files["index.json"])
        [self.entry] = self.index["manifests"]
        self.manifest = json.loads(self.blob(self.entry))
        self.config = json.loads(self.blob(self.manifest["config"]))
        self.layers = [gzip.decompress(self.blob(layer)) for layer in self.manifest["layers"]]

    def blob(self, descriptor):
        content = self.files["blobs/" + descriptor["digest"].replace(":", "/")]
        if (len(content), f"sha256:{hashlib.sha256(content).hexdigest()}") != (
            descriptor["size"],
            descriptor["digest"],
        ):
            raise AssertionError(f"{descriptor} is not what its blob is")
        return content

    def members(self):
        for content in self.layers:
            with tarfile.open(fileobj=io.BytesIO(content)) as tar:
                yield from tar

    def unpack(self, folder):
        for content in self.layers:
            with tarfile.open(fileobj=io.BytesIO(content)) as tar:
                tar.extractall(folder)


class Images(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        missing = [name for name in NAMES if not os.access(os.path.join(BIN, name), os.X_OK)]
        if missing:
            raise unittest.SkipTest(f"SKIPPED: {BIN} has no {', '.join(missing)}")
        cls.folder = tempfile.mkdtemp(prefix="muster-images-test-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        old = os.umask(0o077)
        cls.first = make_images(os.path.join(cls.folder, "first"))
        os.umask(old)
        cls.second = make_images(
            os.path.join(cls.folder, "second"), "--registry", "registry.example.com/team", "--tag", "1"
        )
        if cls.first.returncode or cls.second.returncode:
            raise AssertionError(cls.first.stderr + cls.second.stderr)
        cls.images = {name: Image(os.path.join(cls.folder, "first", f"{name}.tar")) for name in NAMES}

    def test_digests_are_the_same_twice(self):
        first, second = ([line.split() for line in made.stdout.splitlines()] for made in (self.first, self.second))
        self.assertEqual([line[0] for line in first], [f"docker.io/library/{name}:{VERSION}" for name in NAMES])
        self.assertEqual([line[0] for line in second], [f"registry.example.com/team/{name}:1" for name in NAMES])
        self.assertEqual([line[1] for line in first], [line[1] for line in second])

    def test_the_format(self):
        for name, image in self.images.items():
            with self.subTest(name):
                self.assertEqual(json.loads(image.files["oci-layout"]), {"imageLayoutVersion": "1.0.0"})
                self.assertEqual(
                    image.entry["annotations"]["io.containerd.image.name"], f"docker.io/library/{name}:{VERSION}"
                )
                self.assertEqual(
                    image.config["rootfs"]["diff_ids"],
                    [f"sha256:{hashlib.sha256(layer).hexdigest()}" for layer in image.layers],
                )
                [docker] = json.loads(image.files["manifest.json"])
                self.assertEqual(
                    [docker["Config"], *docker["Layers"]],
                    [
                        "blobs/" + blob["digest"].replace(":", "/")
                        for blob in (image.manifest["config"], *image.manifest["layers"])
                    ],
                )
                self.assertLessEqual({docker["Config"], *docker["Layers"]}, set(image.files))
                for place, content in image.files.items():
                    with open(os.path.join(self.folder, "first", name, place), "rb") as file:
                        self.assertEqual(file.read(), content, place)

    def test_what_an_image_says_of_itself(self):
        for name, image in self.images.items():
            said = subprocess.run([os.path.join(BIN, name), "--version"], capture_output=True, text=True).stdout
            version, commit = re.match(r"\S+ (\S+) \(commit (\S+)\)", said).groups()
            labels = {key.rpartition(".")[2]: value for key, value in image.config["config"]["Labels"].items()}
            self.assertEqual(labels, {"title": name, "version": version, "revision": commit, "licenses": "Apache-2.0"})
            self.assertEqual(image.config["config"]["Entrypoint"], [name])
            self.assertEqual(
                image.config["config"].get("User"), None if name == "muster-initializer" else "65532:65532"
            )
            self.assertEqual(image.config["created"], "2023-11-14T22:13:20Z")

    def test_files_tell_nothing_of_the_machine(self):
        for name, image in self.images.items():
            for member in image.members():
                self.assertEqual(
                    (member.uid, member.gid, member.uname, member.gname, member.mtime),
                    (0, 0, "", "", TIME),
                    member.name,
                )
                self.assertIn(member.mode, (0o644, 0o755, 0o1777), member.name)
            for content in image.layers[-1:]:
                self.assertNotIn(ROOT.encode(), content, f"{name} has a path of this build")

    def test_the_agent_is_alone(self):
        self.assertEqual(
            [member.name for member in self.images["muster"].members() if member.isfile()], ["usr/local/bin/muster"]
        )

    def test_the_packages_are_those_of_the_lists(self):
        """Each package of images/*-packages.txt, the list for those who install packages, is in the image."""
        for name in NAMES[1:]:
            with open(os.path.join(ROOT, "images", f"{name.removeprefix('muster-')}-packages.txt")) as file:
                listed = {line.strip() for line in file if not line.startswith("#")}
            in_image = {
                member.name.rpartition("/")[2] for member in self.images[name].members() if "/status.d/" in member.name
            }
            self.assertLessEqual(listed, in_image, name)

    def test_they_run(self):
        if os.geteuid() != 0:
            self.skipTest("SKIPPED: chroot takes root")
        for name, image in self.images.items():
            with self.subTest(name):
                root = os.path.join(self.folder, f"root-{name}")
                image.unpack(root)
                said = subprocess.run(
                    [shutil.which("chroot"), "--userspec=65532:65532", root, f"/usr/local/bin/{name}", "--version"],
                    capture_output=True,
                    text=True,
                    env={},
                )
                self.assertEqual((said.returncode, said.stderr), (0, ""))
                self.assertRegex(said.stdout, rf"^{name} ")

    def test_certificates_are_there(self):
        for name in NAMES[1:]:
            self.assertIn(b"BEGIN CERTIFICATE", self.images[name].layers[0], name)

    def test_what_is_refused(self):
        empty = os.path.join(self.folder, "empty")
        os.mkdir(empty)
        script = os.path.join(ROOT, "packaging", "make-images")
        done = subprocess.run([script, "--bin", empty, "--out", empty], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"make-images: {empty}/muster cannot be run: No such file", done.stderr)
        done = subprocess.run(
            [script, "--bin", BIN, "--out", empty],
            capture_output=True,
            text=True,
            env={**os.environ, "SOURCE_DATE_EPOCH": "now"},
        )
        self.assertIn("SOURCE_DATE_EPOCH is 'now'; want seconds since 1970", done.stderr)


class Several(unittest.TestCase):
    def test_an_image_for_two_architectures_is_an_index(self):
        with tempfile.TemporaryDirectory(prefix="muster-index-test-") as folder:
            images = []
            for architecture in ("amd64", "arm64"):
                root = os.path.join(folder, architecture)
                os.makedirs(root)
                with open(os.path.join(root, "program"), "w") as file:
                    file.write(architecture)
                images.append(oci_image.Image(architecture, [oci_image.layer(root, TIME)], {"Entrypoint": ["program"]}))
            place = os.path.join(folder, "image")
            digest = oci_image.write(place, "registry.example.com/team/image:1", images, TIME)
            with tarfile.open(f"{place}.tar") as tar:
                blob = lambda part: json.load(tar.extractfile(f"blobs/sha256/{part['digest'].removeprefix('sha256:')}"))
                [entry] = json.load(tar.extractfile("index.json"))["manifests"]
                self.assertEqual(entry["digest"], digest)
                self.assertEqual(entry["mediaType"], "application/vnd.oci.image.index.v1+json")
                self.assertEqual(entry["annotations"]["io.containerd.image.name"], "registry.example.com/team/image:1")
                manifests = blob(entry)["manifests"]
                self.assertEqual(
                    [part["platform"] for part in manifests],
                    [{"architecture": name, "os": "linux"} for name in ("amd64", "arm64")],
                )
                configs = [blob(blob(part)["config"]) for part in manifests]
                self.assertEqual([config["architecture"] for config in configs], ["amd64", "arm64"])
                [docker] = json.load(tar.extractfile("manifest.json"))
                self.assertEqual(docker["Config"].rpartition("/")[2], blob(manifests[0])["config"]["digest"][7:])


class Folders(unittest.TestCase):
    def test_no_binary_has_a_path_of_this_machine(self):
        """The debug symbols have none either; the images do not contain them."""
        for name in NAMES:
            path = os.path.join(BIN, name)
            if not os.path.exists(path):
                self.skipTest(f"SKIPPED: there is no {path}")
            with open(path, "rb") as file:
                self.assertEqual(paths_in(file.read(), ROOT, os.path.dirname(BIN)), [], name)

    def test_a_path_is_seen(self):
        self.assertEqual(paths_in(b"a\0/src/x.cc\0./src/y.cc\0/srcs/z.cc\0a=/src\0", "/src"), [b"/src/x.cc", b"/src"])

    def test_every_folder_gives_the_same_bytes(self):
        """Compiles a program in two folders, once without ccache and once with an empty ccache."""
        with tempfile.TemporaryDirectory(prefix="muster-folders-test-") as folder:
            made = {}
            for place, cache in (
                ("main", {"CCACHE_DISABLE": "1"}),
                ("deeper/inside/other", {"CCACHE_DIR": os.path.join(folder, "cache")}),
            ):
                source = os.path.join(folder, place)
                for name, content in PROGRAM.items():
                    path = os.path.join(source, name)
                    os.makedirs(os.path.dirname(path), exist_ok=True)
                    with open(path, "w") as file:
                        file.write(content)
                shutil.copytree(
                    os.path.join(ROOT, "build-support"),
                    os.path.join(source, "build-support"),
                    ignore=shutil.ignore_patterns("__pycache__"),
                )
                build = os.path.join(source, "build")
                for command in (
                    [
                        "cmake",
                        "-G",
                        "Ninja",
                        "-S",
                        source,
                        "-B",
                        build,
                        "-DCMAKE_BUILD_TYPE=Release",
                        "-DMUSTER_PRECOMPILE=OFF",
                    ],
                    ["cmake", "--build", build],
                ):
                    done = subprocess.run(
                        command, cwd=source, capture_output=True, text=True, env={**os.environ, **cache}
                    )
                    self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                with open(os.path.join(build, "bin", "program"), "rb") as file:
                    made[place] = file.read()
                self.assertEqual(paths_in(made[place], folder), [])
            one, other = made.values()
            self.assertIn(b"room/part.h", one, "the program names no source: nothing is compared")
            self.assertTrue(
                one == other,
                "the bytes differ: build one twice and compare them with diffoscope, or readelf --debug-dump",
            )


if __name__ == "__main__":
    class_runner.main()
