# SPDX-License-Identifier: Apache-2.0
"""The unmodified `kubeflow-training` SDK, in its own venv: training_sdk_client.py KUBECONFIG NAMESPACE FOLDER.

FOLDER: a folder of the machine; pods see it as /shared. Prints what the SDK returned as one JSON object.
"""

import contextlib
import json
import os
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "cluster"))

from kubeflow.training import (
    TrainingClient,
    models,  # also Kubernetes' own models
)

from images import BUSYBOX
from scenario import DEBIAN, host_folders

# The Master does not end before the Workers have started, as the SDK gives no logs of pending pods.
ALL_BEGIN = """echo "rank $RANK of $WORLD_SIZE"; : > /shared/began-$RANK
until [ -e /shared/go ] && [ -e /shared/began-1 ] && [ -e /shared/began-2 ]; do sleep 0.1; done"""
WAIT = {"wait_timeout": 240, "polling_interval": 1}


def train(parameters):
    import torch.distributed as dist

    dist.init_process_group("gloo")
    print(f"{parameters['word']} from rank {dist.get_rank()} of {dist.get_world_size()}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


def made_of_objects(name, folder, script, workers=0, restart="OnFailure"):
    """A PyTorchJob whose pods run a shell script."""
    container = models.V1Container(
        name="pytorch",
        image=BUSYBOX,
        image_pull_policy="IfNotPresent",
        command=["/bin/sh", "-c", script],
        volume_mounts=[models.V1VolumeMount(name="shared", mount_path="/shared")],
    )
    template = models.V1PodTemplateSpec(
        spec=models.V1PodSpec(
            containers=[container],
            volumes=[models.V1Volume(name="shared", host_path=models.V1HostPathVolumeSource(path=folder))],
        )
    )
    replicas = {"Master": models.KubeflowOrgV1ReplicaSpec(replicas=1, restart_policy=restart, template=template)}
    if workers:
        replicas["Worker"] = models.KubeflowOrgV1ReplicaSpec(
            replicas=workers, restart_policy=restart, template=template
        )
    spec = models.KubeflowOrgV1PyTorchJobSpec(
        run_policy=models.KubeflowOrgV1RunPolicy(clean_pod_policy="None"), pytorch_replica_specs=replicas
    )
    return models.KubeflowOrgV1PyTorchJob(
        api_version="kubeflow.org/v1", kind="PyTorchJob", metadata=models.V1ObjectMeta(name=name), spec=spec
    )


def questions(client, name):
    """What the SDK reports about the state of a job."""
    return {
        kind: getattr(client, f"is_job_{kind}")(name)
        for kind in ("created", "running", "restarting", "succeeded", "failed")
    }


def counts(job):
    return {
        kind: [status.active or 0, status.succeeded or 0, status.failed or 0]
        for kind, status in job.status.replica_statuses.items()
    }


def from_objects(client, folder):
    client.create_job(made_of_objects("objects", folder, ALL_BEGIN, workers=2))
    client.wait_for_job_conditions("objects", expected_conditions={"Running"}, **WAIT)
    given = {"running": questions(client, "objects"), "jobs": [job.metadata.name for job in client.list_jobs()]}
    job = client.get_job("objects")
    job.metadata.labels = {"team": "vision"}
    job.metadata.resource_version = None  # otherwise the SDK's patch conflicts if the status has changed
    client.update_job(job, "objects")
    given["labels"] = client.get_job("objects").metadata.labels
    with open(os.path.join(folder, "go"), "w"):
        pass
    with contextlib.redirect_stdout(sys.stderr):  # the SDK prints the lines
        given["followed"] = client.get_job_logs("objects", follow=True)[0]
    job = client.wait_for_job_conditions("objects", **WAIT)
    given.update(
        {
            "ended": questions(client, "objects"),
            "counts": counts(job),
            "times": [bool(job.status.start_time), bool(job.status.completion_time)],
            "conditions": [
                [condition.type, condition.status, condition.reason, condition.message]
                for condition in client.get_job_conditions("objects")
            ],
            "masters": client.get_job_pod_names("objects", is_master=True),
            "worker 1": client.get_job_pod_names("objects", replica_type="worker", replica_index=1),
            "pods": {pod.metadata.name: pod.metadata.labels for pod in client.get_job_pods("objects")},
            "logs": client.get_job_logs("objects", is_master=False)[0],
        }
    )
    return given


def events(client, name):
    """The events of a job and its pods, without their times."""
    found = client.get_job_logs(name, is_master=False, verbose=True)[1]
    return {of: [" ".join(event.split()[2:]) for event in those] for of, those in found.items()}


def from_a_function(client):
    volumes, mounts = host_folders(DEBIAN)
    client.create_job(
        name="function",
        train_func=train,
        parameters={"word": "hello"},
        num_workers=2,
        num_procs_per_worker=1,
        base_image=BUSYBOX,
        env_vars={"PATH": "/usr/local/bin:/usr/bin:/bin"},
        volumes=volumes,
        volume_mounts=mounts,
        resources_per_worker=models.V1ResourceRequirements(requests={"cpu": "100m"}, limits={"cpu": "1"}),
    )
    states = []
    job = client.wait_for_job_conditions(
        "function",
        callback=lambda seen: states.extend(condition.type for condition in client.get_job_conditions(job=seen)[-1:]),
        **WAIT,
    )
    return {
        "states": [state for at, state in enumerate(states) if at == 0 or states[at - 1] != state],
        "processes": job.spec.nproc_per_node,
        "replicas": {kind: spec.replicas for kind, spec in job.spec.pytorch_replica_specs.items()},
        "master": client.get_job_logs("function")[0],
        "logs": client.get_job_logs("function", is_master=False)[0],
    }


def that_fails(client, folder):
    """The exception of the SDK while it waits for the job's success."""
    client.create_job(made_of_objects("fails", folder, 'echo "no such data" >&2; exit 2', restart="ExitCode"))
    try:
        client.wait_for_job_conditions("fails", **WAIT)
        raised = ""
    except RuntimeError as error:
        raised = str(error)
    return {
        "raised": raised,
        "message": client.get_job_conditions("fails")[-1].message,
        "ended": questions(client, "fails"),
    }


def main():
    kubeconfig, namespace, folder = sys.argv[1:]
    client = TrainingClient(config_file=kubeconfig, namespace=namespace)
    given = {
        "objects": from_objects(client, folder),
        "function": from_a_function(client),
        "fails": that_fails(client, folder),
    }
    given["events"] = events(client, "objects")
    given["jobs"] = sorted(job.metadata.name for job in client.list_jobs())
    for name in given["jobs"]:
        client.delete_job(name)
    given["jobs_after"] = [job.metadata.name for job in client.list_jobs()]
    try:
        client.get_job("objects")
    except RuntimeError as error:
        given["gone"] = str(error)
    json.dump(given, sys.stdout)


if __name__ == "__main__":
    main()
