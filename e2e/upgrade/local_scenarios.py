# SPDX-License-Identifier: Apache-2.0
"""The state folder of `muster local`: jobs of one version, seen, stopped and run again by the other one."""

import json
import os
import shutil
import signal

from local_case import HANGS, CommandCase, Job, clean, plain_job, train_job

import images_test
import versions

SAYS = """import os
print("step 3/9 loss 0.5", flush=True)
print("I am", os.environ["RANK"], flush=True)
"""
# Goes on where the run before it was stopped.
COUNTS = """n=$(cat {folder}/checkpoint 2>/dev/null || echo 0)
echo "resumed at $n"
n=$((n + 1)); echo $n > {folder}/checkpoint
[ $n -ge 2 ] || { echo waits; exec sleep infinity; }"""


class Local:
    """A mixin of CommandCase, beside OldFirst or NewFirst."""

    def by(self, version):
        self.bin = version.folder
        return self

    def follow(self, name):
        """`muster logs -f`, once it has shown that the program runs."""
        follower = Job(
            [os.path.join(self.bin, "muster"), "logs", "-f", name],
            cwd=self.folder,
            env=clean(XDG_STATE_HOME=os.path.join(self.folder, "state")),
        )
        self.addCleanup(follower.end)
        follower.await_("here")
        return follower

    def test_a_job_that_has_ended(self):
        """Its row, its logs, its page; then its next run, after which the first version sees both."""
        script = self.file("say.py", SAYS)
        self.by(self.first).run_job(train_job("both", f"[torchrun, {script}]", processes=2))
        self.by(self.second)
        self.assertEqual(self.row("both")[2], "Complete")
        self.assertIn("[both-node-0-1] [rank3]:I am 3\n", self.muster("logs", "both"))
        self.assertIn("[both-node-0-1] I am 2\n", self.muster("logs", "both", "--rank", "2"))
        self.assertIn("muster top: TrainJob both has ended: ", self.muster("top", "both", "--once"))
        self.run_job(plain_job("both", "echo the second; exit 3"), code=3)
        self.assertIn("I am 3", self.muster("logs", "both", "--previous"))
        self.by(self.first)
        self.assertEqual((self.row("both")[2], self.row("both")[-1]), ("Failed", "3"))
        self.assertIn("[both-node-0-0] the second\n", self.muster("logs", "both", "--rank", "0"))
        self.assertIn("I am 3", self.muster("logs", "both", "--previous"))

    def test_a_job_that_runs(self):
        """The other version lists, follows and stops it."""
        job, processes = self.by(self.first).hanging("runs")
        self.by(self.second)
        self.assertEqual((self.row("runs")[1], self.row("runs")[-1]), ("TrainJob", "-"))
        follower = self.follow("runs")
        self.assertIn("runs: Stopped, exit code 143", self.muster("stop", "runs"))
        self.assertEqual((job.wait(), follower.wait()), (143, 0))
        self.assertIn("bye", follower.said)
        self.assert_gone(processes)
        self.assertEqual(self.by(self.first).row("runs")[2], "Stopped")

    def test_an_agent_of_the_other_version(self):
        """Only one of the two packages has been upgraded: `muster` is of one version, `muster-local` of the other."""
        self.bin = os.path.join(self.folder, "bin")
        os.mkdir(self.bin)
        for version, program in ((self.first, "muster"), (self.second, "muster-local")):
            shutil.copy(version.program(program), self.bin)
        script = self.file("say.py", SAYS)
        said = self.run_job(train_job("both", f"[torchrun, {script}]", processes=2))
        for rank in range(4):
            self.assertIn(f"[rank{rank}]:I am {rank}\n", said)
        job = json.loads(self.muster("ps", "--json"))[0]
        self.assertEqual((job["state"], job["exit_code"]), ("Complete", 0), job)
        self.run_job(train_job("fails", "[torchrun, --no-python, sh, -c, exit 7]"), code=7)

    def test_an_unpacked_image(self):
        """The other version uses the files that one has unpacked."""
        if not os.path.exists(images_test.BUSYBOX):
            self.skipTest("busybox-static is not installed")
        path = os.path.join(self.folder, "image.tar")
        with open(path, "wb") as file:
            file.write(images_test.oci_layout([images_test.lower_layer(), images_test.upper_layer()]))
        job = plain_job("in-image", "echo in $(cat /opt/app/name)")
        for version, unpacks in ((self.first, True), (self.second, False), (self.first, False)):
            said = self.by(version).run_job(job, arguments=["--oci", path])
            self.assertIn("] in layers", said)
            self.assertEqual("unpacks it; later runs use the unpacked files" in said, unpacks, said)

    def test_a_job_in_the_background(self):
        self.addCleanup(lambda: self.muster("stop", "--all", "--now"))
        path = self.file("night.yaml", plain_job("night", HANGS))
        self.by(self.first).muster("local", "--detach", "-f", path)
        self.by(self.second).follow("night")
        self.assertIn("night", self.muster("local", "-f", path, code=78))  # it runs: a second one is refused
        self.assertIn("night: Stopped, exit code 143", self.muster("stop", "night"))
        self.assertIn("bye", self.muster("logs", "night"))
        self.by(self.first)
        self.assertIn("bye", self.muster("logs", "night"))

    def test_a_job_that_was_killed(self):
        """The other version sees that it is lost, runs it again from its checkpoint, and keeps its logs."""
        text = plain_job("counts", COUNTS.replace("{folder}", self.folder))
        job = self.by(self.first).start(text)
        job.await_("] waits")
        processes = self.processes()
        job.process.send_signal(signal.SIGKILL)
        job.wait()
        self.assert_gone(processes)
        self.by(self.second)
        self.assertEqual(self.row("counts")[2], "Lost")
        said = self.run_job(text)
        self.assertIn("the previous run was killed", said)
        self.assertIn("] resumed at 1", said)
        self.by(self.first)
        self.assertEqual(self.row("counts")[2], "Complete")
        self.muster("logs", "counts", "--previous")  # its last lines may be lost with their writer
        self.muster("rm", "counts")
        self.assertEqual(self.by(self.second).muster("ps").splitlines()[1:], [])


class OldState(Local, versions.OldFirst, CommandCase):
    pass


class NewState(Local, versions.NewFirst, CommandCase):
    pass
