#!/usr/bin/python3
"""The demo's table and its promises, from records made by hand."""
import copy
import os
import sys
import unittest

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "e2e", "demo"), os.path.join(ROOT, "e2e", "digits")]

import report  # noqa: E402


def record(round_, node, rank, world, started, ended, reason, stopping=None):
    return {"term": 0, "round": round_, "node": node, "node_rank": rank, "world_size": world, "restart_count": min(round_, 1),
            "started_unix_ms": started, "workers_started_unix_ms": started + 10, "stopping_unix_ms": stopping,
            "ended_unix_ms": ended, "reason": reason, "workers": []}


def epoch(round_, number, at):
    return {"event": "epoch", "round": round_, "epoch": number, "loss": 1.0 / number, "unix_ms": at}


def start(round_, number, at):
    return {"event": "start", "round": round_, "epoch": number, "unix_ms": at, "history": [1.0 / n for n in range(1, number + 1)]}


RECORDS = [
    record(0, "a", 0, 4, 1000, 9100, "a peer failed", stopping=9010),
    record(0, "b", 1, 4, 1002, 9090, "rank 3: exit code 3", stopping=9001),
    record(1, "a", 0, 4, 9110, 20100, "node b is lost", stopping=20050),
    record(1, "b", 1, 4, 9110, None, None),
    record(2, "a", 0, 2, 20110, 30000, "all workers succeeded"),
]
EVENTS = [
    start(0, 0, 4000), epoch(0, 1, 5000), epoch(0, 2, 8000),
    start(1, 2, 12000), epoch(1, 3, 15000),
    start(2, 3, 23000), epoch(2, 4, 29000),
    {"event": "end", "round": 2, "epoch": 4, "accuracy": 0.97, "history": [1.0, 1 / 2, 1 / 3, 1 / 4], "unix_ms": 29500},
]
FAULTS = [{"at": 9000, "what": "rank 3 exits", "node": None}, {"at": 20000, "what": "b was killed", "node": "b"}]


class Report(unittest.TestCase):
    def setUp(self):
        self.records, self.events = copy.deepcopy(RECORDS), copy.deepcopy(EVENTS)

    def wrong(self):
        attempts = report.gather(self.records, self.events, FAULTS)
        return report.broken_promises(attempts, self.events, [4, 4, 2], 4, 0.95)

    def test_attempts(self):
        attempts = report.gather(self.records, self.events, FAULTS)
        self.assertEqual([a.reason for a in attempts], ["rank 3: exit code 3", "b was killed", "all workers succeeded"])
        self.assertEqual([(a.first_epoch, a.last_epoch) for a in attempts], [(0, 2), (2, 3), (3, 4)])
        self.assertEqual([a.ended for a in attempts], [9100, 20100, 30000])
        self.assertEqual(self.wrong(), [])

    def test_losses(self):
        lost = report.losses(report.gather(self.records, self.events, FAULTS), FAULTS)
        self.assertEqual([(x.total, x.redone, x.launcher, x.program) for x in lost], [(4000, 1000, 120, 2880), (8000, 5000, 120, 2880)])
        self.assertIn("0.12 s", report.table(report.gather(self.records, self.events, FAULTS), lost))

    def test_a_checkpoint_that_nobody_spoke_of(self):
        del self.events[4]
        self.events[4]["epoch"] = 3  # the next start knows of epoch 3
        self.assertEqual(self.wrong(), [])

    def test_broken(self):
        rows = [
            (lambda: self.events.pop(1), "not 1 to 4"),
            (lambda: self.events.append(epoch(2, 4, 29400)), "not 1 to 4"),
            (lambda: self.events[5].update(epoch=2), "went on after epoch 2"),
            (lambda: self.events[-1].update(accuracy=0.9), "0.9000 is below"),
            (lambda: self.events[-1].update(history=[1.0]), "loss history"),
            (lambda: self.events.pop(), "come to its end"),
            (lambda: self.records.pop(), "not [4, 4, 2]"),
            (lambda: self.records[0].update(ended_unix_ms=None), "does not say why"),
        ]
        for change, text in rows:
            with self.subTest(text):
                self.setUp()
                change()
                self.assertIn(text, " ".join(self.wrong()))


if __name__ == "__main__":
    unittest.main(verbosity=2)
