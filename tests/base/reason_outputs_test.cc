// SPDX-License-Identifier: Apache-2.0
// Outputs of programs, one per file of tests/fuzz/corpus/reason_line_fuzz, and the line that explains each. Most are
// recorded; paths and host names are changed. Outputs that need a device or a library that is not here are composed of
// the messages in their source code and in reports of users.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>

#include "tests/base/recorded_failure.h"

namespace muster {
namespace {

const std::map<std::string, std::string> kLines = {
    {"absl_fatal", "F1126 02:19:50.862656 32697 train.py:10] no data set"},
    {"absl_signal", "*** SIGSEGV received at time=1775734074 on cpu 19 ***"},
    {"accelerate",
     "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 79.10 GiB "
     "of which 12.81 MiB is free."},
    {"argparse", "args.py: error: the following arguments are required: --lr"},
    {"asyncio_task", "ValueError: bad batch"},
    {"bash_killed", R"(bash: line 1: 25036 Killed sh -c "kill -9 \$\$")"},
    {"bash_not_found", "bash: line 3: foo: command not found"},
    {"bash_segv", "train.sh: line 3: 12345 Segmentation fault (core dumped) python train.py"},
    {"bash_unbound", "train.sh: line 4: DATA: unbound variable"},
    {"cuda_assert",
     "RuntimeError: CUDA error: device-side assert triggered (cause: /pytorch/aten/src/ATen/native/cuda/Loss.cu:245: "
     "nll_loss_forward_reduce_cuda_kernel_2d: block: [0,0,0], thread: [4,0,0] Assertion `t >= 0 && t < n_classes` "
     "failed.)"},
    {"cuda_assert_abort",
     "terminate called after throwing an instance of 'c10::Error': CUDA error: device-side assert triggered (cause: "
     "../aten/src/ATen/native/cuda/Indexing.cu:1289: indexSelectLargeIndex: block: [17,0,0], thread: [96,0,0] "
     "Assertion `srcIndex < srcSelectDimSize` failed.)"},
    {"cuda_driver_old",
     "RuntimeError: The NVIDIA driver on your system is too old (found version 11040). Please update your GPU driver "
     "by downloading and installing a new version from the URL: http://www.nvidia.com/Download/index.aspx "
     "Alternatively, go to: https://pytorch.org to install a PyTorch version that has been compiled with your version "
     "of the CUDA driver."},
    {"cuda_ecc", "RuntimeError: CUDA error: uncorrectable ECC error encountered"},
    {"cuda_fabric",
     "RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling "
     "NumCudaDevices() that might have already set an error? Error 802: system not yet initialized"},
    {"cuda_illegal_access", "RuntimeError: CUDA error: an illegal memory access was encountered"},
    {"cuda_no_kernel_image", "RuntimeError: CUDA error: no kernel image is available for execution on the device"},
    {"cuda_nvlink", "RuntimeError: CUDA error: uncorrectable NVLink error detected during the execution"},
    {"cxx_active", "terminate called without an active exception"},
    {"cxx_after_python", "KeyError: 'lr'"},
    {"cxx_pure_virtual", "pure virtual method called"},
    {"cxx_what",
     "terminate called after throwing an instance of 'std::runtime_error': Tried to instantiate dummy base class "
     "CUDAHooks"},
    {"dash_killed", "Killed"},
    {"deepspeed_config",
     "AssertionError: Check batch related parameters. train_batch_size is not equal to micro_batch_per_gpu * "
     "gradient_acc_step * world_size 32 != 2 * 1 * 8"},
    {"deepspeed_extension",
     "RuntimeError: Error building extension 'cpu_adam' (cause: subprocess.CalledProcessError: Command '['ninja', "
     "'-v']' returned non-zero exit status 1.)"},
    {"deepspeed_killed",
     "[2025-03-20 20:31:29,269] [ERROR] [launch.py:321:sigkill_handler] ['/venv/bin/python', '-u', 'main.py', "
     "'--local_rank=1'] exits with return code = -9"},
    {"deepspeed_launcher", "ValueError: bad batch"},
    {"deepspeed_lost_peer",
     "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection reset by peer "
     "[10.0.0.2]:21005"},
    {"download_reset",
     "requests.exceptions.ConnectionError: ('Connection aborted.', ConnectionResetError(104, 'Connection reset by "
     "peer'))"},
    {"faulthandler_abort", "Fatal Python error: Aborted"},
    {"faulthandler_segv", "Fatal Python error: Segmentation fault"},
    {"faulthandler_timeout", "Timeout (0:00:30)!"},
    {"glibc_assert", "a_c: a.c:7: main: Assertion `c == 7' failed."},
    {"glibc_double_free", "free(): double free detected in tcache 2"},
    {"glibc_stack", "*** stack smashing detected ***: terminated"},
    {"gloo_closed",
     "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:561] Connection closed by peer "
     "[127.0.0.1]:25746. This is typically caused by a remote worker crashing. Check the logs of the remote worker "
     "before reporting an error. GLHF! \U0001f3d6\ufe0f"},
    {"gloo_mesh",
     "RuntimeError: Gloo connectFullMesh failed with [../third_party/gloo/gloo/transport/tcp/pair.cc:144] no error"},
    {"gloo_monitored_barrier", "RuntimeError: [Rank 0]: Rank 1 failed to pass monitoredBarrier in 3000 ms"},
    {"gloo_monitored_barrier_others",
     "RuntimeError: Rank 3 successfully reached monitoredBarrier, but received errors while waiting for send/recv from "
     "rank 0. Please check rank 0 logs for faulty rank."},
    {"gloo_no_interface",
     "RuntimeError: [enforce fail at ../third_party/gloo/gloo/transport/tcp/device.cc:83] ifa != nullptr. Unable to "
     "find address for: eth9"},
    {"gloo_timeout",
     "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 3000ms for "
     "recv operation to complete"},
    {"go_deadlock", "fatal error: all goroutines are asleep - deadlock!"},
    {"go_log_fatal", "2026/11/26 02:50:01 open /data/c4: no such file or directory"},
    {"go_nil", "panic: runtime error: invalid memory address or nil pointer dereference"},
    {"go_panic", "panic: assignment to entry in nil map"},
    {"horovod",
     "horovod.common.exceptions.HorovodInternalError: Horovod has been shut down. This was caused by an exception on "
     "one of the ranks or an attempt to allreduce, allgather or broadcast a tensor after one of the ranks finished "
     "execution."},
    {"huggingface_datasets",
     "datasets.exceptions.DatasetGenerationError: An error occurred while generating the dataset (cause: OSError: "
     "[Errno 28] No space left on device)"},
    {"huggingface_gated",
     "OSError: You are trying to access a gated repo. (cause: requests.exceptions.HTTPError: 401 Client Error: "
     "Unauthorized for url: https://huggingface.co/o/m/resolve/main/config.json)"},
    {"hydra", "ValueError: bad batch"},
    {"hydra_mpi_exit",
     "BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES PID 4774 RUNNING AT node-1 EXIT CODE: 139 CLEANING UP "
     "REMAINING PROCESSES YOU CAN IGNORE THE BELOW CLEANUP MESSAGES"},
    {"hydra_mpi_killed",
     "BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES RANK 1 PID 9665 RUNNING AT node-2 KILLED BY SIGNAL: 9 "
     "(Killed)"},
    {"hydra_override", "Key 'lr' is not in struct"},
    {"intel_mpi_abort",
     "Abort(5) on node 1 (rank 1 in comm 0): application called MPI_Abort(MPI_COMM_WORLD, 5) - process 1"},
    {"intel_mpi_init",
     "Abort(1091471) on node 185 (rank 185 in comm 0): Fatal error in PMPI_Init: Other MPI error, error stack: "
     "MPIDI_OFI_mpi_init_hook(1382): OFI get address vector map failed"},
    {"intel_mpi_rank", "ValueError: bad batch"},
    {"java",
     "Exception in thread \"main\" java.lang.RuntimeException: cannot load (cause: java.io.IOException: No space left "
     "on device)"},
    {"jax_barrier",
     "jaxlib.xla_extension.XlaRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Barrier_id: PjRT_Client_Connect. "
     "Timed out task names: /job:jax_worker/replica:0/task:1"},
    {"jax_oom",
     "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 3743729664 "
     "bytes."},
    {"jax_peer",
     "F1126 02:19:50.862656 32697 client.h:80] Terminating process because the JAX distributed service detected fatal "
     "errors. This most likely indicates that another task died; see the other task logs for more details. Disable "
     "Python buffering, i.e. `python -u`, to be sure to see all the previous output. absl::Status: UNAVAILABLE: The "
     "following tasks are unhealthy (stopped sending heartbeats): /job:jax_worker/replica:0/task:1"},
    {"json_error",
     "{\"event\": \"no data set\", \"path\": \"/data/c4\", \"level\": \"error\", \"timestamp\": "
     "\"2026-11-26T02:50:01Z\"}"},
    {"lightning", "lightning.fabric.utilities.exceptions.MisconfigurationException: No supported gpu backend found!"},
    {"lightning_child",
     "[rank: 1] Child process with PID 3046 terminated with code -9. Forcefully terminating all other processes to "
     "avoid zombies \U0001f9df"},
    {"lightning_summary", "no such data set: /data/c4"},
    {"lightning_teardown",
     "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:544] Connection closed by peer "
     "[10.2.96.68]:21932"},
    {"logging_at_error", "[2026-11-26 02:46:29,202][root][ERROR] - no checkpoint in /ckpt"},
    {"logging_own_error", "ValueError: bad batch"},
    {"logging_traceback", "IndexError: pop from empty list"},
    {"logrus", "time=\"2026-11-26T02:50:01Z\" level=error msg=\"no data set\" path=/data/c4"},
    {"loguru", "ValueError: bad batch"},
    {"loguru_catch", "ValueError: bad config (cause: KeyError: 'lr')"},
    {"mkl_fatal", "Intel MKL FATAL ERROR: Cannot load libmkl_avx2.so or libmkl_def.so."},
    {"mlflow_closing", "no such data set: /data/c4"},
    {"mlx",
     "libc++abi: terminating due to uncaught exception of type std::runtime_error: [METAL] Command buffer execution "
     "failed: Insufficient Memory (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)"},
    {"mpich_abort", "ValueError: bad batch"},
    {"mpich_peer",
     "Fatal error in PMPI_Test: A process has failed, error stack: MPID_nem_tcp_connpoll(1826): Communication error "
     "with rank 1: Connection reset by peer"},
    {"mpich_rank", "ValueError: bad batch"},
    {"multiprocessing_pool", "ValueError: bad batch 1"},
    {"nccl_aborted", "RuntimeError: NCCL communicator was aborted on rank 0."},
    {"nccl_desync",
     "terminate called after throwing an instance of 'c10::DistBackendError': [PG ID 0 PG GUID 0(default_pg) Rank 1] "
     "Process group watchdog thread terminated with exception: [Rank 1] Watchdog caught collective operation timeout: "
     "WorkNCCL(SeqNum=808, OpType=ALLREDUCE, NumelIn=9801523, NumelOut=9801523, Timeout(ms)=600000) ran for 600020 "
     "milliseconds before timing out."},
    {"nccl_dump_signal",
     "[F723 01:59:46.667329643 ProcessGroupNCCL.cpp:1557] [PG ID 0 PG GUID 0(default_pg) Rank 5] Terminating the "
     "process after attempting to dump debug info, due to collective timeout or exception."},
    {"nccl_duplicate_gpu",
     "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1691, "
     "invalid usage (run with NCCL_DEBUG=WARN for details), NCCL version 2.19.3: Last error: Duplicate GPU detected : "
     "rank 1 and rank 0 both on CUDA device 4000"},
    {"nccl_out_of_memory",
     "torch.distributed.DistBackendError: NCCL error in: "
     "/pytorch/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:3690, unhandled cuda error (run with NCCL_DEBUG=INFO "
     "for details), NCCL version 2.27.3: Last error: Cuda failure 2 'out of memory'"},
    {"nccl_remote_error",
     "torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/NCCLUtils.cpp:77, remote "
     "process exited or there was a network error, NCCL version 2.27.3: Last error: socketPollConnect: connect to "
     "10.0.0.7<36443> returned Connection refused, exceeded error retry count (35)"},
    {"nccl_system_error",
     "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/NCCLUtils.hpp:317, unhandled "
     "system error (run with NCCL_DEBUG=INFO for details), NCCL version 2.21.5: Last error: socketProgress: Connection "
     "closed by remote peer node-2.example<51234>"},
    {"nccl_terminate_twice",
     "terminate called after throwing an instance of 'c10::DistBackendError': [PG ID 0 PG GUID 0(default_pg) Rank 1] "
     "Process group watchdog thread terminated with exception: [Rank 1] Watchdog caught collective operation timeout: "
     "WorkNCCL(SeqNum=808, OpType=ALLREDUCE, NumelIn=9801523, NumelOut=9801523, Timeout(ms)=600000) ran for 600020 "
     "milliseconds before timing out."},
    {"nccl_watchdog",
     "terminate called after throwing an instance of 'c10::DistBackendError': [PG ID 0 PG GUID 0(default_pg) Rank 1] "
     "Process group watchdog thread terminated with exception: [Rank 1] Watchdog caught collective operation timeout: "
     "WorkNCCL(SeqNum=808, OpType=ALLREDUCE, NumelIn=9801523, NumelOut=9801523, Timeout(ms)=600000) ran for 600020 "
     "milliseconds before timing out."},
    {"nccl_watchdog_old",
     "terminate called after throwing an instance of 'std::runtime_error': [Rank 3] Watchdog caught collective "
     "operation timeout: WorkNCCL(SeqNum=469508, OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 1802211 milliseconds "
     "before timing out."},
    {"nccl_watchdog_stuck",
     "[F911 03:00:01.000000001 ProcessGroupNCCL.cpp:1553] [PG ID 0 PG GUID 0 Rank 3] ProcessGroupNCCL's watchdog got "
     "stuck for 480 seconds without making progress in monitoring enqueued collectives. This typically indicates a "
     "NCCL/CUDA API (e.g., CudaEventDestroy) hang blocking the watchdog, and could be triggered by another thread "
     "holding the GIL inside a CUDA api (for example, CudaEventDestroy), or other deadlock-prone behaviors."},
    {"numpy_abi", "ImportError: numpy.core.multiarray failed to import"},
    {"numpy_memory",
     "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 74.5 GiB for an array with shape (100000, 100000) "
     "and data type float64"},
    {"omegaconf", "omegaconf.errors.ConfigAttributeError: Key 'lr' is not in struct"},
    {"openmp_twice", "OMP: Error #15: Initializing libiomp5.so, but found libomp.so already initialized."},
    {"openmpi5_rank_time", "ValueError: bad batch"},
    {"openmpi5_tag", "ValueError: bad batch"},
    {"openmpi_abort", "MPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD with errorcode 5."},
    {"openmpi_btl",
     "[node-1][[27278,1],18][btl_tcp_endpoint.c:618:mca_btl_tcp_endpoint_recv_blocking] recv(107, 0/8) failed: "
     "Connection reset by peer (104)"},
    {"openmpi_daemon", "ORTE has lost communication with a remote daemon."},
    {"openmpi_exit",
     "mpirun detected that one or more processes exited with non-zero status, thus causing the job to be terminated. "
     "The first process to do so was: Process name: [[3346,1],1] Exit code: 3"},
    {"openmpi_kill", "mpirun noticed that process rank 1 with PID 0 on node node-3 exited on signal 9 (Killed)."},
    {"openmpi_nocmd",
     "mpirun was unable to find the specified executable file, and therefore did not launch the job. This error was "
     "first reported for process rank 0; it may have occurred for other processes as well."},
    {"openmpi_raise", "ValueError: bad batch"},
    {"openmpi_rank", "[node-3:26613] *** MPI_ERR_RANK: invalid rank"},
    {"openmpi_segv", "[node-1:02600] Signal: Segmentation fault (11)"},
    {"openmpi_slots",
     "There are not enough slots available in the system to satisfy the 200 slots that were requested by the "
     "application: true"},
    {"openmpi_tag", "ValueError: bad batch"},
    {"openmpi_tag_time", "ValueError: bad batch"},
    {"pickle_lambda",
     "_pickle.PicklingError: Can't pickle <function <lambda> at 0x7f2b92e544a0>: attribute lookup <lambda> on __main__ "
     "failed"},
    {"pydantic", "pydantic_core._pydantic_core.ValidationError: 2 validation errors for Config"},
    {"python_atexit", "ValueError: bad batch"},
    {"python_called_process", "ValueError: bad batch"},
    {"python_destructor", "ValueError: bad batch"},
    {"python_direct_cause",
     "RuntimeError: cannot load the data set (cause: FileNotFoundError: [Errno 2] No such file or directory: "
     "'/nowhere/data')"},
    {"python_during", "ValueError: invalid literal for int() with base 10: 'abc'"},
    {"python_group", "ExceptionGroup: loading failed (2 sub-exceptions), the first: TypeError: bad batch 0"},
    {"python_import_syntax", "SyntaxError: invalid syntax"},
    {"python_long_message", "RuntimeError: CUDA error: device-side assert triggered"},
    {"python_no_file", "/usr/bin/python3: can't open file '/nowhere/x.py': [Errno 2] No such file or directory"},
    {"python_note", "ValueError: bad batch"},
    {"python_recursion", "RecursionError: maximum recursion depth exceeded"},
    {"python_syntax", "SyntaxError: invalid syntax"},
    {"python_sys_exit", "config.yaml: key 'lr' is missing"},
    {"python_taskgroup",
     "ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception), the first: ValueError: bad batch"},
    {"python_thread", "ConnectionResetError: pin thread"},
    {"python_traceback", "ValueError: bad batch"},
    {"python_warning", ""},
    {"ray_actor", "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task."},
    {"ray_task", "ValueError: bad batch"},
    {"rich",
     "RuntimeError: epoch 4 failed after a long sentence that explains in many words (cause: ValueError: bad batch)"},
    {"rich_ascii",
     "RuntimeError: epoch 4 failed after a long sentence that explains in many words (cause: ValueError: bad batch)"},
    {"rich_group", "ExceptionGroup: loading failed (2 sub-exceptions)"},
    {"rocm_arch", "RuntimeError: HIP error: invalid device function"},
    {"rocm_fault",
     "Memory access fault by GPU node-2 (Agent handle: 0x56468ab3bb50) on address 0x7fe55fb03000. Reason: Page not "
     "present or supervisor privilege."},
    {"rocm_queue",
     ":0:rocdevice.cpp :2724: 3834089231 us: [pid:110 tid:0x7f5fe9669740] Callback: Queue 0x7f5c16600000 aborting with "
     "error : HSA_STATUS_ERROR_EXCEPTION: An HSAIL operation resulted in a hardware exception. code: 0x1016"},
    {"rust_error", "Error: cannot load the model"},
    {"rust_panic", "thread 'main' (25032) panicked at p.rs:1:55: index out of bounds: the len is 0 but the index is 3"},
    {"sections_of_a_log", "no such data set: /data/c4"},
    {"sh_not_found", "sh: 1: foo: not found"},
    {"shared_library",
     "python: error while loading shared libraries: libpython3.11.so.1.0: cannot open shared object file: No such file "
     "or directory"},
    {"store_barrier",
     "RuntimeError: Timed out initializing process group in store based barrier on rank: 1, for key: "
     "store_based_barrier_key:1 (world_size=2, worker_count=1, timeout=0:30:00)"},
    {"store_broken_pipe",
     "torch.distributed.DistBackendError: [1] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via "
     "c10d key-value store by store->get('0'), but store->get('0') got error: Broken pipe"},
    {"store_clients",
     "torch.distributed.DistStoreError: Timed out after 4 seconds waiting for clients. 1/2 clients joined."},
    {"store_connect",
     "torch.distributed.DistNetworkError: The client socket has timed out after 60000ms while trying to connect to "
     "(10.0.0.5, 29500)."},
    {"store_gone",
     "torch.distributed.DistNetworkError: Failed to recv, got 0 bytes. Connection was likely closed. Did the remote "
     "server shutdown or crash?"},
    {"store_port_taken",
     "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: "
     "29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use"},
    {"store_wait", "torch.distributed.DistStoreError: wait timeout after 3000ms, keys: /never"},
    {"structlog_console", "2026-11-26 02:50:01 [error ] no data set path=/data/c4"},
    {"structlog_json", "ValueError: bad batch"},
    {"tensorflow_noise", "no such data set: /data/c4"},
    {"tensorflow_oom",
     "tensorflow.python.framework.errors_impl.ResourceExhaustedError: Graph execution error: OOM when allocating "
     "tensor with shape[8192,50257] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator "
     "GPU_0_bfc"},
    {"tensorflow_peer",
     "tensorflow.python.framework.errors_impl.UnavailableError: Graph execution error: Collective ops is aborted by: "
     "Connection reset by peer"},
    {"tokenizers_fork", "no such data set: /data/c4"},
    {"tokenizers_panic",
     "pyo3_runtime.PanicException: called `Result::unwrap()` on an `Err` value: Error(\"EOF while parsing a value\", "
     "line: 1, column: 0)"},
    {"torch_compile_backend", "torch._dynamo.exc.BackendCompilerFailed: backend='bad' raised: ValueError: bad graph"},
    {"torch_dataloader", "ValueError: bad sample"},
    {"torch_ddp_unused",
     "RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one. This error "
     "indicates that your module has parameters that were not used in producing loss. You can enable unused parameter "
     "detection by passing the keyword argument `find_unused_parameters=True` to "
     "`torch.nn.parallel.DistributedDataParallel`, and by"},
    {"torch_inductor",
     "torch._inductor.exc.InductorError: InvalidCxxCompiler: No working C++ compiler found in "
     "torch._inductor.config.cpp.cxx: (None, '/nowhere/g++')"},
    {"torch_loader_killed",
     "RuntimeError: DataLoader worker (pid(s) 11754) exited unexpectedly (cause: RuntimeError: DataLoader worker (pid "
     "11754) is killed by signal: Killed.)"},
    {"torch_no_gpu", "RuntimeError: No CUDA GPUs are available"},
    {"torch_spawn", "ValueError: bad batch"},
    {"torch_weights_only",
     "_pickle.UnpicklingError: Weights only load failed. This file can still be loaded, to do so you have two options, "
     "do those steps only if you trust the source of the checkpoint."},
    {"torchrun_child_signal", "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: train.py FAILED"},
    {"tqdm", "ValueError: bad batch"},
    {"tqdm_then_exit", ""},
    {"ucx_assert",
     "[node-1:29916:0:28670] ucp_worker.c:2786 Assertion `wait_ctx->cb_id == UCS_CALLBACKQ_ID_NULL' failed: ep 0x7f1c"},
    {"ucx_reset",
     "RuntimeError: [/pytorch/torch/csrc/distributed/c10d/ProcessGroupUCC.cpp:420] [Rank 0][ProcessGroupUCC-0][COLL] "
     "allreduce failed, error code -6: Unhandled error, system error code 104"},
    {"ucx_signal",
     "[node-1:73064:0:73064] Caught signal 11 (Segmentation fault: address not mapped to object at address 0x8)"},
    {"wandb_closing", "ValueError: bad batch"},
    {"xgboost_peer",
     "xgboost.core.XGBoostError: [02:21:17] /workspace/src/collective/result.cc:78: - [allreduce.cc:65|02:21:17]: "
     "Allreduce failed."},
    {"xpu_lost", "RuntimeError: level_zero backend failed with error: 20 (UR_RESULT_ERROR_DEVICE_LOST)"},
};

// Those whose program lost a peer, or waited for one in vain.
const std::set<std::string> kLostPeer = {"deepspeed_lost_peer",
                                         "gloo_closed",
                                         "gloo_mesh",
                                         "gloo_monitored_barrier",
                                         "gloo_monitored_barrier_others",
                                         "gloo_timeout",
                                         "horovod",
                                         "jax_barrier",
                                         "jax_peer",
                                         "lightning_teardown",
                                         "mpich_peer",
                                         "nccl_aborted",
                                         "nccl_desync",
                                         "nccl_dump_signal",
                                         "nccl_remote_error",
                                         "nccl_system_error",
                                         "nccl_terminate_twice",
                                         "nccl_watchdog",
                                         "nccl_watchdog_old",
                                         "openmpi_btl",
                                         "openmpi_daemon",
                                         "store_barrier",
                                         "store_broken_pipe",
                                         "store_clients",
                                         "store_connect",
                                         "store_gone",
                                         "store_wait",
                                         "tensorflow_peer",
                                         "ucx_reset",
                                         "xgboost_peer"};

TEST(ReasonOutputs, HaveTheirLine) {
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator("tests/fuzz/corpus/reason_line_fuzz")) {
    const std::string name = entry.path().filename().string();
    const WorkerFailure failure = RecordedFailure(name);
    const auto row = kLines.find(name);
    ASSERT_NE(row, kLines.end()) << name << " has no row";
    EXPECT_EQ(failure.stderr_reason, row->second) << name;
    EXPECT_EQ(failure.consequence, kLostPeer.contains(name)) << name;
    ++files;
  }
  EXPECT_EQ(files, kLines.size());
}

}  // namespace
}  // namespace muster
