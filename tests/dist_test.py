# SPDX-License-Identifier: Apache-2.0
"""packaging/make-dist: what a release has, that its parts lists are whole, and that each package works where people
install it: in roots of Debian 11, 12 and 13, and in one that has nothing but busybox. A build for arm64 is tested on
another machine by build-support/with-arm64."""

import base64
import csv
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
import zipfile

import class_runner

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
sys.path.insert(0, os.path.join(ROOT, "packaging"))
sys.dont_write_bytecode = True
import debian_files
import helm_chart
import package_files
import package_tree

BUILD = os.path.dirname(os.environ.get("MUSTER_BIN", os.path.join(ROOT, "build", "bin")))
NAMES = [package.name for package in package_tree.PACKAGES]
SETUP_KUBERNETES = os.path.join(ROOT, "build-support", "setup-kubernetes")
DEADLINE = 300
JOB = """
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: greets}
spec:
  runtimeRef: {name: plain}
  trainer: {numNodes: 2, command: [sh, -c, "echo host $JOB_COMPLETION_INDEX"]}
"""
# A root, and the packages in it. busybox has no libc.
ROOTS = {
    "debian-11": ("bullseye", "dash", "coreutils"),
    "debian-12": ("bookworm", "dash", "coreutils"),
    "debian-13": ("trixie", "base-files", "dash", "coreutils"),
    "busybox": ("bookworm", "busybox-static"),
}


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, **options)


def debian_root(name):
    """The folder of a root of ROOTS, for the architecture of the build. Skips the test if it cannot be had."""
    which = ["--for", architecture, f"{name}-{architecture}"] if is_foreign else [name]
    done = run(os.path.join(ROOT, "build-support", "setup-root"), *which, *ROOTS[name])
    if done.returncode:
        raise unittest.SkipTest(f"SKIPPED: {done.stderr.strip()}")
    return done.stdout.strip()


folder = out = files = None  # of the release that all tests look at
architecture = is_foreign = None  # of the build, and whether this machine has another


def setUpModule():
    global folder, out, files, architecture, is_foreign
    for program in ("dpkg-deb", "rpmbuild", "bwrap"):
        if not shutil.which(program):
            raise unittest.SkipTest(f"SKIPPED: {program} is not installed")
    kubernetes = subprocess.run([SETUP_KUBERNETES], capture_output=True, text=True)
    if kubernetes.returncode:
        raise unittest.SkipTest(f"SKIPPED: no kubectl: {kubernetes.stderr.strip()}")
    architecture = debian_files.architecture_of(os.path.join(BUILD, "bin", "muster"))
    is_foreign = architecture != debian_files.own_architecture()
    folder = tempfile.mkdtemp(prefix="muster-dist-test-")
    unittest.addModuleCleanup(shutil.rmtree, folder)
    out = os.path.join(folder, "dist")
    command = [os.path.join(ROOT, "packaging", "make-dist"), "--fast", "--build", BUILD, "--out", out]
    made = subprocess.run(command, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    files = sorted(os.listdir(out))
    assert made.stdout.split() == [os.path.join(out, name) for name in files], made.stdout


def only(pattern):
    """The path of the only file of the release whose name matches."""
    (name,) = [name for name in files if re.fullmatch(pattern, name)]
    return os.path.join(out, name)


class Release(unittest.TestCase):
    def test_it_has_all_files_and_their_sums(self):
        kinds = [
            *(rf"{name}-[\d.]+-linux-\w+\.tar\.gz" for name in NAMES),
            *(rf"{name}_[\d.]+_\w+\.deb" for name in NAMES),
            *(rf"{name}-[\d.]+-1\.\w+\.rpm" for name in NAMES),
            *(rf"{name}-[\d.]+-linux-\w+\.spdx\.json" for name in NAMES),
            r"muster_launcher-[\d.]+-py3-none-manylinux2014_\w+\.musllinux_1_1_\w+\.whl",
            *(rf"muster{overlay}-[\d.]+\.yaml" for overlay in ("", "-cert-manager", "-kueue", "-pytorchjob")),
            *(rf"{name}-[\d.]+-image\.tar" for name in NAMES if name != "muster-local"),
            r"muster-[\d.]+\.tgz",
            r"muster-[\d.]+-oci\.tar",
            r"muster-[\d.]+-\w+\.provenance\.json",
            "SHA256SUMS",
        ]
        self.assertEqual(sorted(os.path.basename(only(kind)) for kind in kinds), files)
        checked = run("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=out)
        self.assertEqual(checked.returncode, 0, checked.stderr)
        self.assertEqual(len(checked.stdout.splitlines()), len(files) - 1)

    def test_a_parts_list_has_every_library(self):
        for name in NAMES:
            with open(only(rf"{name}-[\d.]+-linux-\w+\.spdx\.json")) as file:
                parts = json.load(file)
            self.assertEqual(parts["spdxVersion"], "SPDX-2.3")
            known = {part["name"] for part in parts["packages"]}
            compilers = f"libstdc++-12-dev-{architecture}-cross" if is_foreign else "libstdc++-12-dev"
            self.assertLessEqual({compilers, "nlohmann-json3-dev", "libssl-dev"}, known, name)
            linked = {tie["relationshipType"] for tie in parts["relationships"]}
            tree = os.path.join(folder, f"parts-{name}")
            run("tar", "-xzf", only(rf"{name}-[\d.]+-linux-\w+\.tar\.gz"), "--one-top-level=" + tree)
            library = os.path.join(tree, os.listdir(tree)[0], "lib", name)
            self.assertEqual("DYNAMIC_LINK" in linked, os.path.isdir(library), name)
            for part in parts["packages"][1:]:
                licence = os.path.join(tree, os.listdir(tree)[0], "share/doc", name, "licences", part["name"])
                self.assertTrue(os.path.exists(licence), f"{name}: {licence}")
                self.assertRegex(part["externalRefs"][0]["referenceLocator"], r"^pkg:deb/debian/[^@ ]+@[^ ]+\?arch=")
            identifiers = {part["SPDXID"] for part in parts["packages"]} | {parts["SPDXID"]}
            self.assertEqual(len(identifiers), len(parts["packages"]) + 1)
            for tie in parts["relationships"]:
                self.assertLessEqual({tie["spdxElementId"], tie["relatedSpdxElement"]}, identifiers)

    def test_the_provenance_names_the_files_and_how_they_were_made(self):
        with open(only(r"muster-[\d.]+-\w+\.provenance\.json")) as file:
            text = file.read()
        said = json.loads(text)
        inside = {name for name in files if name != "SHA256SUMS" and not name.endswith(".provenance.json")}
        self.assertEqual({subject["name"] for subject in said["subject"]}, inside)
        made = said["predicate"]["buildDefinition"]
        self.assertIn("-std=c++20", made["internalParameters"]["flags"])
        self.assertRegex(made["internalParameters"]["compiler"], r"\d+\.\d+")
        self.assertRegex(made["resolvedDependencies"][0]["digest"]["gitCommit"], r"^[0-9a-f]{40}$")
        self.assertNotIn(ROOT, text)

    def test_no_file_has_a_path_of_this_machine(self):
        with tarfile.open(only(r"muster-local-[\d.]+-linux-\w+\.tar\.gz")) as tar:
            for member in tar:
                self.assertEqual((member.uid, member.gid, member.uname, member.gname), (0, 0, "", ""), member.name)
                if "/bin/" in member.name:
                    self.assertNotIn(ROOT.encode(), tar.extractfile(member).read(), member.name)

    def test_helm_reads_the_chart(self):
        setup = [os.path.join(ROOT, "build-support", "setup-go-server"), "helm"]
        helm = subprocess.run(setup, capture_output=True, text=True)
        if helm.returncode:
            self.skipTest(f"SKIPPED: no Helm: {helm.stderr.strip()}")
        program = helm.stdout.split()[-1]
        rendered = [
            run(program, "template", "muster", chart, "--namespace", "kubeflow-system")
            for chart in (only(r"muster-[\d.]+\.tgz"), helm_chart.CHART)
        ]
        for done in rendered:
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(rendered[0].stdout, rendered[1].stdout)
        shown = [
            run(program, "show", "crds", chart).stdout for chart in (only(r"muster-[\d.]+\.tgz"), helm_chart.CHART)
        ]
        self.assertEqual(sorted(shown[0].splitlines()), sorted(shown[1].splitlines()))

    def test_the_chart_is_an_oci_artifact(self):
        with tarfile.open(only(r"muster-[\d.]+-oci\.tar")) as tar:
            blob = lambda part: tar.extractfile(f"blobs/sha256/{part['digest'].removeprefix('sha256:')}").read()
            manifest = json.loads(blob(json.load(tar.extractfile("index.json"))["manifests"][0]))
            config = json.loads(blob(manifest["config"]))
            content = blob(manifest["layers"][0])
        self.assertEqual(manifest["config"]["mediaType"], "application/vnd.cncf.helm.config.v1+json")
        self.assertEqual(config["name"], "muster")
        with open(only(r"muster-[\d.]+\.tgz"), "rb") as file:
            self.assertEqual(content, file.read())

    def test_the_wheel_records_its_files(self):
        with zipfile.ZipFile(only(r".*\.whl")) as wheel:
            self.assertIsNone(wheel.testzip())
            record = next(name for name in wheel.namelist() if name.endswith(".dist-info/RECORD"))
            rows = list(csv.reader(io.StringIO(wheel.read(record).decode())))
            self.assertEqual(sorted(row[0] for row in rows), sorted(wheel.namelist()))
            for name, digest, size in rows:
                if name != record:
                    content = wheel.read(name)
                    sum_of = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
                    self.assertEqual((digest, int(size)), (f"sha256={sum_of}", len(content)), name)

    def test_two_runs_give_the_same_bytes(self):
        """From one tree, in two folders and with two umasks. make-images' test compares the binaries of two folders."""
        tree = os.path.join(folder, "tree")
        os.makedirs(os.path.join(tree, "bin"))
        os.makedirs(os.path.join(tree, "share/zsh/site-functions"))
        for name, mode in (("bin/muster", 0o755), ("share/zsh/site-functions/_muster", 0o644)):
            with open(os.path.join(tree, name), "w") as file:
                file.write(name * 1000)
            os.chmod(os.path.join(tree, name), mode)
        facts = package_files.Facts("1.2.3", "amd64", 1700000000)
        package = package_tree.package("muster")
        digests = []
        for umask in (0o022, 0o077):
            before = os.umask(umask)
            try:
                place = tempfile.mkdtemp(dir=folder)
                copy = shutil.copytree(tree, os.path.join(place, "copy"))
                package_files.write_tar(copy, "top", facts.moment, os.path.join(place, "a.tar.gz"))
                package_files.write_deb(copy, package, facts, os.path.join(place, "a.deb"))
                package_files.write_rpm(copy, package, facts, os.path.join(place, "a.rpm"))
                package_files.write_wheel(copy, "muster-launcher", "It starts.", facts, os.path.join(place, "a.whl"))
                helm_chart.write(place, "registry.example.com", facts.moment)
            finally:
                os.umask(before)
            shutil.rmtree(copy)
            digests.append(
                {
                    name: hashlib.sha256(open(os.path.join(place, name), "rb").read()).hexdigest()
                    for name in os.listdir(place)
                }
            )
        self.assertEqual(len(digests[0]), 6)
        self.assertEqual(digests[0], digests[1])


class Installed(unittest.TestCase):
    """From the packages alone. bwrap is the root's kernel: no file of this machine is in it."""

    def root(self, name):
        place = tempfile.mkdtemp(prefix=f"{name}-", dir=folder)
        subprocess.run(["cp", "-a", f"{debian_root(name)}/.", place], check=True)
        for name_of in ("proc", "dev", "tmp", "home"):
            os.makedirs(os.path.join(place, name_of), exist_ok=True)
        if name == "busybox":
            os.makedirs(os.path.join(place, "bin"), exist_ok=True)
            os.symlink("busybox", os.path.join(place, "bin", "sh"))
        return place

    def inside(self, root, *command):
        words = ["bwrap", "--bind", root, "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--clearenv"]
        words += ["--setenv", "PATH", "/opt/muster/bin:/usr/local/bin:/usr/bin:/bin", "--setenv", "HOME", "/home"]
        return run(*words, "--chdir", "/home", "--unshare-pid", "--die-with-parent", "--", *command)

    def check_programs(self, root, names, place):
        for name in names:
            said = self.inside(root, f"{place}/{name}", "--version")
            self.assertEqual((said.returncode, said.stderr), (0, ""), name)
            self.assertRegex(said.stdout, rf"^{name} \d")
        with open(os.path.join(root, "home/job.yaml"), "w") as file:
            file.write(JOB)
        done = self.inside(root, "muster", "local", "-f", "job.yaml")
        self.assertEqual(done.returncode, 0, done.stderr)
        for line in ("[greets-node-0-0] host 0\n", "[greets-node-0-1] host 1\n"):
            self.assertIn(line, done.stdout)
        os.makedirs(os.path.join(root, "home/data"))
        with open(os.path.join(root, "home/data/one"), "w") as file:
            file.write("1")
        done = self.inside(root, "muster-initializer", "dataset", "file:///home/data", "--to", "/home/copy")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(os.path.exists(os.path.join(root, "home/copy/one")))

    def test_the_archive_in_every_root(self):
        for name in ROOTS:
            with self.subTest(name):
                root = self.root(name)
                os.makedirs(os.path.join(root, "opt/muster"))
                for package in ("muster-local", "muster-controller"):
                    archive = only(rf"{package}-[\d.]+-linux-\w+\.tar\.gz")
                    into = ["--strip-components=1", "-C", os.path.join(root, "opt/muster")]
                    subprocess.run(["tar", "-xzf", archive, *into], check=True)
                self.check_programs(root, NAMES, "/opt/muster/bin")
                # The starter says what is missing.
                shutil.rmtree(os.path.join(root, "opt/muster/lib/muster-initializer"))
                said = self.inside(root, "muster-initializer", "--version")
                self.assertEqual(said.returncode, 127)
                self.assertIn("unpack the whole package", said.stderr)

    def test_debian_packages_come_and_go(self):
        for name in ("debian-11", "debian-12", "debian-13"):
            with self.subTest(name):
                root = self.root(name)
                for part in ("info", "updates"):
                    os.makedirs(os.path.join(root, "var/lib/dpkg", part), exist_ok=True)
                open(os.path.join(root, "var/lib/dpkg/status"), "w").close()
                with open(os.path.join(root, "var/lib/dpkg/arch"), "w") as file:
                    file.write(f"{architecture}\n")
                before = tree_of(root)
                dpkg = ["fakeroot"] if os.geteuid() and shutil.which("fakeroot") else []
                dpkg += ["dpkg", f"--root={root}", "--force-not-root", "--log=/dev/null"]
                debs = [only(rf"{package}_[\d.]+_\w+\.deb") for package in NAMES]
                done = run(*dpkg, "--install", *debs)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.check_programs(root, NAMES, "/usr/bin")
                shutil.rmtree(os.path.join(root, "home"))
                os.makedirs(os.path.join(root, "home"))
                done = run(*dpkg, "--purge", *NAMES)
                said = [line for line in done.stderr.splitlines() if "not empty so not removed" not in line]  # /usr/bin
                self.assertEqual((done.returncode, said), (0, []))
                self.assertEqual(tree_of(root), before)

    def test_rpms_come_and_go(self):
        if os.geteuid():
            self.skipTest("SKIPPED: rpm --root takes root")
        root = self.root("debian-12")
        before = tree_of(root)
        rpm = ["rpm", "--root", root, "--dbpath", "/var/lib/rpm"]
        rpms = [only(rf"{package}-[\d.]+-1\.\w+\.rpm") for package in NAMES]
        foreign = ["--ignorearch"] if is_foreign else []
        done = run(*rpm, "--install", *foreign, *rpms)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_programs(root, NAMES, "/usr/bin")
        shutil.rmtree(os.path.join(root, "home"))
        os.makedirs(os.path.join(root, "home"))
        done = run(*rpm, "--erase", *NAMES)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(tree_of(root), before)

    def test_the_wheel_puts_programs_on_the_path(self):
        if is_foreign:
            self.skipTest(f"SKIPPED: this machine's pip installs no wheel for {architecture}")
        environment = os.path.join(folder, "venv")
        subprocess.run(["/usr/bin/python3", "-m", "venv", environment], check=True)
        before = tree_of(environment)
        pip = os.path.join(environment, "bin/pip")
        done = run(pip, "install", "--no-index", "--no-compile", only(r".*\.whl"))
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in ("muster", "muster-local", "muster-initializer"):
            said = run(os.path.join(environment, "bin", name), "--version")
            self.assertEqual((said.returncode, said.stderr), (0, ""), name)
        script = os.path.join(folder, "where.py")
        with open(script, "w") as file:
            file.write("import os, sys; print(sys.prefix, os.environ['RANK'])")
        variables = {"PATH": f"{environment}/bin", "HOME": folder}  # without the system's torchrun
        ran = run(f"{environment}/bin/muster", "run", script, cwd=folder, env=variables)
        self.assertIn(f"{environment} 0", ran.stdout, ran.stderr)
        self.assertEqual(run(pip, "uninstall", "--yes", "muster-launcher").returncode, 0)
        self.assertEqual(tree_of(environment), before)


def tree_of(root):
    """All files and links below `root`, without what package managers note about themselves."""
    return {
        path
        for place, _, names in os.walk(root)
        for path in (os.path.relpath(os.path.join(place, name), root) for name in names)
        if not path.startswith(("var/lib/dpkg/", "var/lib/rpm/"))
    }


if __name__ == "__main__":
    class_runner.main()
