# SPDX-License-Identifier: Apache-2.0
"""Uses the unmodified `kubeflow` SDK like a notebook, in the SDK's venv: sdk_client.py KUBECONFIG NAMESPACE RUNTIME.

Prints what the SDK returned as one JSON object.
"""

import json
import sys
import time

from kubeflow.trainer import CustomTrainer, KubernetesBackendConfig, TrainerClient


def train(word):
    import torch.distributed as dist

    dist.init_process_group("gloo")
    print(f"{word} from rank {dist.get_rank()} of {dist.get_world_size()}", flush=True)
    dist.destroy_process_group()


def main():
    kubeconfig, namespace, runtime = sys.argv[1:]
    client = TrainerClient(KubernetesBackendConfig(namespace=namespace, config_file=kubeconfig))
    given = {
        "runtimes": sorted(found.name for found in client.list_runtimes()),
        "framework": client.get_runtime(runtime).trainer.framework,
    }
    name = client.train(
        runtime=client.get_runtime(runtime), trainer=CustomTrainer(func=train, func_args={"word": "hello"}, num_nodes=2)
    )
    states = []
    job = client.wait_for_job_status(
        name, {"Complete"}, timeout=240, polling_interval=1, callbacks=[lambda seen: states.append(seen.status)]
    )
    given["states"] = [state for at, state in enumerate(states) if at == 0 or states[at - 1] != state]
    given["job"] = {
        "name": name,
        "status": job.status,
        "nodes": job.num_nodes,
        "steps": {step.name: step.status for step in job.steps},
    }
    given["jobs"] = [listed.name for listed in client.list_jobs()]
    given["logs"] = {step: list(client.get_job_logs(name, step=step)) for step in ("node-0", "node-1")}
    until = time.monotonic() + 60
    while (
        "Complete" not in given.get("events", ()) and time.monotonic() < until
    ):  # the controller writes it after the status
        given["events"] = sorted({event.reason for event in client.get_job_events(name)})
    client.delete_job(name)
    given["jobs_after"] = [listed.name for listed in client.list_jobs()]
    json.dump(given, sys.stdout)


if __name__ == "__main__":
    main()
