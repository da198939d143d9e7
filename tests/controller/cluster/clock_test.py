"""The machine's clock is set back by an hour while the controller runs; by libfaketime, so it skips where that is not installed."""
import glob
import os
import unittest

from controller_case import ACCOUNT, TRUE, ControllerCase, is_true
import class_runner
from scenario import runtime

LIBRARIES = os.environ.get("MUSTER_FAKETIME", "/usr/lib/*/faketime/libfaketime.so.1")
LEASE = "trainer.kubeflow.org"


class Clock(ControllerCase):
    @classmethod
    def setUpClass(cls):
        found = glob.glob(LIBRARIES)
        if not found:
            raise unittest.SkipTest("SKIPPED: libfaketime is not installed (Debian's package faketime)")
        super().setUpClass()
        cls.clock = os.path.join(cls.cluster.folder, "clock")
        cls.proxy, cls.through_proxy = cls.start_proxy()  # without TLS: certificates are not yet valid an hour ago
        cls.command = ["env", f"LD_PRELOAD={found[0]}", f"FAKETIME_TIMESTAMP_FILE={cls.clock}", "FAKETIME_NO_CACHE=1",
                       "FAKETIME_DONT_FAKE_MONOTONIC=1"]

    def set_clock(self, offset):
        with open(self.clock + ".new", "w") as file:
            file.write(offset + "\n")
        os.rename(self.clock + ".new", self.clock)

    def renewals(self):
        return [request for request in self.proxy.requests if (request.resource, request.method, request.status) == ("leases", "PUT", 200)]

    def test_the_leader_goes_on(self):
        self.set_clock("+0")
        child = self.start_controller("leader", kubeconfig=self.through_proxy, command=self.command)
        self.make("before", runtime("", 2, container=TRUE))
        started = self.running("before")["status"]["startTime"]
        holder = self.api.get("leases", LEASE, ACCOUNT[0])["spec"]["holderIdentity"]
        self.start_controller("candidate")
        self.proxy.obey()
        self.set_clock("-3600")
        self.proxy.await_(lambda: len(self.renewals()) > 2, "renewals of the Lease")
        lease = self.api.get("leases", LEASE, ACCOUNT[0])["spec"]
        self.assertEqual(lease["holderIdentity"], holder)
        self.assertLess(lease["renewTime"], started)  # so the clock is its own
        self.finish("before")
        self.await_job("before", is_true("Complete"))
        self.make("after", runtime("", 2, container=TRUE), ttlSecondsAfterFinished=0)
        self.running("after")
        self.finish("after")
        self.api.await_gone("trainjobs", "after")
        self.assertIsNone(child.poll())


if __name__ == "__main__":
    class_runner.main()
