# SPDX-License-Identifier: Apache-2.0
"""`muster exec --wire=jax` and `--wire=xgboost` in several pods, all on this machine: they meet, restart and end
together."""

import json
import os
import signal
import subprocess

from muster_case import MUSTER, PYTHON, WORKER, Agent, MusterCase, Worker, clean, main, wait_gone


class Process(Worker):
    """A process of a pod, whose rank comes from its framework's variables."""

    def find_place(self):
        self.rank = int(self.env.get("JAX_PROCESS_ID") or self.env.get("DMLC_TASK_ID") or 0)


def listens(pid):
    """Whether the process has a listening TCP socket."""
    inodes = set()
    for family in ("tcp", "tcp6"):
        with open(f"/proc/{pid}/net/{family}") as table:
            inodes |= {row.split()[9] for row in list(table)[1:] if row.split()[3] == "0A"}
    held = [os.readlink(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd")]
    return any(target == f"socket:[{inode}]" for target in held for inode in inodes)


class Pods:
    worker_class = Process

    def setUp(self):
        super().setUp()
        self.endpoint = f"127.0.0.1:{self.free_port()}"

    def pod(self, rank, *flags, nodes=2, **env):
        env.setdefault("PET_RDZV_ENDPOINT", self.endpoint)
        return self.start(
            "--wire",
            *self.framework,
            *flags,
            "--",
            PYTHON,
            WORKER,
            subcommand="exec",
            worker=False,
            env={**self.variables(rank, nodes), **env},
        )

    def pods(self, *flags, nodes=2, **env):
        """Starts the pods, the last one first, so that it waits for node 0."""
        return [self.pod(rank, *flags, nodes=nodes, **env) for rank in reversed(range(nodes))][::-1]

    def all_succeed(self, agents):
        for worker in self.workers(len(agents)):
            worker.tell("exit 0")
        self.assertEqual([agent.wait() for agent in agents], [0] * len(agents))

    def test_each_has_its_variables_and_all_end_together(self):
        agents = self.pods(nodes=3)
        workers = self.workers(3)
        for rank, worker in enumerate(workers):
            for name, value in self.told(rank, 3).items():
                self.assertEqual(worker.env.get(name), value, name)
        for worker in workers[:2]:
            worker.tell("exit 0")
            self.assertTrue(wait_gone(worker.pid))
        self.assertEqual([agent.process.poll() for agent in agents], [None] * 3)
        workers[2].tell("exit 0")
        self.assertEqual([agent.wait() for agent in agents], [0, 0, 0])

    def test_a_pod_says_two_lines_at_most_before_its_program(self):
        token = os.path.join(self.dir, "the-token")
        with open(token, "w") as file:
            file.write("secret")
        agents = [
            self.pod(rank, MUSTER_TOKEN_FILE=token, MUSTER_HTTP_PORT=f"127.0.0.1:{self.free_port()}") for rank in (1, 0)
        ]
        workers = self.workers(2)
        for agent in agents:
            said = self.wait_for_output(agent, "round 0: this is node").splitlines()
            self.assertLessEqual(len(said), 2, said)
        for worker in workers:
            worker.tell("exit 0")
        self.assertEqual([agent.wait() for agent in agents], [0, 0])

    def test_a_fatal_code_ends_all_with_it(self):
        agents = self.pods("--max-restarts=3", nodes=3)
        self.workers(3)[1].tell("exit 3")
        self.assertEqual([agent.wait() for agent in agents], [3, 3, 3])
        for agent in agents:
            self.assertRegex(agent.output(), r"node-1 .*ended with exit code 3, which is fatal.*\(exit code 3\)")
        self.assertTrue(self.no_worker_waits())

    def test_all_pods_leave_the_same_cause(self):
        logs = [os.path.join(self.dir, f"termination-log-{rank}") for rank in range(3)]
        for log in logs:
            open(log, "w").close()
        agents = [
            self.pod(rank, "--max-restarts=3", "--tee=2", f"--termination-log={logs[rank]}", nodes=3)
            for rank in (2, 1, 0)
        ]
        worker = self.workers(3)[1]
        worker.ask("error no such column: label")
        worker.tell("exit 3")
        self.assertEqual([agent.wait() for agent in agents], [3, 3, 3])
        left = []
        for log in logs:
            with open(log) as file:
                left.append(json.load(file))
        for rank, message in enumerate(left):
            self.assertEqual(
                (message["exit_code"], message["class"], message["node"], message["node_rank"]),
                (3, "fatal", f"node-{rank}", rank),
            )
            self.assertRegex(
                message["reason"],
                r"^node node-1 .*ended with exit code 3 \(stderr: no such column: label\), which is fatal",
            )
            self.assertEqual(message["cause"], left[1]["cause"])
        cause = left[0]["cause"]
        self.assertEqual(
            (cause["node"], cause["pid"], cause["exit_code"], cause["stderr_tail"]),
            ("node-1", worker.pid, 3, ["no such column: label"]),
        )
        self.assertFalse(cause.get("consequence", False))

    def test_a_retryable_code_restarts_all_while_the_budget_lasts(self):
        agents = self.pods("--max-restarts=1", nodes=3)
        first = self.workers(3)
        first[2].tell("exit 130")
        again = self.workers(3)
        self.assertEqual([worker.rank for worker in again], [0, 1, 2])
        self.assertFalse({worker.pid for worker in first} & {worker.pid for worker in again})
        again[0].tell("exit 130")
        self.assertEqual([agent.wait() for agent in agents], [130, 130, 130])

    def test_the_budget_of_the_environment(self):
        agents = self.pods(PET_MAX_RESTARTS="1")
        self.workers(2)[0].tell("signal 9")
        self.all_succeed(agents)

    def replaced(self, rank, number, nodes=2):
        agents = self.pods(nodes=nodes)
        workers = self.workers(nodes)
        agents[rank].send(number)
        code = agents[rank].wait()
        for worker in workers:
            self.assertTrue(wait_gone(worker.pid))
        self.assertTrue(self.no_worker_waits())  # too few nodes: the others wait
        agents[rank] = self.pod(rank, nodes=nodes)
        self.all_succeed(agents)
        return code

    def test_a_killed_pod_is_replaced(self):
        self.assertEqual(self.replaced(1, signal.SIGKILL), 137)

    def test_node_0_is_killed_and_comes_back(self):
        self.assertEqual(self.replaced(0, signal.SIGKILL), 137)
        self.assertEqual(self.replaced(0, signal.SIGKILL, nodes=3), 137)

    def test_a_preempted_pod_is_replaced(self):
        self.assertEqual(self.replaced(1, signal.SIGTERM), 143)

    def test_node_0_is_preempted_and_comes_back(self):
        self.assertEqual(self.replaced(0, signal.SIGTERM), 143)

    def test_a_preempted_pod_whose_command_ends_well_is_still_missing(self):
        agents = self.pods()
        workers = self.workers(2)
        workers[1].ask("ignore SIGTERM")
        agents[1].send(signal.SIGTERM)
        workers[1].ask("asked SIGTERM")
        self.assertTrue(wait_gone(workers[0].pid))  # stopped before the other command was done
        workers[1].tell("exit 0")
        self.assertEqual(agents[1].wait(), 143)
        agents[1] = self.pod(1)
        self.all_succeed(agents)

    def test_a_missing_pod_is_named_in_time(self):
        agent = self.pod(0, "--rdzv-conf=join_timeout=1")
        self.assertEqual(agent.wait(), 200)
        self.assertRegex(agent.output(), "1 of 2")
        agent = self.pod(1, PET_RDZV_CONF="join_timeout=1")
        self.assertEqual(agent.wait(), 200)
        self.assertIn(self.endpoint, agent.output())

    def test_by_torchruns_flags(self):
        flags = ("--nnodes=2", "--rdzv-endpoint", self.endpoint, "--rdzv-id=job", "--rdzv-conf=join_timeout=600")
        agents = [
            self.pod(1, *flags, f"--node-rank={rank}", nodes=9, PET_RDZV_ENDPOINT="nowhere:1") for rank in range(2)
        ]
        workers = self.workers(2)
        self.assertEqual([worker.rank for worker in workers], [0, 1])
        for worker in workers:
            worker.tell("exit 0")
        self.assertEqual([agent.wait() for agent in agents], [0, 0])
        self.assertIn("--rdzv-endpoint=", agents[0].output())  # the flag wins over the variable

    def test_who_has_no_token_does_not_join(self):
        token = os.path.join(self.dir, "token")
        with open(token, "w") as file:
            file.write("secret")
        agents = self.pods(MUSTER_TOKEN_FILE=token)
        workers = self.workers(2)
        stranger = self.pod(1, "--rdzv-conf=join_timeout=600")
        self.assertEqual(stranger.wait(), 78)
        for worker in workers:
            worker.tell("exit 0")
        self.assertEqual([agent.wait() for agent in agents], [0, 0])

    def test_alone_nothing_is_served(self):
        agent = self.pod(0, nodes=1)
        (worker,) = self.workers(1)
        self.assertFalse(listens(agent.pid))
        worker.tell("exit 3")
        self.assertEqual(agent.wait(), 3)


class Jax(Pods, MusterCase):
    framework = ("jax",)

    def variables(self, rank, nodes):
        return {
            "JAX_NUM_PROCESSES": str(nodes),
            "JAX_PROCESS_ID": str(rank),
            "JAX_COORDINATOR_ADDRESS": "127.0.0.1:29500",
        }

    told = variables

    def test_by_the_pods_place(self):
        place = dict(
            PET_NNODES="2", TRAINER_NODE_0_HOSTNAME="localhost", PET_MASTER_PORT="77", PET_RDZV_ENDPOINT=self.endpoint
        )
        agents = [
            self.start(
                "--wire=jax",
                "--",
                PYTHON,
                WORKER,
                subcommand="exec",
                worker=False,
                env={**place, "JOB_COMPLETION_INDEX": str(rank)},
            )
            for rank in range(2)
        ]
        workers = self.workers(2)
        self.assertEqual(
            [(w.rank, w.env["JAX_COORDINATOR_ADDRESS"], w.env["JAX_NUM_PROCESSES"]) for w in workers],
            [(0, "localhost:77", "2"), (1, "localhost:77", "2")],
        )
        for worker in workers:
            worker.tell("exit 0")
        self.assertEqual([agent.wait() for agent in agents], [0, 0])

    def test_who_swallows_the_signal_is_not_waited_for_after_a_failure(self):
        agents = self.pods()
        workers = self.workers(2)
        workers[1].ask("ignore SIGTERM")  # as JAX does
        workers[0].tell("exit 3")
        self.assertEqual([agent.wait() for agent in agents], [3, 3])
        self.assertTrue(wait_gone(workers[1].pid))


class Xgboost(Pods, MusterCase):
    framework = ("xgboost", "--nproc-per-node=1")  # whatever GPUs this machine has

    def variables(self, rank, nodes):  # all variables that Kubeflow sets
        return {
            "DMLC_NUM_WORKER": str(nodes),
            "DMLC_TASK_ID": str(rank),
            "DMLC_TRACKER_URI": "127.0.0.1",
            "DMLC_TRACKER_PORT": "29500",
        }

    told = variables

    def test_the_tracker_has_another_port_in_the_next_round(self):
        agents = self.pods("--max-restarts=1")
        workers = self.workers(2)
        self.assertEqual({worker.env["DMLC_TRACKER_PORT"] for worker in workers}, {"29500"})
        workers[0].tell("exit 130")
        again = self.workers(2)
        self.assertEqual({worker.env["DMLC_TRACKER_PORT"] for worker in again}, {"29501"})
        for worker in again:
            worker.tell("exit 0")
        self.assertEqual([agent.wait() for agent in agents], [0, 0])

    def test_several_processes_in_each_pod(self):
        agents = [self.pod(rank, "--nproc-per-node=2", nodes=4) for rank in range(2)]
        workers = self.workers(4)
        self.assertEqual([worker.rank for worker in workers], [0, 1, 2, 3])
        workers[2].tell("exit 5")
        self.assertEqual([agent.wait() for agent in agents], [5, 5])


class ElasticTorch(MusterCase):
    """PET_NNODES=1:2, as in an elastic TrainJob's pods: node 0 owns the endpoint, the other node comes and goes."""

    def setUp(self):
        super().setUp()
        self.port = self.free_port()
        self.binaries = os.path.join(self.dir, "bin")
        subprocess.run([MUSTER, "install", self.binaries], check=True, capture_output=True)

    def start_command(self):
        return ["--wire=torch", "--", PYTHON, WORKER]

    def endpoint(self):
        return {"PET_MASTER_ADDR": "127.0.0.1", "PET_MASTER_PORT": str(self.port)}

    def pod(self, rank):
        env = clean(
            PET_NNODES="1:2",
            PET_NPROC_PER_NODE="1",
            PET_NODE_RANK=str(rank),
            PET_RDZV_CONF="last_call_timeout=1",
            PET_RDZV_ID="job",
            PET_MAX_RESTARTS="0",
            MUSTER_TEST_SOCKET=os.path.join(self.dir, "socket"),
            PYTHON_EXEC=PYTHON,
            **self.endpoint(),
        )
        path = os.path.join(self.dir, f"agent-{len(self.agents)}.txt")
        with open(path, "w") as output:
            process = subprocess.Popen(
                [os.path.join(self.binaries, "muster"), "exec", *self.start_command()],
                env=env,
                cwd=self.dir,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self.agents.append(Agent(process, path))
        return self.agents[-1]

    def alone(self, rank, at_least):
        (worker,) = self.round_of(1, at_least)
        self.assertEqual((worker.env["GROUP_RANK"], worker.env["GROUP_WORLD_SIZE"], worker.restarts), ("0", "1", 0))
        self.assertEqual(worker.env["PET_NODE_RANK"], str(rank))
        return worker

    def together(self, at_least):
        workers = self.round_of(2, at_least)
        self.assertEqual({(worker.world_size, worker.restarts) for worker in workers}, {(2, 0)})
        return workers

    def comes_and_goes(self, number, code):
        first = self.pod(0)
        before = self.alone(0, 0)
        second = self.pod(1)
        workers = self.together(before.round + 1)
        self.assertTrue(wait_gone(before.pid))
        second.send(number)
        self.assertEqual(second.wait(), code)
        after = self.alone(0, workers[0].round + 1)
        again = self.pod(1)
        workers = self.together(after.round + 1)
        for worker in workers:
            worker.tell("exit 0")
        self.assertEqual([first.wait(), again.wait()], [0, 0])

    def test_a_second_node_comes_later_and_is_preempted(self):
        self.comes_and_goes(signal.SIGTERM, 143)

    def test_a_second_node_comes_later_and_is_killed(self):
        self.comes_and_goes(signal.SIGKILL, 137)

    def test_the_first_node_leaves_and_comes_back(self):
        first = self.pod(0)
        before = self.alone(0, 0)
        second = self.pod(1)
        workers = self.together(before.round + 1)
        first.send(signal.SIGTERM)
        self.assertEqual(first.wait(), 143)
        after = self.alone(1, workers[0].round + 1)
        again = self.pod(0)
        workers = self.together(after.round + 1)
        for worker in workers:
            worker.tell("exit 0")
        self.assertEqual([second.wait(), again.wait()], [0, 0])

    def test_a_fatal_code_of_the_late_one_ends_both(self):
        first = self.pod(0)
        before = self.alone(0, 0)
        second = self.pod(1)
        self.together(before.round + 1)[1].tell("exit 3")
        self.assertEqual([first.wait(), second.wait()], [3, 3])
        self.assertTrue(self.no_worker_waits())


class ElasticTorchrun(ElasticTorch):
    """The same with a torchrun (Muster's link) inside a shell, and the variables of a PyTorchJob's elasticPolicy."""

    def endpoint(self):
        return {"PET_RDZV_BACKEND": "c10d", "PET_RDZV_ENDPOINT": f"127.0.0.1:{self.port}"}

    test_a_second_node_comes_later_and_is_killed = (
        None  # only in a PID namespace of its own would all of the pod die with it
    )

    def start_command(self):
        return ["--", "sh", "-c", f"echo installing; torchrun {WORKER}"]


class ServiceLinks(MusterCase):
    """Variables of Services can have the names of settings; Kubernetes sets them to addresses, which are no
    settings."""

    LINK = "tcp://10.0.0.1:80"
    NAMES = [
        "MUSTER_HTTP_PORT",
        "MUSTER_RSH_PORT",
        "PET_MASTER_PORT",
        "MASTER_PORT",
        "COORDINATOR_PORT",
        "DMLC_TRACKER_PORT",
    ]
    SHOW = "; ".join(f'echo "{name}=${{{name}-}}"' for name in [*NAMES, "REDIS_PORT"])

    def setUp(self):
        super().setUp()
        self.links = dict.fromkeys([*self.NAMES, "REDIS_PORT"], self.LINK)

    def said_once(self, output):
        for name in self.NAMES:
            service = name.removesuffix("_PORT").lower().replace("_", "-")
            self.assertEqual(output.count(f" {name}={self.LINK} is not a setting"), 1, output)
            self.assertEqual(output.count(f"because of the Service {service};"), 1, output)
        self.assertEqual(output.count("enableServiceLinks: false"), len(self.NAMES), output)
        self.assertNotIn("Service redis", output)

    def ends(self, *arguments, **env):
        done = subprocess.run(
            [MUSTER, *arguments],
            env=clean(**self.links, **env),
            text=True,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=90,
            cwd=self.dir,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.said_once(done.stderr)
        return dict(line.split("=", 1) for line in done.stdout.splitlines())

    def test_commands_run_without_them(self):
        without = {**dict.fromkeys(self.NAMES, ""), "REDIS_PORT": self.LINK}
        command = ["--termination-log", "", "--", "sh", "-c", self.SHOW]
        self.assertEqual(self.ends("exec", *command), without)
        self.assertEqual(self.ends("exec", "--wire=mpi", *command, MUSTER_MPI_HOSTS="localhost"), without)
        self.assertEqual(self.ends("exec", "--wire=xgboost", *command), {**without, "DMLC_TRACKER_PORT": "29500"})
        shown = self.ends("run", "--standalone", "--no-python", "sh", "-c", self.SHOW)
        self.assertRegex(shown.pop("MASTER_PORT"), r"^\d+$")
        self.assertEqual(shown, {name: value for name, value in without.items() if name != "MASTER_PORT"})

    def test_the_real_torchrun_starts_without_them(self):
        real = os.path.join(self.dir, "torchrun")
        with open(real, "w") as file:
            file.write(f"#!/bin/sh\n{self.SHOW}\n")
        os.chmod(real, 0o755)
        shown = self.ends("run", "--rdzv-backend=etcd", "x.py", PATH=f"{self.dir}:/usr/bin:/bin")
        self.assertEqual(shown, {**dict.fromkeys(self.NAMES, ""), "REDIS_PORT": self.LINK})

    def test_what_serves(self):
        for words, ready in (
            (["coordinator", "--listen", "127.0.0.1:0"], "listening on"),
            (
                ["exec", "--serve-rsh", "--rsh-listen", "127.0.0.1:0", "--termination-log", ""],
                "serving the remote shell",
            ),
        ):
            agent = self.start(*words[1:], subcommand=words[0], worker=False, env=self.links)
            self.wait_for_output(agent, ready)
            agent.send(signal.SIGTERM)
            self.assertEqual(agent.wait(), 143, agent.output())
            self.said_once(agent.output())


if __name__ == "__main__":
    main()
