# SPDX-License-Identifier: Apache-2.0
"""The machine's clock is set back by an hour while the controller runs."""

from controller_case import ACCOUNT, TRUE, ControllerCase, is_true

import class_runner
from fake_clock import FakeClock
from scenario import runtime

LEASE = "trainer.kubeflow.org"


class Clock(ControllerCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.clock = FakeClock(cls.cluster.folder)
        cls.proxy, cls.through_proxy = cls.start_proxy()  # without TLS: certificates are not yet valid an hour ago

    def renewals(self):
        return [
            request
            for request in self.proxy.requests
            if (request.resource, request.method, request.status) == ("leases", "PUT", 200)
        ]

    def test_the_leader_goes_on(self):
        child = self.start_controller("leader", kubeconfig=self.through_proxy, command=self.clock.command)
        self.make("before", runtime("", 2, container=TRUE))
        started = self.running("before")["status"]["startTime"]
        holder = self.api.get("leases", LEASE, ACCOUNT[0])["spec"]["holderIdentity"]
        self.start_controller("candidate")
        self.proxy.obey()
        self.clock.set("-3600")
        self.proxy.await_(lambda: len(self.renewals()) > 2, "renewals of the Lease")
        lease = self.api.get("leases", LEASE, ACCOUNT[0])["spec"]
        self.assertEqual(lease["holderIdentity"], holder)
        self.assertLess(lease["renewTime"], started)  # so the controller uses the fake clock
        self.finish("before")
        self.await_job("before", is_true("Complete"))
        self.make("after", runtime("", 2, container=TRUE), ttlSecondsAfterFinished=0)
        self.running("after")
        self.finish("after")
        self.api.await_gone("trainjobs", "after")
        self.assertIsNone(child.poll())


if __name__ == "__main__":
    class_runner.main()
