#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The demo's table and the checks of its promises, on records made by hand."""

import copy
import os
import sys
import unittest

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "e2e", "demo"), os.path.join(ROOT, "e2e", "digits")]

import report


def record(round_, node, rank, world, started, ended, reason, stopping=None):
    return {
        "term": 0,
        "round": round_,
        "node": node,
        "node_rank": rank,
        "world_size": world,
        "restart_count": min(round_, 1),
        "started_unix_ms": started,
        "workers_started_unix_ms": started + 10,
        "stopping_unix_ms": stopping,
        "ended_unix_ms": ended,
        "reason": reason,
        "workers": [],
    }


def epoch(round_, number, at):
    return {"event": "epoch", "round": round_, "epoch": number, "loss": 1.0 / number, "unix_ms": at}


def start(round_, number, at):
    return {
        "event": "start",
        "round": round_,
        "epoch": number,
        "unix_ms": at,
        "history": [1.0 / n for n in range(1, number + 1)],
    }


RECORDS = [
    record(0, "a", 0, 4, 1000, 9100, "a peer failed", stopping=9010),
    record(0, "b", 1, 4, 1002, 9090, "rank 3: exit code 3", stopping=9001),
    record(1, "a", 0, 4, 9110, 20100, "node b is lost", stopping=20050),
    record(1, "b", 1, 4, 9110, None, None),
    record(2, "a", 0, 2, 20110, 20600, "scaling up: node b joined", stopping=20550),
    record(3, "a", 0, 4, 20620, 30000, "all workers succeeded", stopping=29900),
    record(3, "b", 1, 4, 20620, 30000, "all workers succeeded", stopping=29900),
]
EVENTS = [
    start(0, 0, 4000),
    epoch(0, 1, 5000),
    epoch(0, 2, 8000),
    start(1, 2, 12000),
    epoch(1, 3, 15000),
    start(3, 3, 23000),
    epoch(3, 4, 29000),
    {"event": "end", "round": 3, "epoch": 4, "accuracy": 0.97, "history": [1.0, 1 / 2, 1 / 3, 1 / 4], "unix_ms": 29500},
]


class Report(unittest.TestCase):
    def setUp(self):
        self.records, self.events = copy.deepcopy(RECORDS), copy.deepcopy(EVENTS)

    def wrong(self):
        attempts = report.gather(self.records, self.events)
        return report.broken_promises(attempts, self.events, workers=4, faults=2, killed=1, epochs=4, min_accuracy=0.95)

    def test_each_attempt_has_its_reason(self):
        attempts = report.gather(self.records, self.events)
        self.assertEqual(
            [a.reason for a in attempts],
            ["rank 3: exit code 3", "node b is lost", "scaling up: node b joined", "all workers succeeded"],
        )
        self.assertEqual([(a.first_epoch, a.last_epoch) for a in attempts], [(0, 2), (2, 3), (0, 0), (3, 4)])
        self.assertEqual([a.stopped for a in attempts], [9001, 20050, 20550, 29900])
        self.assertEqual([a.ended for a in attempts], [9100, 20100, 20600, 30000])
        self.assertEqual([a.cut_off for a in attempts], [0, 1, 0, 0])
        self.assertEqual(self.wrong(), [])

    def test_lost_time_is_divided_by_cause(self):
        attempts = report.gather(self.records, self.events)
        lost = report.losses(attempts)
        self.assertEqual(
            {number: (x.total, x.redone, x.launcher, x.program) for number, x in lost.items()},
            {0: (4000, 1001, 119, 2880), 1: (8000, 5050, 150, 2800)},
        )  # 1: 70 ms to attempt 2, 80 ms to attempt 3
        lines = report.table(attempts, lost).splitlines()
        self.assertIn("0.12 s", lines[2])
        self.assertRegex(lines[4], r"^2 +1 +2 +- +0.49 s +scaling up: node b joined +- +- +- +-$")

    def test_reasons_in_short(self):
        for reason, short in (
            ("node n-0-1_15080 (host n-0-1) was lost: its connection closed", "node n-0-1 was lost"),
            ("node n-0-1_4017 was lost together with the coordinator", "node n-0-1 was lost"),
            ("scaling up: node n-0-1_9296 (host n-0-1) joined", "scaling up: node n-0-1 joined"),
            (
                "rank 1 (local rank 1): killed by SIGSEGV (stderr: Fatal error)",
                "rank 1 (local rank 1): killed by SIGSEGV",
            ),
        ):
            self.assertEqual(report.in_short(reason), short)

    def test_a_checkpoint_that_nobody_spoke_of(self):
        del self.events[4]
        self.events[4]["epoch"] = 3  # the next start has epoch 3
        self.assertEqual(self.wrong(), [])

    def test_one_node_may_train_alone_meanwhile(self):
        self.events.insert(5, start(2, 3, 20500))
        self.assertEqual(self.wrong(), [])

    def test_nothing_has_run(self):
        said = report.broken_promises([], [], workers=4, faults=2, killed=1, epochs=4, min_accuracy=0.95)
        self.assertIn("the attempts that trained had [] workers", said[0])
        self.assertIn("the training did not come to its end", said)

    def test_contradicting_events_are_refused(self):
        rows = [
            (lambda: self.events.pop(1), "not 1 to 4"),
            (lambda: self.events.append(epoch(2, 4, 29400)), "not 1 to 4"),
            (lambda: self.events[5].update(epoch=2), "went on after epoch 2"),
            (lambda: self.events.pop(5), "[4, 4] workers, not 4"),
            (lambda: self.events[-1].update(accuracy=0.9), "0.9000 is below"),
            (lambda: self.events[-1].update(history=[1.0]), "loss history"),
            (lambda: self.events.pop(), "come to its end"),
            (lambda: [self.records.pop(), self.records.pop()], "[4, 4] workers, not 4"),
            (lambda: [record.update(world_size=2) for record in self.records[-2:]], "[4, 4, 2] workers, not 4"),
            (lambda: self.records[0].update(ended_unix_ms=None), "2 records do not say why"),
            (lambda: self.records.pop(3), "0 records do not say why"),
        ]
        for change, text in rows:
            with self.subTest(text):
                self.setUp()
                change()
                self.assertIn(text, " ".join(self.wrong()))


if __name__ == "__main__":
    unittest.main(verbosity=2)
