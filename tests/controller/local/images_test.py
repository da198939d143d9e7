"""`muster local --image-root`: containers in an unpacked image, a real one of busybox."""
import os
import shutil
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from local_case import LocalCase, plain_job, runtime  # noqa: E402

import class_runner  # noqa: E402  local_case.py says where it is

BUSYBOX = "/bin/busybox"
APPLETS = ("sh", "ls", "cat", "touch", "hostname", "pwd", "env", "mkdir", "grep", "echo")


class ImageCase(LocalCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if not os.path.exists(BUSYBOX):
            raise unittest.SkipTest("SKIPPED: busybox-static is not installed")

    def root(self, name="root", **files):
        """A folder with busybox, as an image has it: /bin is a link to /usr/bin."""
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
        pod = """containers: [{name: node, image: i, volumeMounts: [{name: own, mountPath: /workspace}, {name: deep, mountPath: /opt/app/deep/er}]}],
                 volumes: [{name: own, emptyDir: {}}, {name: deep, emptyDir: {}}]"""
        script = ("echo in $(cat /opt/app/name) $(ls /); pwd; touch /usr/x || echo read-only; touch /tmp/a /run/a /var/tmp/a /dev/shm/a "
                  "/workspace/a /opt/app/deep/er/a && echo writable; echo home $HOME path $PATH; grep -c rooted-node-0-1 /etc/hosts; "
                  "ls /home || echo no home")
        said = self.run_job(plain_job("rooted", script, nodes=2, runtime_name="with-volumes"), runtime("with-volumes", pod),
                            arguments=["--image-root", root])
        for node in ("[rooted-node-0-0] ", "[rooted-node-0-1] "):
            for line in ("in root", "/\n", "read-only\n", "writable\n",
                         "home /tmp path /muster-agent:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n", "1\n", "no home\n"):
                self.assertIn(node + line, said)
        self.assertEqual(sorted(os.listdir(root)), ["bin", "etc", "opt", "proc", "tmp", "usr", "var"])
        self.assertEqual(os.listdir(os.path.join(root, "opt/app")), ["name"])

    def test_torchrun_runs_in_it_by_the_agent(self):
        """The agent comes from the image of Muster, which is this machine's."""
        job = plain_job("agent", "echo $PET_NNODES from $(cat /opt/app/name)", nodes=2, runtime_name="torch")
        said = self.run_job(job, runtime("torch", "containers: [{name: node, image: i}]", torch=True), arguments=["--image-root", self.root()])
        for node in (0, 1):
            self.assertIn(f"[agent-node-0-{node}] 2 from root\n", said)

    def test_each_image_has_its_own(self):
        pod = """containers: [{name: node, image: "reg.example.com/a/train:1"}, {name: other, image: "reg.example.com/b:2", command: [cat, /opt/app/name]}]"""
        job = plain_job("several", "cat /opt/app/name", runtime_name="two")
        arguments = ["--image-root", self.root("usual"), "--image-root", f"train={self.root('wrong')}", "--image-root", f"train={self.root('right')}"]
        said = self.run_job(job, runtime("two", pod), arguments=arguments)
        self.assertIn("right", said)
        self.assertIn("usual", said)
        self.assertNotIn("wrong", said)

    def test_a_folder_of_this_machine_is_shown_by_workdir(self):
        os.mkdir(os.path.join(self.folder, "work"))
        self.file("work/mine", "mine")
        said = self.run_job(plain_job("shown", "pwd; cat mine; touch made"), arguments=["--image-root", self.root(), "--workdir", "work"])
        self.assertIn(f"[shown-node-0-0] {self.folder}/work\n[shown-node-0-0] mine", said)
        self.assertTrue(os.path.exists(os.path.join(self.folder, "work", "made")))

    def test_what_is_wrong(self):
        self.file("plain-file", "")
        for value, message in (("/nowhere", "--image-root '/nowhere': No such file"), ("i=plain-file", "--image-root 'plain-file': it is no folder")):
            with self.subTest(message):
                self.assertIn(message, self.run_job(plain_job("a", "true"), code=78, arguments=["--image-root", value]))
        empty = os.path.join(self.folder, "empty")
        os.mkdir(empty)
        said = self.run_job(plain_job("a", "true", more="  runtimePatches: []\n"), code=127, arguments=["--image-root", empty])
        self.assertIn("sh", said)


if __name__ == "__main__":
    class_runner.main()
