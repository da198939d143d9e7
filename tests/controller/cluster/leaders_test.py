# SPDX-License-Identifier: Apache-2.0
"""A leader is stopped, like a frozen virtual machine, and continued when another leads. It must write nothing."""

import os
import signal

from controller_case import ACCOUNT, TRUE, WAIT, ControllerCase, is_true

import class_runner
from api_proxy import Fault
from scenario import runtime

LEASE = "trainer.kubeflow.org"
LOST = 200  # exit code after a lost Lease


class StoppedLeader(ControllerCase):
    def setUp(self):
        self.old_proxy, old = self.start_proxy("old")
        self.new_proxy, new = self.start_proxy("new")
        self.kubeconfigs = {"old": old, "new": new}

    def holder(self):
        return self.api.get("leases", LEASE, ACCOUNT[0])["spec"].get("holderIdentity", "")

    def start(self, name, *flags):
        child = self.start_controller(name, *flags, kubeconfig=self.kubeconfigs[name])
        self.addCleanup(self.cluster.processes.stop, name)
        return child

    def stop_until_another_leads(self, child):
        """Stops the process. Returns when another process holds the Lease."""
        before = self.holder()
        child.send_signal(signal.SIGSTOP)
        self.addCleanup(lambda: child.poll() is not None or child.send_signal(signal.SIGCONT))
        os.waitid(os.P_PID, child.pid, os.WSTOPPED)
        self.api.await_object(
            "leases", LEASE, lambda lease: lease["spec"].get("holderIdentity", before) != before, WAIT, ACCOUNT[0]
        )

    def wake(self, child):
        """Continues the process. It must end because it lost the Lease, without any further write."""
        self.old_proxy.obey()
        child.send_signal(signal.SIGCONT)
        self.assertEqual(child.wait(WAIT), LOST)
        self.assertEqual(self.old_proxy.writes(), [])

    def test_work_is_left(self):
        """The writes of the new leader are lost, so the continued process sees work to do."""
        old = self.start("old")
        self.make("one", runtime("", 2, container=TRUE))
        self.running("one")
        self.start("new")
        self.stop_until_another_leads(old)
        self.finish("one")
        self.await_job("one", is_true("Complete"))
        self.make("two", runtime("", 2, container=TRUE))
        self.running("two")
        self.new_proxy.obey(lambda request: Fault(lost=True) if request.is_write else None)
        self.make("three", runtime("", 2, container=TRUE))
        self.finish("two")
        self.wake(old)
        self.assertIsNone(self.api.find("jobs", "three-node-0"))
        self.new_proxy.obey()
        self.running("three")
        self.await_job("two", is_true("Complete"))

    def test_writes_are_under_way(self):
        """Writes decided on while it led are not sent any more: those that waited for the rate limit or Retry-After."""
        later = Fault(answer=(429, {"Retry-After": "5"}, b""))
        old = self.start("old", "--qps", "1", "--burst", "1")
        self.old_proxy.obey(lambda request: later if request.is_write and b'"later' in request.body else None)
        names = ["later", *(f"queued-{number}" for number in range(5))]
        self.make("later", runtime("", 1, container=TRUE))
        self.old_proxy.await_(self.old_proxy.writes, "its first write")
        self.start("new")
        for name in names[1:]:
            self.make(name, runtime("", 1, container=TRUE))
        self.old_proxy.await_(
            lambda: any(b"queued" in request.body for request in self.old_proxy.writes()), "a queued job's write"
        )
        self.stop_until_another_leads(old)
        for name in names:
            self.running(name)
        self.wake(old)


if __name__ == "__main__":
    class_runner.main()
