# SPDX-License-Identifier: Apache-2.0
"""What the attempts of a training run cost: the demo's table, and the promises of the launcher that it checks.

Pure. The input is the records of the agents (docs/attempt-json.md) and the events of the training (train.py).
"""

import dataclasses
import re

from training_run import epochs_done


@dataclasses.dataclass
class Attempt:
    """One round on all nodes. Times are Unix milliseconds."""

    number: int
    round: int
    nodes: list
    world: int
    started: int
    workers_started: int  # start of the last worker
    stopped: int  # the first sign of its end
    ended: int  # end of the last worker
    reason: str
    cut_off: int  # records without an end, because the agents were killed
    resumed: int = 0  # first event of the training; 0: the attempt ended before it
    first_epoch: int = 0
    last_epoch: int = 0
    last_epoch_at: int = 0


@dataclasses.dataclass
class Loss:
    """The time lost between two attempts that trained."""

    total: int  # from the last checkpoint until the training goes on from it
    redone: int  # work since that checkpoint, done again
    launcher: int  # from the first sign of the end to the last new worker's start, of each attempt between
    program: int  # start of python, torch and gloo


def gather(records, events):
    rounds = {}
    for record in records:
        rounds.setdefault((record["term"], record["round"]), []).append(record)
    attempts = []
    for key in sorted(rounds):
        group = sorted(rounds[key], key=lambda record: record["node_rank"])
        started = [r["workers_started_unix_ms"] for r in group]
        if None in started:
            continue  # the round was cancelled before its workers ran
        first = min(group, key=lambda r: r["stopping_unix_ms"] or r["ended_unix_ms"] or float("inf"))
        attempts.append(
            Attempt(
                number=len(attempts),
                round=key[1],
                nodes=[r["node"] for r in group],
                world=group[0]["world_size"],
                started=min(r["started_unix_ms"] for r in group),
                workers_started=max(started),
                stopped=first["stopping_unix_ms"] or first["ended_unix_ms"] or 0,
                ended=max(r["ended_unix_ms"] or 0 for r in group),
                reason=first["reason"] or "?",
                cut_off=sum(r["ended_unix_ms"] is None for r in group),
            )
        )
    for event in events:
        attempt = next((a for a in attempts if a.round == event.get("round")), None)
        if attempt and event["event"] == "start":
            attempt.resumed, attempt.first_epoch, attempt.last_epoch = event["unix_ms"], event["epoch"], event["epoch"]
        elif attempt and event["event"] == "epoch":
            attempt.last_epoch, attempt.last_epoch_at = event["epoch"], event["unix_ms"]
    return attempts


def losses(attempts):
    """The losses by attempt: for each attempt that trained, except the last."""
    result = {}
    trained = [attempt for attempt in attempts if attempt.resumed]
    for before, after in zip(trained, trained[1:]):
        checkpoint = before.last_epoch_at or before.resumed
        total, redone = after.resumed - checkpoint, max(0, before.stopped - checkpoint)
        between = attempts[before.number : after.number + 1]
        launcher = sum(later.workers_started - earlier.stopped for earlier, later in zip(between, between[1:]))
        result[before.number] = Loss(total=total, redone=redone, launcher=launcher, program=total - redone - launcher)
    return result


def in_short(reason):
    """The reason without details for readers of logs: process and host of a node, stderr, how a loss was found."""
    text = re.sub(r"(node [\w.-]+)_\d+( \(host [\w.-]+\))?", r"\1", reason).split(" (stderr:")[0]
    return re.sub(r" was lost.*", " was lost", text)


def table(attempts, lost):
    def seconds(milliseconds):
        return f"{milliseconds / 1000:.2f} s"

    rows = [
        (
            "attempt",
            "nodes",
            "workers",
            "epochs",
            "lasted",
            "why it ended",
            "time lost",
            "= work redone",
            "+ muster",
            "+ python, torch",
        )
    ]
    for attempt in attempts:
        loss = lost.get(attempt.number)
        rows.append(
            (
                str(attempt.number),
                str(len(attempt.nodes)),
                str(attempt.world),
                f"{attempt.first_epoch + 1}-{attempt.last_epoch}" if attempt.last_epoch > attempt.first_epoch else "-",
                seconds(attempt.ended - attempt.started),
                in_short(attempt.reason),
                *(
                    (seconds(loss.total), seconds(loss.redone), seconds(loss.launcher), seconds(loss.program))
                    if loss
                    else ("-",) * 4
                ),
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def broken_promises(attempts, events, *, workers, faults, killed, epochs, min_accuracy):
    """A sentence for each broken promise. The promises: after each of the `faults` all `workers` train again, exactly
    `killed` records have no end, and no epoch is lost or done twice."""
    wrong = []
    worlds = [attempt.world for attempt in attempts if attempt.resumed]
    if worlds.count(workers) != faults + 1 or worlds[-1] != workers or max(worlds) != workers:
        wrong.append(
            f"the attempts that trained had {worlds} workers, not {workers} at first and after each of {faults} faults"
        )
    cut_off = sum(attempt.cut_off for attempt in attempts)
    if cut_off != killed:
        wrong.append(f"{cut_off} records do not say why the attempt ended; {killed} nodes were killed")
    trained = [attempt for attempt in attempts if attempt.resumed]
    for before, after in zip(trained, trained[1:]):
        if after.first_epoch - before.last_epoch not in (0, 1):  # 1: stopped after a checkpoint, before its report
            wrong.append(
                f"attempt {after.number} went on after epoch {after.first_epoch}; "
                f"the checkpoint before it was of epoch {before.last_epoch}"
            )
    done = epochs_done(events)
    if [epoch for epoch, _ in done] != list(range(1, epochs + 1)):
        wrong.append(f"the epochs done were {[epoch for epoch, _ in done]}, not 1 to {epochs} once each")
    end = next((event for event in events if event["event"] == "end"), None)
    if end is None:
        wrong.append("the training did not come to its end")
    else:
        if end["accuracy"] < min_accuracy:
            wrong.append(f"test accuracy {end['accuracy']:.4f} is below {min_accuracy}")
        if end["history"] != [loss for _, loss in done]:
            wrong.append(
                "the loss history in the last checkpoint is not what the attempts reported: "
                "a resume lost or repeated an epoch"
            )
    return wrong
