# SPDX-License-Identifier: Apache-2.0
"""A worker of standby_drill_test.py: hashes in a chain, writes each link to the disk, and continues from it.

A step makes a link of the last one. The worker ends when it has done as many as the file `goal` says, once there is
one. It reports its steps to `pipe`: "RESTARTS RANK PID STEP"."""

import hashlib
import json
import os

STEP_WORK = 10_000  # hashes beside that of the chain: some milliseconds


def link_after(link, rank, step):
    return hashlib.sha256(f"{link.hex()} {rank} {step}".encode()).digest()


def is_enough(step):
    try:
        with open("goal") as file:
            return step >= int(file.read())
    except FileNotFoundError:
        return False


def main():
    rank, restarts = int(os.environ["RANK"]), os.environ["TORCHELASTIC_RESTART_COUNT"]
    path = f"checkpoint-{rank}"
    step, link = 0, b""
    if os.path.exists(path):
        with open(path) as file:
            state = json.load(file)
        step, link = state["step"], bytes.fromhex(state["link"])
    pipe = os.open("pipe", os.O_WRONLY)
    while not is_enough(step):
        os.write(pipe, f"{restarts} {rank} {os.getpid()} {step}\n".encode())
        for _ in range(STEP_WORK):
            hashlib.sha256(link)
        step, link = step + 1, link_after(link, rank, step)
        with open(path + ".new", "w") as file:
            json.dump({"step": step, "link": link.hex()}, file)
        os.replace(path + ".new", path)


if __name__ == "__main__":
    main()
