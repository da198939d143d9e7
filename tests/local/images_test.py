# SPDX-License-Identifier: Apache-2.0
"""`muster local --image-root` and `--oci`: containers in an image of busybox."""

import gzip
import hashlib
import io
import json
import os
import platform
import shutil
import sys
import tarfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from local_case import BIN, LocalCase, plain_job, runtime

import class_runner  # local_case.py says where it is
from sanitizer import sanitizer_of

BUSYBOX = "/bin/busybox"
APPLETS = ("sh", "ls", "cat", "touch", "hostname", "pwd", "env", "mkdir", "grep", "echo")


class ImageCase(LocalCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if not os.path.exists(BUSYBOX):
            raise unittest.SkipTest("SKIPPED: busybox-static is not installed")
        if sanitizer_of(f"{BIN}/muster") is not None:
            raise unittest.SkipTest("SKIPPED: the agent of a sanitizer build needs libraries that the image lacks")

    def root(self, name="root", **files):
        """Makes a folder with busybox, like that of an image: /bin is a link to /usr/bin."""
        root = os.path.join(self.folder, name)
        for folder in ("usr/bin", "etc", "opt/app", "var/tmp", "tmp", "proc"):
            os.makedirs(os.path.join(root, folder))
        os.symlink("usr/bin", os.path.join(root, "bin"))
        shutil.copy(BUSYBOX, os.path.join(root, "usr/bin/busybox"))
        for applet in APPLETS:
            os.symlink("/usr/bin/busybox", os.path.join(root, "usr/bin", applet))
        for path, text in {"opt/app/name": name, **files}.items():
            with open(os.path.join(root, path), "w") as file:
                file.write(text)
        return root


class Roots(ImageCase):
    def test_a_container_sees_the_images_files_alone(self):
        root = self.root()
        pod = """containers: [{name: node, image: i,
                   volumeMounts: [{name: own, mountPath: /workspace}, {name: deep, mountPath: /opt/app/deep/er}]}],
                 volumes: [{name: own, emptyDir: {}}, {name: deep, emptyDir: {}}]"""
        script = (
            "echo in $(cat /opt/app/name) $(ls /); pwd; touch /usr/x || echo read-only; "
            "touch /tmp/a /run/a /var/tmp/a /dev/shm/a "
            "/workspace/a /opt/app/deep/er/a && echo writable; echo home $HOME path $PATH; "
            "grep -c rooted-node-0-1 /etc/hosts; "
            "ls /home || echo no home"
        )
        said = self.run_job(
            plain_job("rooted", script, nodes=2, runtime_name="with-volumes"),
            runtime("with-volumes", pod),
            arguments=["--image-root", root],
        )
        for node in ("[rooted-node-0-0] ", "[rooted-node-0-1] "):
            for line in (
                "in root",
                "/\n",
                "read-only\n",
                "writable\n",
                "home /tmp path /muster-agent:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n",
                "1\n",
                "no home\n",
            ):
                self.assertIn(node + line, said)
        self.assertEqual(sorted(os.listdir(root)), ["bin", "etc", "opt", "proc", "tmp", "usr", "var"])
        self.assertEqual(os.listdir(os.path.join(root, "opt/app")), ["name"])

    def test_torchrun_runs_in_it_by_the_agent(self):
        """The agent is the muster binary of this machine, which replaces Muster's image."""
        job = plain_job("agent", "echo $PET_NNODES from $(cat /opt/app/name)", nodes=2, runtime_name="torch")
        said = self.run_job(
            job,
            runtime("torch", "containers: [{name: node, image: i}]", torch=True),
            arguments=["--image-root", self.root()],
        )
        for node in (0, 1):
            self.assertIn(f"[agent-node-0-{node}] 2 from root\n", said)

    def test_each_image_has_its_own(self):
        pod = """containers: [{name: node, image: "reg.example.com/a/train:1"},
                              {name: other, image: "reg.example.com/b:2", command: [cat, /opt/app/name]}]"""
        job = plain_job("several", "cat /opt/app/name", runtime_name="two")
        arguments = [
            "--image-root",
            self.root("usual"),
            "--image-root",
            f"train={self.root('wrong')}",
            "--image-root",
            f"train={self.root('right')}",
        ]
        said = self.run_job(job, runtime("two", pod), arguments=arguments)
        self.assertIn("right", said)
        self.assertIn("usual", said)
        self.assertNotIn("wrong", said)

    def test_a_folder_of_this_machine_is_shown_by_workdir(self):
        os.mkdir(os.path.join(self.folder, "work"))
        self.file("work/mine", "mine")
        said = self.run_job(
            plain_job("shown", "pwd; cat mine; touch made"),
            arguments=["--image-root", self.root(), "--workdir", "work"],
        )
        self.assertRegex(said, rf"(?s)\[shown-node-0-0\] {self.folder}/work\n.*\[shown-node-0-0\] mine")
        self.assertTrue(os.path.exists(os.path.join(self.folder, "work", "made")))

    def test_a_container_with_a_working_folder_sees_it_too(self):
        os.mkdir(os.path.join(self.folder, "shared"))
        self.file("shared/mine", "mine")
        pod = "containers: [{name: node, image: i, workingDir: /opt/app}]"
        said = self.run_job(
            plain_job("both", f"pwd; cat {self.folder}/shared/mine", runtime_name="own"),
            runtime("own", pod),
            arguments=["--image-root", self.root(), "--workdir", "shared"],
        )
        self.assertRegex(said, r"(?s)\] /opt/app\n.*\] mine")

    def test_what_is_wrong(self):
        self.file("plain-file", "")
        for value, message in (
            ("/nowhere", "--image-root '/nowhere': No such file"),
            ("i=plain-file", "--image-root 'plain-file': it is not a folder"),
        ):
            with self.subTest(message):
                self.assertIn(message, self.run_job(plain_job("a", "true"), code=78, arguments=["--image-root", value]))
        empty = os.path.join(self.folder, "empty")
        os.mkdir(empty)
        said = self.run_job(
            plain_job("a", "true", more="  runtimePatches: []\n"), code=127, arguments=["--image-root", empty]
        )
        self.assertIn("sh", said)


ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())


class Tar:
    """A tar in memory, member by member."""

    def __init__(self):
        self.bytes = io.BytesIO()
        self.tar = tarfile.open(fileobj=self.bytes, mode="w", format=tarfile.PAX_FORMAT)

    def add(self, name, content=None, kind=None, target="", mode=0o755):
        member = tarfile.TarInfo(name)
        member.type = kind or (tarfile.DIRTYPE if content is None else tarfile.REGTYPE)
        member.linkname, member.mode, member.mtime, member.size = target, mode, 1_000_000_000, len(content or b"")
        self.tar.addfile(member, io.BytesIO(content or b""))
        return self

    def end(self):
        self.tar.close()
        return self.bytes.getvalue()


def lower_layer():
    with open(BUSYBOX, "rb") as file:
        tar = Tar().add("usr/bin/busybox", file.read())
    for applet in APPLETS[1:]:
        tar.add(f"usr/bin/{applet}", kind=tarfile.SYMTYPE, target="/usr/bin/busybox")
    tar.add("usr/bin/sh", kind=tarfile.LNKTYPE, target="usr/bin/busybox").add(
        "bin", kind=tarfile.SYMTYPE, target="usr/bin"
    )
    tar.add("etc/").add("opt/app/lower", b"lower").add("opt/app/gone", b"gone").add("opt/hidden/old", b"old").add(
        "var/tmp"
    )
    tar.add("dev/null", kind=tarfile.CHRTYPE).add("tmp/pipe", kind=tarfile.FIFOTYPE)
    return tar.end()


def upper_layer():
    return (
        Tar()
        .add("opt/app/.wh.gone", b"")
        .add("opt/hidden/new", b"new")
        .add("opt/hidden/.wh..wh..opq", b"")
        .add("opt/app/upper", b"upper", mode=0o4555)
        .add("./opt//app/./name", b"layers")
        .end()
    )


CONFIG = {
    "Entrypoint": ["/bin/sh", "-c"],
    "Cmd": ["echo by the image alone $0"],
    "Env": ["GREETING=hello", "PATH=/bin"],
    "WorkingDir": "/opt/app",
}


def oci_layout(layers, change=lambda name, value: value, compress=False):
    """A tar of an OCI image layout. `change`: changes index, manifest and config before they are written."""
    tar = Tar().add("oci-layout", b'{"imageLayoutVersion": "1.0.0"}')

    def blob(content):
        digest = hashlib.sha256(content).hexdigest()
        tar.add(f"blobs/sha256/{digest}", content)
        return {"digest": f"sha256:{digest}", "size": len(content)}

    def part(name, value):
        return json.dumps(change(name, value)).encode()

    config = blob(part("config", {"architecture": ARCHITECTURE, "os": "linux", "config": CONFIG}))
    blobs = [blob(gzip.compress(layer, 1) if compress else layer) for layer in layers]
    manifest = blob(part("manifest", {"schemaVersion": 2, "config": config, "layers": blobs}))
    manifest["platform"] = {"os": "linux", "architecture": ARCHITECTURE}
    other = {"digest": "sha256:" + "0" * 64, "platform": {"os": "linux", "architecture": "s390x"}}
    return tar.add("index.json", part("index", {"schemaVersion": 2, "manifests": [other, manifest]})).end()


def docker_archive(layers):
    config = json.dumps({"architecture": ARCHITECTURE, "os": "linux", "config": CONFIG}).encode()
    tar = Tar().add("config.json", config)
    for i, layer in enumerate(layers):
        tar.add(f"{i}/layer.tar", layer)
    tar.add("same/layer.tar", kind=tarfile.SYMTYPE, target="../0/layer.tar")  # as old versions of docker repeat a layer
    names = ["0/layer.tar", "same/layer.tar", *[f"{i}/layer.tar" for i in range(1, len(layers))]]
    return tar.add(
        "manifest.json", json.dumps([{"Config": "config.json", "RepoTags": ["a:1"], "Layers": names}]).encode()
    ).end()


class Oci(ImageCase):
    def image(self, content, name="image.tar"):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as file:
            file.write(content)
        return path

    def images(self):
        folder = os.path.join(self.folder, "state", "muster", "images")
        return sorted(name for name in os.listdir(folder) if name != "lock") if os.path.exists(folder) else []

    def test_it_runs_as_its_layers_and_its_configuration_say(self):
        script = "echo $GREETING $(pwd) $(ls) $(ls /opt/hidden); cat name"
        pod = (
            'containers: [{name: node, image: "a:1"}, {name: side, image: b}, {name: third, image: b, args: '
            '["echo other arguments"]}]'
        )
        for content in (
            oci_layout([lower_layer(), upper_layer()], compress=True),
            docker_archive([lower_layer(), upper_layer()]),
        ):
            with self.subTest(len(content)):
                said = self.run_job(
                    plain_job("oci", script, runtime_name="three"),
                    runtime("three", pod),
                    arguments=["--oci", self.image(content)],
                )
                self.assertIn("] hello /opt/app lower name upper new\n", said)
                self.assertIn("] layers", said)
                self.assertIn("by the image alone", said)
                self.assertIn("other arguments", said)
                self.assertIn(" devices, pipes and sockets are left out", said)
        for image in self.images():
            root = os.path.join(self.folder, "state", "muster", "images", image, "root")
            self.assertEqual(
                os.stat(os.path.join(root, "opt/app/upper")).st_mode & 0o7777, 0o755, "no setuid bit stays"
            )
            self.assertEqual(os.stat(os.path.join(root, "opt/app/upper")).st_mtime, 1_000_000_000)
            self.assertEqual(os.stat(os.path.join(root, "usr/bin/sh")).st_nlink, 2)

    def test_it_is_unpacked_once(self):
        arguments = ["--oci", f"debian={self.image(oci_layout([lower_layer()]))}"]
        for first in (True, False):
            said = self.run_job(plain_job("once", "echo fine"), arguments=arguments)
            self.assertEqual("unpacks it; later runs use the unpacked files" in said, first, said)
            self.assertIn("] fine", said)
        self.assertEqual(len(self.images()), 1)

    def test_a_folder_is_as_good_as_its_tar(self):
        with tarfile.open(self.image(oci_layout([lower_layer()]))) as tar:
            tar.extractall(os.path.join(self.folder, "layout"))
        self.assertIn(
            "] fine",
            self.run_job(plain_job("folder", "echo fine"), arguments=["--oci", os.path.join(self.folder, "layout")]),
        )

    def test_what_a_killed_start_has_left_goes(self):
        left = os.path.join(self.folder, "state", "muster", "images", "0" * 64 + ".part", "root")
        os.makedirs(left)
        self.run_job(plain_job("after", "true"), arguments=["--oci", self.image(oci_layout([lower_layer()]))])
        self.assertEqual(len(self.images()), 1)
        self.assertFalse(os.path.exists(left))

    def test_nothing_lands_outside_of_the_root(self):
        away = os.path.join(self.folder, "away")
        os.mkdir(away)
        rows = [
            (Tar().add("../../out", b"x"), "member '../../out': it leads out of the image"),
            (Tar().add("a/../../../out", b"x"), "it leads out of the image"),
            (
                Tar().add("link", kind=tarfile.LNKTYPE, target="../../../etc/passwd"),
                "its hard link leads out of the image",
            ),
            (
                Tar().add("link", kind=tarfile.LNKTYPE, target="etc/passwd"),
                "its hard link leads to 'etc/passwd', which is missing",
            ),
            (Tar().add("x/y", b"").add("x/.wh...", b""), "it leads out of the image"),
            (Tar().add("away", kind=tarfile.SYMTYPE, target=away).add("away/out", b"x"), ""),
            (Tar().add("up", kind=tarfile.SYMTYPE, target="../../../../../../../..").add(f"up{away}/out", b"x"), ""),
            (Tar().add("f", b"x").add("f/out", b"x"), "Not a directory"),
        ]
        for tar, message in rows:
            with self.subTest(message):
                content = oci_layout([lower_layer(), tar.end()])
                job = self.start(plain_job("hostile", "true"), arguments=["--oci", self.image(content)])
                self.assertEqual(job.wait() in (0, 78), True, job.said)
                self.assertIn(message, job.said)
                self.assertEqual(os.listdir(away), [])
                self.assertFalse(
                    [name for name in self.images() if name.endswith(".part")], "nothing is left of what failed"
                )

    def test_what_is_no_image(self):
        layer = lower_layer()

        def changed(part, change):
            return oci_layout([layer], lambda name, value: {**value, **change} if name == part else value)

        whole = oci_layout([layer])
        rows = [
            (b"no tar at all", "the tar is broken"),
            (
                Tar().add("a", b"x").end(),
                "it has neither index.json nor manifest.json, and so is not an image; make one by `docker save IMAGE`",
            ),
            (whole[: len(whole) // 2], ""),
            (whole.replace(b"BusyBox", b"BusyBoz"), "its content does not match its digest"),
            (changed("index", {"manifests": []}), f"it has no image for linux/{ARCHITECTURE}"),
            (
                changed("index", {"manifests": [{"digest": "sha256:../../../etc/passwd"}]}),
                "is not a sha256:<64 hexadecimal digits>",
            ),
            (changed("index", {"manifests": [{"digest": "md5:1"}]}), "is not a sha256:"),
            (changed("index", {"manifests": [{}, {}]}), "it has 2 images for this machine; give a file with one"),
            (changed("manifest", {"layers": []}), "it has 0 layers"),
            (changed("manifest", {"layers": [{"digest": "sha256:" + "1" * 64}]}), "No such file"),
            (Tar().add("manifest.json", b"[").end(), "manifest.json: "),
            (Tar().add("manifest.json", b'[{"Config": "../../../etc/passwd", "Layers": ["a"]}]').end(), ""),
            (Tar().add("index.json", b" " * (5 << 20)).end(), "the limit is"),
        ]
        for content, message in rows:
            with self.subTest(message):
                self.assertIn(
                    message, self.run_job(plain_job("wrong", "true"), code=78, arguments=["--oci", self.image(content)])
                )
                self.assertEqual(self.images(), [])
        self.assertIn(
            "No such file", self.run_job(plain_job("wrong", "true"), code=78, arguments=["--oci", "/nowhere"])
        )
        self.assertIn(
            "it is neither a file nor a folder",
            self.run_job(plain_job("wrong", "true"), code=78, arguments=["--oci", "/dev/null"]),
        )


if __name__ == "__main__":
    class_runner.main()
