# SPDX-License-Identifier: Apache-2.0
"""`muster install`: each file is whole or absent at every moment, in any image, for any user, on any file system."""

import concurrent.futures
import ctypes
import fcntl
import filecmp
import os
import platform
import random
import resource
import shutil
import signal
import struct
import subprocess
import tempfile

from muster_case import DEADLINE, MUSTER, MusterCase, main, sanitized

BAD_CONFIGURATION = 78
USAGE = 64
NOBODY = 65534
ALL = ["muster", "muster-rsh", "torchrun"]
TEMPORARY = ".muster-install."


def is_static(path):
    with open(path, "rb") as file:
        return b"ld-linux" not in file.read(8192)


def deny(*calls):
    """Runs in the child: makes the named system calls fail with EPERM, as on a file system without links."""
    numbers = {"x86_64": {"symlinkat": 266, "linkat": 265}, "aarch64": {"symlinkat": 36, "linkat": 37}}[
        platform.machine()
    ]
    program = [(0x20, 0, 0, 0)]  # load the number
    for call in calls:
        program += [(0x15, 0, 1, numbers[call]), (0x06, 0, 0, 0x00050001)]  # this call: errno 1
    program.append((0x06, 0, 0, 0x7FFF0000))  # allow
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in program))
    header = struct.pack("HxxxxxxP", len(program), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, header, 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp")


class InstallCase(MusterCase):
    @classmethod
    def setUpClass(cls):
        """Makes a binary as it is shipped: without debugging symbols, and readable by everybody."""
        cls.image = tempfile.mkdtemp(prefix="muster-image-")
        cls.addClassCleanup(shutil.rmtree, cls.image, ignore_errors=True)
        os.chmod(cls.image, 0o755)
        cls.binary = os.path.join(cls.image, "muster")
        if not shutil.which("strip") or subprocess.run(["strip", "-o", cls.binary, MUSTER]).returncode:
            shutil.copy(MUSTER, cls.binary)
        os.chmod(cls.binary, 0o755)

    def setUp(self):
        super().setUp()
        os.chmod(self.dir, 0o755)
        self.target = os.path.join(self.dir, "bin")

    def install(self, folder=None, *flags, binary=None, **more):
        return subprocess.run(
            [binary or self.binary, "install", folder or self.target, *flags],
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            **more,
        )

    def installed(self, done, folder=None):
        """Checks that everything is there, whole and executable, and nothing else."""
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout.count("\n"), 1)
        folder = folder or self.target
        self.assertEqual(sorted(os.listdir(folder)), ALL)
        self.assertTrue(filecmp.cmp(self.binary, os.path.join(folder, "muster"), shallow=False))
        self.assertEqual(os.stat(os.path.join(folder, "muster")).st_mode & 0o7777, 0o755)
        for link in ("torchrun", "muster-rsh"):
            self.assertTrue(filecmp.cmp(self.binary, os.path.join(folder, link), shallow=False), link)

    def refused(self, done, *said):
        self.assertEqual((done.returncode, done.stdout), (BAD_CONFIGURATION, ""), done.stderr)
        for text in said:
            self.assertIn(text, done.stderr)

    def mount(self, *options):
        os.makedirs(self.target, exist_ok=True)
        if subprocess.run(
            ["mount", "-t", "tmpfs", "-o", ",".join(options), "tmpfs", self.target], capture_output=True
        ).returncode:
            self.skipTest("NOT TESTED: no tmpfs can be mounted here (needs root)")
        self.addCleanup(subprocess.run, ["umount", self.target], check=True)

    def need_root(self):
        if os.geteuid() != 0:
            self.skipTest("NOT TESTED: needs root")


class Install(InstallCase):
    def test_a_new_folder_is_made_and_filled(self):
        deep = os.path.join(self.dir, "a", "b", "c")
        done = self.install(deep + "/", preexec_fn=lambda: os.umask(0o077))
        self.installed(done, deep)
        self.assertRegex(done.stdout, r"^muster \S+ \(commit \S+\) installed in \S+: muster, torchrun, muster-rsh\n$")
        self.assertEqual(os.readlink(os.path.join(deep, "torchrun")), "muster")
        self.assertEqual(os.readlink(os.path.join(deep, "muster-rsh")), "muster")
        for folder in ("a", "a/b", "a/b/c"):
            self.assertEqual(os.stat(os.path.join(self.dir, folder)).st_mode & 0o777, 0o755)

    def test_the_link_is_torchrun(self):
        self.installed(self.install())
        done = subprocess.run(
            [os.path.join(self.target, "torchrun"), "--help"], capture_output=True, text=True, timeout=DEADLINE
        )
        self.assertEqual(done.returncode, 0)
        self.assertIn("--nproc", done.stdout)

    def test_again_nothing_is_written(self):
        self.installed(self.install())
        before = {name: os.lstat(os.path.join(self.target, name)) for name in ALL}
        done = self.install()
        self.installed(done)
        self.assertIn("nothing written", done.stdout)
        self.installed(self.install(binary=os.path.join(self.target, "muster")))  # onto itself
        for name, facts in before.items():
            now = os.lstat(os.path.join(self.target, name))
            self.assertEqual((now.st_ino, now.st_mtime_ns), (facts.st_ino, facts.st_mtime_ns))

    def test_only_what_is_missing_is_made(self):
        self.installed(self.install())
        os.unlink(os.path.join(self.target, "torchrun"))
        done = self.install()
        self.installed(done)
        self.assertTrue(done.stdout.endswith(": torchrun\n"), done.stdout)

    def test_over_an_older_file_that_is_running(self):
        os.mkdir(self.target)
        old = os.path.join(self.target, "muster")
        shutil.copy("/bin/cat", old)
        with subprocess.Popen([old], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
            self.installed(self.install())
            out, _ = running.communicate(b"unharmed")
        self.assertEqual((out, running.returncode), (b"unharmed", 0))

    def test_a_file_of_the_right_bytes_and_the_wrong_mode_is_mended(self):
        self.installed(self.install())
        os.chmod(os.path.join(self.target, "muster"), 0o700)
        self.installed(self.install())

    def test_a_damaged_file_is_mended(self):
        self.installed(self.install())
        with open(os.path.join(self.target, "muster"), "r+b") as file:
            file.seek(-1, os.SEEK_END)
            last = file.read(1)
            file.seek(-1, os.SEEK_END)
            file.write(bytes([last[0] ^ 1]))
        self.installed(self.install())

    def test_wrong_arguments_are_refused(self):
        for arguments in ([], ["a", "b"], ["--no-such-flag", "a"], [""]):
            done = subprocess.run(
                [MUSTER, "install", *arguments], capture_output=True, text=True, timeout=DEADLINE, cwd=self.dir
            )
            self.assertEqual(done.returncode, USAGE, done)
        self.assertEqual(os.listdir(self.dir), ["socket"])

    def test_a_file_in_the_way(self):
        with open(self.target, "w"):
            pass
        self.refused(self.install(), self.target, "is not a folder")
        self.refused(self.install(os.path.join(self.target, "deeper")), self.target, "is not a folder")

    def test_somebody_elses_torchrun_stays(self):
        theirs = os.path.join(self.target, "torchrun")
        for make in (lambda: shutil.copy("/bin/true", theirs), lambda: os.symlink("/bin/true", theirs)):
            shutil.rmtree(self.target, ignore_errors=True)
            os.mkdir(self.target)
            make()
            self.refused(self.install(), theirs, "--force")
            self.assertEqual(os.listdir(self.target), ["torchrun"])
            self.assertTrue(filecmp.cmp(theirs, "/bin/true", shallow=False))
            self.installed(self.install(self.target, "--force"))
        self.assertTrue(filecmp.cmp("/bin/true", "/usr/bin/true", shallow=False))

    def test_our_own_older_copy_is_replaced(self):
        os.mkdir(self.target)
        older = os.path.join(self.target, "torchrun")
        shutil.copy(self.binary, older)
        with open(older, "ab") as file:
            file.write(b"another version")
        self.installed(self.install())

    def test_folders_in_the_way(self):
        for name in ALL:
            with self.subTest(name=name):
                shutil.rmtree(self.target, ignore_errors=True)
                os.makedirs(os.path.join(self.target, name))
                self.refused(self.install(self.target, "--force"), os.path.join(self.target, name), "is a folder")
                self.assertFalse([left for left in os.listdir(self.target) if left.startswith(TEMPORARY)])

    def test_without_symbolic_links(self):
        self.installed(self.install(preexec_fn=lambda: deny("symlinkat")))
        self.assertEqual(
            os.lstat(os.path.join(self.target, "torchrun")).st_ino, os.stat(os.path.join(self.target, "muster")).st_ino
        )
        self.assertIn("nothing written", self.install(preexec_fn=lambda: deny("symlinkat")).stdout)

    def test_without_any_links(self):
        self.installed(self.install(preexec_fn=lambda: deny("symlinkat", "linkat")))
        self.assertEqual(os.lstat(os.path.join(self.target, "torchrun")).st_nlink, 1)
        self.assertIn("nothing written", self.install(preexec_fn=lambda: deny("symlinkat", "linkat")).stdout)


class InstallPlaces(InstallCase):
    def test_a_noexec_mount_is_refused(self):
        self.mount("noexec")
        self.refused(self.install(), self.target, "noexec", "emptyDir")
        self.assertEqual(os.listdir(self.target), [])

    def test_no_place_for_files(self):
        self.refused(self.install("/proc/no/such"), "/proc/no", "emptyDir")

    def test_no_space(self):
        self.mount("size=1m")
        self.refused(self.install(), "No space left on device", "MB are free", "sizeLimit")
        self.assertEqual(os.listdir(self.target), [])

    def test_no_space_for_a_new_version_keeps_the_old(self):
        size = os.path.getsize(self.binary)
        self.mount(f"size={size + size // 2}")
        self.installed(self.install())
        with open(os.path.join(self.target, "muster"), "ab") as file:
            file.write(b"an older version")
        self.refused(self.install(), "No space left on device")
        self.assertEqual(sorted(os.listdir(self.target)), ALL)
        self.assertEqual(os.path.getsize(os.path.join(self.target, "muster")), size + len("an older version"))

    def test_read_only(self):
        self.mount("size=64k")
        subprocess.run(["mount", "-o", "remount,ro", self.target], check=True)
        self.refused(self.install(), "Read-only file system", "emptyDir")
        self.refused(self.install(os.path.join(self.target, "deeper")), "Read-only file system", "emptyDir")

    def test_read_only_with_everything_there(self):
        self.mount(f"size={2 * os.path.getsize(self.binary)}")
        self.installed(self.install())
        subprocess.run(["mount", "-o", "remount,ro", self.target], check=True)
        self.installed(self.install())

    def test_as_nobody(self):
        self.need_root()
        os.mkdir(self.target)
        for folder in (self.target, os.path.join(self.target, "deeper")):
            self.refused(
                self.install(folder, preexec_fn=lambda: os.setuid(NOBODY)), "Permission denied", f"user {NOBODY}"
            )
        os.chmod(self.target, 0o777)
        self.installed(self.install(preexec_fn=lambda: os.setuid(NOBODY)))

    def chroot(self, *arguments, **more):
        self.need_root()
        if not is_static(self.binary):
            self.skipTest("NOT TESTED: this build of muster is not static")
        root = os.path.join(self.dir, "root")
        os.makedirs(os.path.join(root, "out"))
        os.chmod(os.path.join(root, "out"), 0o777)
        shutil.copy(self.binary, os.path.join(root, "agent"))
        return root, subprocess.run(
            ["/agent", *arguments],
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            env={},
            cwd="/",
            preexec_fn=lambda: (os.chroot(root), os.chdir("/"), os.setuid(NOBODY)),
            **more,
        )

    def test_in_a_root_with_nothing_else(self):
        root, done = self.chroot("install", "/out")
        self.installed(done, os.path.join(root, "out"))


class InstallFaults(InstallCase):
    def whole_or_absent(self):
        path = os.path.join(self.target, "muster")
        if not os.path.lexists(path):
            return
        self.assertTrue(filecmp.cmp(self.binary, path, shallow=False))
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o755)

    def leftovers(self):
        return [name for name in os.listdir(self.target) if name.startswith(TEMPORARY)]

    def test_death_in_the_middle_of_the_copy(self):
        """A limit on the size of files makes the kernel end the copy at a chosen byte."""
        os.mkdir(self.target)
        size = os.path.getsize(self.binary)

        def limited(limit):
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        # At 0 a sanitizer, whose own memory is a file, would end the process before it begins.
        for limit in (*([] if sanitized() else [0]), 1, 1 << 20, size // 2, size - 1):
            done = self.install(preexec_fn=lambda: limited(limit))
            self.assertEqual(done.returncode, -signal.SIGXFSZ)
            self.assertEqual(len(self.leftovers()), 1, limit)
            self.assertEqual(len(os.listdir(self.target)), 1)
        self.installed(self.install())

    def test_leftovers_are_removed_even_when_nothing_is_to_do(self):
        self.installed(self.install())
        os.symlink("muster", os.path.join(self.target, TEMPORARY + "link"))
        with open(os.path.join(self.target, TEMPORARY + "file"), "w") as file:
            file.write("half")
        self.installed(self.install())

    def test_kill_at_any_moment(self):
        os.mkdir(self.target)
        for _ in range(40):
            with subprocess.Popen([self.binary, "install", self.target], stdout=subprocess.DEVNULL) as process:
                try:
                    process.wait(random.uniform(0, 0.05))
                except subprocess.TimeoutExpired:
                    process.kill()
            self.whole_or_absent()
            for link in ("torchrun", "muster-rsh"):
                if os.path.lexists(os.path.join(self.target, link)):
                    self.assertTrue(os.access(os.path.join(self.target, link), os.X_OK))
                    if random.random() < 0.5:
                        os.unlink(os.path.join(self.target, link))
            if random.random() < 0.5 and os.path.exists(os.path.join(self.target, "muster")):
                os.unlink(os.path.join(self.target, "muster"))
                for link in ("torchrun", "muster-rsh"):
                    if os.path.lexists(os.path.join(self.target, link)):
                        os.unlink(os.path.join(self.target, link))
        self.installed(self.install())

    def test_several_at_once(self):
        for _ in range(3):
            shutil.rmtree(self.target, ignore_errors=True)
            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                for done in pool.map(lambda _: self.install(), range(8)):
                    self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.installed(self.install())

    def test_a_stopped_one_holds_nobody_up(self):
        """Another installation is stopped (SIGSTOP) in the middle, while it holds the lock."""
        os.mkdir(self.target)
        holder = os.open(self.target, os.O_RDONLY)
        self.addCleanup(os.close, holder)
        for lock in (fcntl.LOCK_SH, fcntl.LOCK_EX):
            fcntl.flock(holder, lock)
            shutil.copy(self.binary, os.path.join(self.target, TEMPORARY + "theirs"))
            done = self.install()
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual(self.leftovers(), [TEMPORARY + "theirs"])
            os.unlink(os.path.join(self.target, "muster"))
        fcntl.flock(holder, fcntl.LOCK_UN)
        self.installed(self.install())


if __name__ == "__main__":
    main()
