"""What the attempts of a training run cost: the demo's table, and the promises it holds the launcher to.

Pure: made from the records the agents leave (attempt.json), the events of the training and the faults the demo injected.
"""
import dataclasses

from training_run import epochs_done


@dataclasses.dataclass
class Attempt:
    """One round over all its nodes. Times are Unix milliseconds."""
    number: int
    round: int
    nodes: list
    world: int
    restart_count: int
    started: int
    workers_started: int            # the last worker's
    ended: int = 0                  # no worker was left, or its node was killed
    reason: str = ""
    resumed: int = 0                # the training's own first word
    first_epoch: int = 0
    last_epoch: int = 0
    last_epoch_at: int = 0
    complete: bool = True           # every record of it says why it ended, but those of killed nodes


@dataclasses.dataclass
class Loss:
    """Time lost between two attempts."""
    total: int        # from the last checkpoint until the training goes on from it
    redone: int       # work since that checkpoint, done again
    launcher: int     # from the fault to the last new worker's start
    program: int      # python, torch and gloo coming up


def gather(records, events, faults):
    """faults: [{"at": ms, "what": text, "node": name or None}], in order; the n-th ended the n-th attempt."""
    rounds = {}
    for record in records:
        rounds.setdefault((record["term"], record["round"]), []).append(record)
    attempts = []
    for key in sorted(rounds):
        group = sorted(rounds[key], key=lambda record: record["node_rank"])
        started = [r["workers_started_unix_ms"] for r in group]
        if None in started:
            continue  # called off before its workers ran
        fault = faults[len(attempts)] if len(attempts) < len(faults) else None
        lost = [r for r in group if r["ended_unix_ms"] is None]
        attempt = Attempt(
            number=len(attempts), round=key[1], nodes=[r["node"] for r in group], world=group[0]["world_size"],
            restart_count=group[0]["restart_count"], started=min(r["started_unix_ms"] for r in group), workers_started=max(started))
        attempt.ended = max((r["ended_unix_ms"] for r in group if r["ended_unix_ms"]), default=fault["at"] if fault else 0)
        first = min(group, key=lambda r: r["stopping_unix_ms"] or float("inf"))
        attempt.reason = fault["what"] if fault and fault["node"] else first["reason"] or "?"
        attempt.complete = all(fault and r["node"] == fault["node"] for r in lost)
        attempts.append(attempt)
    for event in events:
        attempt = next((a for a in attempts if a.round == event.get("round")), None)
        if attempt and event["event"] == "start":
            attempt.resumed, attempt.first_epoch, attempt.last_epoch = event["unix_ms"], event["epoch"], event["epoch"]
        elif attempt and event["event"] == "epoch":
            attempt.last_epoch, attempt.last_epoch_at = event["epoch"], event["unix_ms"]
    return attempts


def losses(attempts, faults):
    result = []
    for before, after, fault in zip(attempts, attempts[1:], faults):
        checkpoint = before.last_epoch_at or before.resumed
        result.append(Loss(total=after.resumed - checkpoint, redone=max(0, fault["at"] - checkpoint),
                           launcher=after.workers_started - fault["at"], program=after.resumed - after.workers_started))
    return result


def table(attempts, lost):
    def seconds(milliseconds):
        return f"{milliseconds / 1000:.2f} s"

    rows = [("attempt", "nodes", "workers", "epochs", "lasted", "why it ended", "time lost", "= work redone", "+ muster", "+ python, torch")]
    for attempt, loss in zip(attempts, [*lost, None]):
        rows.append((
            str(attempt.number), str(len(attempt.nodes)), str(attempt.world), f"{attempt.first_epoch + 1}-{attempt.last_epoch}",
            seconds(attempt.ended - attempt.started), attempt.reason,
            *((seconds(loss.total), seconds(loss.redone), seconds(loss.launcher), seconds(loss.program)) if loss else ("-",) * 4)))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def broken_promises(attempts, events, expected_worlds, epochs, min_accuracy):
    """Sentences; none when all is as promised."""
    wrong = []
    worlds = [attempt.world for attempt in attempts]
    if worlds != expected_worlds:
        wrong.append(f"the attempts had {worlds} workers, not {expected_worlds}")
    for attempt in attempts:
        if not attempt.complete:
            wrong.append(f"attempt {attempt.number} has a record of a living node that does not say why it ended")
    for attempt in attempts:
        if not attempt.resumed:
            wrong.append(f"attempt {attempt.number} ended before its training had started")
    for before, after in zip(attempts, attempts[1:]):
        if after.first_epoch - before.last_epoch not in (0, 1):  # 1: stopped between a checkpoint and saying so
            wrong.append(f"attempt {after.number} went on after epoch {after.first_epoch}; the checkpoint before it was of epoch {before.last_epoch}")
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
            wrong.append("the loss history in the last checkpoint is not what the attempts reported: a resume lost or repeated an epoch")
    return wrong
