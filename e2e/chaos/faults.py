# SPDX-License-Identifier: Apache-2.0
"""The faults of a chaos run. A seed gives the same list of faults at the same moments: schedule() is a pure function.
What a fault strikes is chosen by the fault's own random numbers among what exists at its moment.
"""

import base64
import collections
import dataclasses
import json
import os
import random
import signal

import control_groups
from jobs import MARK
from network import CONTROL_PLANE
from node import read_words

CONTROLLER = "muster-controller"
SYSTEM = "kubeflow-system"

Planned = collections.namedtuple("Planned", "at kind seed")  # s from the start of the faults; the kind's name


@dataclasses.dataclass
class Struck:
    """What a fault has done. `charged`: the jobs that may be charged a restart for it; `moved`: those whose pods it may
    have ended. `undo`: called after `seconds`."""

    text: str
    charged: tuple = ()
    moved: tuple = ()
    seconds: float = 0
    undo: object = None


class Nothing(Exception):
    """There is nothing that the fault could strike."""


def schedule(seed, seconds):
    """The faults of a run: one every 2 to 5 s, and beside them a clock that is moved every 20 to 40 s."""
    kinds = [name for name, (weight, _) in KINDS.items() for _ in range(weight)]
    return sorted(
        draw(random.Random(seed), seconds, (2, 5), kinds)
        + draw(random.Random(f"clocks of {seed}"), seconds, (20, 40), ["controllers' clock set"])
    )


def draw(chance, seconds, pauses, kinds):
    at, planned = 0, []
    while (at := at + chance.uniform(*pauses)) < seconds:
        planned.append(Planned(at, chance.choice(kinds), chance.getrandbits(32)))
    return planned


# ---- processes of jobs


def variables(pid):
    return dict(word.split("=", 1) for word in read_words(f"/proc/{pid}/environ") if "=" in word)


def parent(pid):
    with open(f"/proc/{pid}/stat") as file:
        return int(file.read().rpartition(")")[2].split()[1])


def processes(nodes):
    """(pid, job, is_worker, pod) of the agents and the workers in all pods, in the order of job, pod and rank."""
    found = []
    for node in nodes:
        for pid in control_groups.processes(f"{node.group}/kubepods"):
            try:
                mine, above = variables(pid), variables(parent(pid))
            except OSError:  # it has just ended
                continue
            if MARK not in mine:
                continue
            if MARK not in above:  # the container's first process
                found.append((pid, mine[MARK], False, mine.get("HOSTNAME", ""), 0))
            elif "LOCAL_RANK" in mine and "LOCAL_RANK" not in above:
                found.append((pid, mine[MARK], True, mine.get("HOSTNAME", ""), int(mine["LOCAL_RANK"])))
    return [each[:4] for each in sorted(found, key=lambda each: each[1:])]


def kill_one(world, chance, workers, number=signal.SIGKILL):
    of_kind = [each for each in processes(world.nodes) if each[2] == workers]
    if not of_kind:
        raise Nothing("no such process")
    pid, job, _, pod = chance.choice(of_kind)
    try:
        os.kill(pid, number)
    except ProcessLookupError as error:
        raise Nothing(str(error)) from None
    return Struck(f"{number.name} for {'a worker' if workers else 'the agent'} of {job} in {pod}", (job,))


def worker(world, chance):
    return kill_one(world, chance, True, chance.choice((signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT)))


def agent(world, chance):
    return kill_one(world, chance, False)


# ---- objects


def choose(world, chance, kind, namespace=None, wanted=lambda item: True):
    """One of the objects of a kind. Nothing: there is none."""
    found = [item for item in world.get(kind, namespace) if wanted(item)]
    if not found:
        raise Nothing(f"there are no {kind}")
    return chance.choice(sorted(found, key=lambda item: item["metadata"]["name"]))


def job_of(item):
    """The job that an object belongs to, by its labels, else its owner; "": none."""
    labels, owners = (item["metadata"].get(field) for field in ("labels", "ownerReferences"))
    for label in ("jobset.sigs.k8s.io/jobset-name", "training.kubeflow.org/job-name"):
        if label in (labels or {}):
            return labels[label]
    return owners[0]["name"] if owners else ""


def is_alive(pod):
    return pod.get("status", {}).get("phase") in ("Pending", "Running") and "deletionTimestamp" not in pod["metadata"]


def delete_pod(world, chance, *flags):
    pod = choose(world, chance, "pods", wanted=is_alive)
    name = pod["metadata"]["name"]
    world.kubectl("delete", "pod", name, "--wait=false", *flags)
    return Struck(f"pod {name} is deleted {' '.join(flags)}", moved=(job_of(pod),))


def pod(world, chance):
    return delete_pod(world, chance)


def pod_at_once(world, chance):
    return delete_pod(world, chance, "--force", "--grace-period=0")


def eviction(world, chance):
    pod = choose(world, chance, "pods", wanted=is_alive)
    name = pod["metadata"]["name"]
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": world.namespace}}
    path = f"/api/v1/namespaces/{world.namespace}/pods/{name}/eviction"
    world.kubectl("create", "--raw", path, "-f", "-", content=json.dumps(body))
    return Struck(f"pod {name} is evicted", moved=(job_of(pod),))


def preemption(world, chance):
    """A pod of a higher priority takes what one node has."""
    node = chance.choice(world.nodes)
    name = f"preemptor-{chance.getrandbits(24):06x}"
    room = next(item for item in world.get("nodes") if item["metadata"]["name"] == node.name)["status"]["allocatable"]
    request = {"cpu": f"{int(room['cpu']) * 1000 - 100}m"}
    world.kubectl("apply", "-f", "-", content=json.dumps(world.preemptor(name, node.name, request)))
    moved = tuple({job_of(pod) for pod in world.get("pods") if pod["spec"].get("nodeName") == node.name} - {""})
    return Struck(
        f"{name} takes {request['cpu']} of {node.name}",
        moved=moved,
        seconds=chance.uniform(3, 10),
        undo=lambda: world.kubectl("delete", "pod", name, "--wait=false", "--ignore-not-found"),
    )


def delete_item(world, kind, item):
    name = item["metadata"]["name"]
    world.kubectl("delete", kind, name, "--wait=false")
    return Struck(f"{kind} {name} is deleted", moved=(job_of(item),))


def delete_object(world, chance, kind):
    return delete_item(world, kind, choose(world, chance, kind, wanted=job_of))


DELETED = object()


def change_data(world, chance, kind, edits):
    """Somebody deletes a Secret or ConfigMap of Muster's, writes one of its values, or takes one away."""
    item = choose(world, chance, kind, wanted=job_of)
    name, keys = item["metadata"]["name"], sorted(item.get("data", {}))
    edit = chance.choice(edits)
    if not keys or edit is DELETED:
        return delete_item(world, kind, item)
    key = chance.choice(keys)
    world.kubectl("patch", kind, name, "--type=merge", "-p", json.dumps({"data": {key: edit}}))
    return Struck(f"{key} of {kind} {name} is {'edited' if edit else 'taken away'}", moved=(job_of(item),))


def secret(world, chance):
    return change_data(world, chance, "secrets", (DELETED, None, base64.b64encode(b"edited by hand").decode()))


def config_map(world, chance):
    return change_data(world, chance, "configmaps", (DELETED, None, "edited by hand"))


def service(world, chance):
    return delete_object(world, chance, "services")


def edited_service(world, chance):
    item = choose(world, chance, "services", wanted=job_of)
    name = item["metadata"]["name"]
    edit = {"spec": {"selector": {"edited": "by-hand"}}}  # no pod has this label
    world.kubectl("patch", "service", name, "--type=merge", "-p", json.dumps(edit))
    return Struck(f"the selector of service {name} is edited", moved=(job_of(item),))


def batch_job(world, chance):
    return delete_object(world, chance, "jobs")


def edited_job(world, chance):
    """Somebody suspends a Job of Muster's."""
    item = choose(world, chance, "jobs", wanted=lambda item: job_of(item) and not item["spec"].get("suspend"))
    name = item["metadata"]["name"]
    world.kubectl("patch", "job", name, "--type=merge", "-p", json.dumps({"spec": {"suspend": True}}))
    return Struck(f"job {name} is suspended by hand", moved=(job_of(item),))


# ---- nodes and links


def working(world, chance):
    """A node that no other fault has struck."""
    free = [node for node in world.nodes if node.name not in world.struck]
    if not free:
        raise Nothing("another fault has struck each node")
    return chance.choice(free)


def jobs_on(node):
    return tuple(sorted({job for _, job, _, _ in processes([node])}))


def on_node(world, node, text, seconds, undo):
    world.struck.add(node.name)

    def mend():
        undo()
        world.struck.discard(node.name)

    return Struck(f"{text} for {seconds:.1f} s", moved=jobs_on(node), seconds=seconds, undo=mend)


def kubelet(world, chance):
    node = working(world, chance)
    node.kill_kubelet()
    return on_node(world, node, f"no kubelet on {node.name}", chance.uniform(1, 15), node.start_kubelet)


def containerd(world, chance):
    node = working(world, chance)
    node.kill_containerd()
    return on_node(world, node, f"no containerd on {node.name}", chance.uniform(1, 10), node.start_containerd)


def freeze(world, chance):
    node = working(world, chance)
    struck = on_node(world, node, f"{node.name} is frozen", chance.uniform(2, 25), node.thaw)
    world.makers.frozen.update(struck.moved)
    node.freeze()
    return struck


def node_dies(world, chance, power):
    node = working(world, chance)
    text = f"{node.name} {'loses its power' if power else 'is killed'}"
    struck = on_node(world, node, text, chance.uniform(5, 40), node.restart)
    node.kill(power)
    return struck


def node_killed(world, chance):
    return node_dies(world, chance, False)


def power(world, chance):
    return node_dies(world, chance, True)


def cut_nodes(world, chance):
    first, second = chance.sample([node.name for node in world.nodes], 2)
    return cut(world, chance, first, second)


def cut_control(world, chance):
    return cut(world, chance, working(world, chance).name, CONTROL_PLANE)


def cut(world, chance, first, second):
    both, seconds = chance.random() < 0.7, chance.uniform(2, 25)
    network = world.place.network
    network.cut(first, second, both)
    return Struck(
        f"no packet from {first} to {second}{' and back' if both else ''} for {seconds:.1f} s",
        seconds=seconds,
        undo=lambda: network.mend_link(first, second),
    )


def slow(world, chance):
    first, second = chance.sample([*(node.name for node in world.nodes), CONTROL_PLANE], 2)
    seconds, network = chance.uniform(5, 25), world.place.network
    network.slow(first, second, "256kbit")
    return Struck(
        f"{first} sends 256 kbit/s to {second} for {seconds:.1f} s",
        seconds=seconds,
        undo=lambda: network.mend_link(first, second),
    )


# ---- the control plane


def controller(world, chance):
    """Kills a replica. The kubelet starts it again."""
    found = sorted(process for node in world.nodes for process in node.processes_in_pods(CONTROLLER))
    if not found:
        raise Nothing("no controller runs")
    os.kill(chance.choice(found), signal.SIGKILL)
    return Struck(f"one of {len(found)} controllers is killed")


def controller_pod(world, chance):
    pod = choose(world, chance, "pods", SYSTEM, is_alive)
    name = pod["metadata"]["name"]
    world.kubectl("delete", "pod", name, "--wait=false", namespace=SYSTEM)
    return Struck(f"the controller's pod {name} is deleted")


def component(name, least, most):
    def strike(world, chance):
        if name in world.struck:
            raise Nothing(f"{name} does not run")
        world.struck.add(name)
        seconds = chance.uniform(least, most)
        world.cluster.processes.kill(name)

        def start():
            world.starts[name]()
            world.struck.discard(name)

        return Struck(f"no {name} for {seconds:.1f} s", seconds=seconds, undo=start)

    return strike


def stopped_api(world, chance):
    name = "kube-apiserver"
    if name in world.struck:
        raise Nothing(f"{name} does not run")
    world.struck.add(name)
    seconds = chance.uniform(2, 15)
    world.cluster.processes.signal(name, signal.SIGSTOP)

    def go_on():
        world.cluster.processes.signal(name, signal.SIGCONT)
        world.struck.discard(name)

    return Struck(f"{name} stands still for {seconds:.1f} s", seconds=seconds, undo=go_on)


def answers(world, chance):
    """The API server answers the controllers with errors, or tears their connections."""
    seconds = chance.uniform(5, 20)
    which = chance.choice(("409", "429", "500", "503", "lost", "cut"))
    world.answer({which: 0.5})
    return Struck(
        f"half of what the controllers ask for gets {which} for {seconds:.1f} s",
        seconds=seconds,
        undo=lambda: world.answer({}),
    )


def clock(world, chance):
    """The clock of the controllers on one node is set, so the API server's and theirs do not agree."""
    node = chance.choice(world.nodes).name
    offset, seconds = chance.choice((-1, 1)) * chance.choice((2, 30, 300)), chance.uniform(5, 30)
    world.set_clock(node, offset)
    return Struck(
        f"the controllers' clock on {node} is {abs(offset)} s {'slow' if offset < 0 else 'fast'} for {seconds:.1f} s",
        seconds=seconds,
        undo=lambda: world.set_clock(node, 0),
    )


KINDS = {  # weight, what it does
    "worker killed": (6, worker),
    "agent killed": (4, agent),
    "pod deleted": (2, pod),
    "pod deleted without grace": (2, pod_at_once),
    "pod evicted": (2, eviction),
    "pods preempted": (1, preemption),
    "kubelet killed": (2, kubelet),
    "containerd killed": (2, containerd),
    "node frozen": (1, freeze),
    "node killed": (1, node_killed),
    "node without power": (1, power),
    "link between nodes cut": (2, cut_nodes),
    "link to the control plane cut": (2, cut_control),
    "link slowed": (1, slow),
    "controller killed": (3, controller),
    "controller's pod deleted": (1, controller_pod),
    "API server killed": (2, component("kube-apiserver", 0.5, 8)),
    "API server stopped": (1, stopped_api),
    "API server's answers": (3, answers),
    "etcd killed": (1, component("etcd", 0.5, 5)),
    "CoreDNS killed": (2, component("coredns", 1, 10)),
    "scheduler killed": (1, component("kube-scheduler", 1, 10)),
    "controller manager killed": (1, component("kube-controller-manager", 1, 10)),
    "Secret deleted or edited": (1, secret),
    "ConfigMap deleted or edited": (1, config_map),
    "Service deleted": (1, service),
    "Service edited": (1, edited_service),
    "Job deleted": (1, batch_job),
    "Job suspended by hand": (1, edited_job),
    "controllers' clock set": (0, clock),  # schedule() has moments of their own for it
}
