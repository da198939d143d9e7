# SPDX-License-Identifier: Apache-2.0
"""The measurements of a launcher: one function per row of the table. It runs the scene once and returns the figures."""

import os
import signal
import subprocess
import tempfile
import time

from launchers import Scene, build, cpu_seconds, free_port, wake_ups

HERE = os.path.dirname(os.path.abspath(__file__))
IDLE_SECONDS = 5
MANY = 128
SPARE_SECONDS = 3


def now():
    return time.monotonic()


def last(probes):
    return max(probe.started for probe in probes)


def milliseconds(seconds):
    return {"ms": seconds * 1000}


def start_and_end(launcher, probe):
    """The time and memory of the whole process, as a shell would wait for it."""
    with tempfile.TemporaryFile() as output:
        began = now()
        process = subprocess.Popen(
            [*launcher.command, "--standalone", "--nproc_per_node", "2", "--no_python", "/bin/true"],
            env=launcher.environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        took = now() - began
        if process.returncode != 0:
            output.seek(0)
            raise RuntimeError(f"ended with {process.returncode}: {output.read()[-500:].decode()}")
    return {"ms": took * 1000, "MB peak": usage.ru_maxrss / 1024, "ms CPU": (usage.ru_utime + usage.ru_stime) * 1000}


def two_nodes_start(launcher, probe):
    with Scene(launcher, probe) as scene:
        began = now()
        scene.node("2", 2)
        scene.node("2", 2)
        return milliseconds(last(scene.workers(4)) - began)


def worker_killed_one_node(launcher, probe):
    with Scene(launcher, probe) as scene:
        scene.start("--standalone", "--nproc_per_node", "8", "--max_restarts", "1")
        workers = scene.workers(8)
        began = now()
        os.kill(workers[3].pid, signal.SIGKILL)
        return milliseconds(last(scene.workers(8, since=began)) - began)


def worker_killed_two_nodes(launcher, probe):
    with Scene(launcher, probe) as scene:
        for _ in range(2):
            scene.node("2", 2, "--max_restarts", "1")
        workers = scene.workers(4)
        began = now()
        os.kill(workers[3].pid, signal.SIGKILL)
        return milliseconds(last(scene.workers(4, since=began)) - began)


def worker_exits_3(launcher, probe):
    with Scene(launcher, probe) as scene:
        agents = [scene.node("2", 2) for _ in range(2)]
        workers = scene.workers(4)
        began = now()
        os.kill(workers[3].pid, signal.SIGUSR1)
        codes = scene.wait_ended(agents)
        return {**milliseconds(now() - began), "exit code": max(codes)}


def agent_killed(launcher, probe, index):
    with Scene(launcher, probe) as scene:
        agents = [scene.node("2:3", 1) for _ in range(3)]
        scene.workers(3)
        began = now()
        agents[index].kill()
        return milliseconds(last(scene.workers(2, since=began)) - began)


def agent_killed_other(launcher, probe):
    return agent_killed(launcher, probe, 2)


def agent_killed_coordinator(launcher, probe):
    return agent_killed(launcher, probe, 0)


def third_node_joins(launcher, probe):
    with Scene(launcher, probe) as scene:
        for _ in range(2):
            scene.node("2:3", 1)
        scene.workers(2)
        began = now()
        scene.node("2:3", 1)
        return milliseconds(last(scene.workers(3, since=began)) - began)


def node_replaced(launcher, probe):
    with Scene(launcher, probe) as scene:
        agents = [scene.node("2", 1, "--max_restarts", "1") for _ in range(2)]
        scene.workers(2)
        agents[1].kill()
        agents[1].wait()
        began = now()
        scene.node("2", 1, "--max_restarts", "1")
        return milliseconds(last(scene.workers(2, since=began)) - began)


def spare_steps_in(launcher, probe):
    """Two nodes run, the third waits. The workers do nothing, so the figures are the launcher's."""
    with Scene(launcher, probe) as scene:
        agents = [scene.node("2:2", 1) for _ in range(2)]
        scene.workers(2)
        scene.node("2:2", 1)
        given_up = now() + SPARE_SECONDS  # the peer does not say that it waits
        while "waits as a spare" not in scene.said() and now() < given_up:
            time.sleep(0.01)
        began = now()
        agents[1].kill()
        return milliseconds(last(scene.workers(2, since=began)) - began)


def static_restart(launcher, probe):
    with Scene(launcher, probe) as scene:
        for rank in range(2):
            scene.static_node(rank, "2", 1, "--max_restarts", "1")
        workers = scene.workers(2)
        began = now()
        os.kill(workers[1].pid, signal.SIGKILL)
        return milliseconds(last(scene.workers(2, since=began)) - began)


def idle_cost(agents):
    """Percent of a core and wake-ups per second, of all agents together."""
    cpu, woken, began = sum(cpu_seconds(a.pid) for a in agents), sum(wake_ups(a.pid) for a in agents), now()
    time.sleep(IDLE_SECONDS)
    span = now() - began
    return {
        "% of a core idle": 100 * (sum(cpu_seconds(a.pid) for a in agents) - cpu) / span,
        "wake-ups/s": (sum(wake_ups(a.pid) for a in agents) - woken) / span,
    }


def many_agents(launcher, probe):
    with Scene(launcher, probe) as scene:
        began = now()
        for _ in range(MANY):
            scene.node(str(MANY), 1, "--max_restarts", "1")
        workers = scene.workers(MANY)
        started = last(workers) - began
        idle = idle_cost(scene.agents)
        began = now()
        os.kill(workers[MANY // 2].pid, signal.SIGKILL)
        restarted = last(scene.workers(MANY, since=began)) - began
        return {"ms": restarted * 1000, "ms to start": started * 1000, **idle}


def many_agents_end(launcher, probe):
    with Scene(launcher, probe) as scene:
        agents = [scene.node(str(MANY), 1) for _ in range(MANY)]
        workers = scene.workers(MANY)
        time.sleep(1)  # the start of the last agents must not count
        began = now()
        os.kill(workers[MANY // 2].pid, signal.SIGUSR1)
        codes = scene.wait_ended(agents)
        return {**milliseconds(now() - began), "exit code": max(codes)}


def many_floor(_, probe):
    """No launcher at all: many_floor.c."""
    with tempfile.TemporaryDirectory(prefix="muster-bench-") as folder:
        pipe = f"{folder}/pipe"
        os.mkfifo(pipe)
        command = [build("many_floor", folder), probe]
        text = subprocess.run(command, env={"PROBE_PIPE": pipe}, check=True, stdout=subprocess.PIPE, text=True).stdout
        restarted, ended = (float(word) for word in text.split())
        return {"ms": restarted, "ms to end": ended}


def idle_agent(launcher, probe):
    with Scene(launcher, probe) as scene:
        scene.start("--standalone", "--nproc_per_node", "8")
        scene.workers(8)
        return idle_cost(scene.agents)


FIRST_ALL_REDUCE = """
import torch, torch.distributed as dist, time
dist.init_process_group("gloo")
dist.all_reduce(torch.ones(1))
print(f"reduced {time.monotonic()}\\n", end="", flush=True)  # one write: the ranks share a pipe
dist.destroy_process_group()  # without it torch aborts now and then at its end, also without a launcher
"""


def first_all_reduce(launcher, probe):
    """From the launcher's start to the end of the first all_reduce, and the same without a launcher right after it."""
    with tempfile.TemporaryDirectory(prefix="muster-bench-") as folder:
        script = f"{folder}/reduce.py"
        with open(script, "w") as file:
            file.write(FIRST_ALL_REDUCE)

        def reduced(outputs):
            return max(float(line.split()[-1]) for text in outputs for line in text.splitlines() if "reduced" in line)

        began = now()
        text = subprocess.run(
            [*launcher.command, "--standalone", "--nproc_per_node", "2", script],
            env=launcher.environment(),
            check=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ).stdout
        launched = reduced([text]) - began
        common = {
            **launcher.environment(),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(free_port()),
            "WORLD_SIZE": "2",
        }
        began = now()
        bare = [
            subprocess.Popen(
                [launcher.python, "-u", script],
                env={**common, "RANK": str(rank)},
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            for rank in range(2)
        ]
        alone = reduced([process.communicate()[0] for process in bare]) - began
        return {"ms more than bare": (launched - alone) * 1000, "ms": launched * 1000}


# (name, title, goal, measure, runs of the peer; 0: only with --slow)
ROWS = [
    (
        "start",
        "`--standalone --nproc-per-node 2 --no-python /bin/true`, whole process",
        "<= 25 ms, <= 16 MB",
        start_and_end,
        3,
    ),
    ("nodes", "2 nodes x 2 workers: agents started -> last worker started", "<= 60 ms", two_nodes_start, 3),
    ("killed-1", "worker killed, 1 node x 8 -> all workers of the next attempt", "<= 25 ms", worker_killed_one_node, 3),
    (
        "killed-2",
        "worker killed, 2 nodes x 2 -> all workers of the next attempt",
        "<= 50 ms",
        worker_killed_two_nodes,
        3,
    ),
    ("exits-3", "worker exits 3, no restarts left -> both launchers ended", "<= 50 ms, code 3", worker_exits_3, 1),
    ("agent", "agent SIGKILLed (2:3) -> survivors' new workers", "<= 200 ms", agent_killed_other, 1),
    (
        "coordinator",
        "agent that hosts rendezvous and store SIGKILLed (2:3) -> survivors' new workers",
        "<= 200 ms",
        agent_killed_coordinator,
        1,
    ),
    ("joins", "3rd node joins a running 2:3 -> workers of the new round", "<= 200 ms", third_node_joins, 1),
    ("replaced", "lost node replaced, fixed 2: new agent started -> all workers", "<= 300 ms", node_replaced, 1),
    (
        "spare",
        "agent SIGKILLed (2:2) while a third node waits -> workers of the new round, the spare's among them",
        "<= 200 ms",
        spare_steps_in,
        1,
    ),
    (
        "static",
        "static rendezvous, worker of node 1 killed -> new attempt on both nodes",
        "<= 50 ms",
        static_restart,
        1,
    ),
    (
        "many",
        f"{MANY} agents x 1: worker killed -> all new workers; idle cost of all",
        "<= 500 ms, < 0.5 %",
        many_agents,
        0,
    ),
    (
        "many-end",
        f"{MANY} agents x 1: worker exits 3, no restarts left -> all agents ended",
        "<= 60 ms, code 3",
        many_agents_end,
        0,
    ),
    ("many-floor", f"{MANY} processes that only start and end a worker: restart; end", "-", many_floor, 0),
    ("idle", "idle agent with 8 workers", "< 0.1 %, 0 wake-ups beyond the heartbeat", idle_agent, 1),
    (
        "reduce",
        "start -> end of the first gloo all_reduce, 2 workers, over the same without a launcher",
        "<= +50 ms",
        first_all_reduce,
        3,
    ),
]
