// SPDX-License-Identifier: Apache-2.0
#include "local/job_samples.h"

namespace muster::local {
namespace {

constexpr std::string_view kTorch = R"yaml(# Two nodes with two workers each, started by torchrun.
#   muster local -f job.yaml      here, without a cluster
#   kubectl create -f job.yaml    in a cluster with Muster's controller
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  name: torch-example          # the pods are torch-example-node-0-0, torch-example-node-0-1
spec:
  runtimeRef:
    name: torch-distributed    # built in; another one comes from its file: -f runtime.yaml
  trainer:
    numNodes: 2                # --nodes 4 changes it for one run
    numProcPerNode: 2          # workers on each node: as many as it has GPUs
    # image: registry.example.com/train:1    # for a cluster; here your own files are used
    # env: [{name: LR, value: "0.1"}]        # --env LR=0.1
    # With a script of your own: command: [torchrun, train.py, --lr, "0.1"]
    # This one needs PyTorch; without it, each worker only says which rank it is.
    command:
    - torchrun
    - --no-python
    - python3
    - -c
    - |
      import os
      rank = int(os.environ["RANK"])
      print(f"rank {rank} of {os.environ['WORLD_SIZE']}", flush=True)
      try:
          import torch
      except ImportError:
          raise SystemExit(print("PyTorch is not installed: nothing is trained"))
      torch.distributed.init_process_group("gloo")
      model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
      optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
      for step in range(20):
          x = torch.randn(64, 4)
          loss = ((model(x) - x.sum(1, keepdim=True)) ** 2).mean()
          optimizer.zero_grad()
          loss.backward()
          optimizer.step()
          if rank == 0:
              print(f"step {step} loss {loss.item():.4f}", flush=True)
      torch.distributed.destroy_process_group()
)yaml";

constexpr std::string_view kMpi = R"yaml(# Two nodes with two processes each, started by mpirun.
#   muster local -f job.yaml      here, without a cluster; it needs Open MPI
#   kubectl create -f job.yaml    in a cluster with Muster's controller
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  name: mpi-example                # the pods are mpi-example-launcher-0-0, mpi-example-node-0-0
spec:
  runtimeRef:
    name: deepspeed-distributed    # built in: Open MPI; another one comes from its file: -f runtime.yaml
  trainer:
    numNodes: 2                    # the launcher is one of them; --nodes 4 changes it for one run
    numProcPerNode: 2              # processes on each node: as many as it has GPUs
    # image: registry.example.com/solve:1    # for a cluster; here your own files are used
    # The host file and the number of processes are known to mpirun: no flag says them.
    # With a program of your own: command: [mpirun, ./solve]
    command:
    - mpirun
    - sh
    - -c
    - echo "rank $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE on `hostname`"
)yaml";

constexpr std::string_view kJax = R"yaml(# Two nodes with one process each, which find each other by jax.distributed.
#   muster local -f job.yaml      here, without a cluster
#   kubectl create -f job.yaml    in a cluster with Muster's controller
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  name: jax-example          # the pods are jax-example-node-0-0, jax-example-node-0-1
spec:
  runtimeRef:
    name: jax-distributed    # built in; another one comes from its file: -f runtime.yaml
  trainer:
    numNodes: 2              # --nodes 4 changes it for one run
    # image: registry.example.com/train:1    # for a cluster; here your own files are used
    # With a script of your own: command: [python3, train.py]
    # This one needs JAX; without it, each process only says which one it is.
    command:
    - python3
    - -c
    - |
      import os
      process, count = int(os.environ["JAX_PROCESS_ID"]), int(os.environ["JAX_NUM_PROCESSES"])
      print(f"process {process} of {count}", flush=True)
      try:
          import jax
      except ImportError:
          raise SystemExit(print("JAX is not installed: nothing is computed"))
      jax.distributed.initialize(os.environ["JAX_COORDINATOR_ADDRESS"], count, process)
      print(f"{jax.local_device_count()} of {jax.device_count()} devices", flush=True)
)yaml";

constexpr std::string_view kPyTorchJob =
    R"yaml(# A PyTorchJob as Kubeflow's training-operator has it: a Master and a Worker, a process each.
#   muster local -f job.yaml      here, without a cluster
#   kubectl create -f job.yaml    in a cluster with Muster's controller
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata:
  name: pytorch-example          # the pods are pytorch-example-master-0, pytorch-example-worker-0
spec:
  runPolicy:
    backoffLimit: 3              # restarts of all pods together
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      restartPolicy: ExitCode    # codes of 128 and more, which signals give, are tried again
      template:
        spec:
          containers:
          - name: pytorch        # this name is needed
            image: pytorch/pytorch:2.13.0-cuda13.0-cudnn9-runtime    # for a cluster; here your own files are used
            # With a script of your own: command: [python3, train.py]
            # This one needs PyTorch; without it, each process only says which rank it is.
            command: &command
            - python3
            - -c
            - |
              import os
              rank = int(os.environ["RANK"])
              print(f"rank {rank} of {os.environ['WORLD_SIZE']}", flush=True)
              try:
                  import torch
              except ImportError:
                  raise SystemExit(print("PyTorch is not installed: nothing is computed"))
              torch.distributed.init_process_group("gloo")
              ranks = torch.tensor([float(rank)])
              torch.distributed.all_reduce(ranks)
              print(f"the sum of all ranks is {ranks.item():.0f}", flush=True)
              torch.distributed.destroy_process_group()
    Worker:
      replicas: 1                # --nodes 4 makes three of them for one run
      restartPolicy: ExitCode
      template:
        spec:
          containers:
          - name: pytorch
            image: pytorch/pytorch:2.13.0-cuda13.0-cudnn9-runtime
            command: *command    # the same
)yaml";

constexpr JobSample kSamples[] = {
    {"torch", "a TrainJob of torchrun", kTorch},
    {"mpi", "a TrainJob of mpirun", kMpi},
    {"jax", "a TrainJob of JAX", kJax},
    {"pytorchjob", "a PyTorchJob of a Master and a Worker", kPyTorchJob},
};

}  // namespace

const std::span<const JobSample> kJobSamples = kSamples;

}  // namespace muster::local
