# SPDX-License-Identifier: Apache-2.0
"""Rows of the table of causes (cause_rows.py) that end in the words or the code of a program."""

import mpi_jobs
import torch_programs
from cause_row import DIE, PYTORCH, STAYS, TRAIN, MpiRow, Row, beside, last_words, raises, with_env, with_small_tmpfs

CLOSED = "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.2]:34567"
WARNING = (
    "[W1128 09:00:00 ProcessGroupNCCL.cpp:1250] Warning: WARNING: "
    "destroy_process_group() was not called before program exit"
)
SHM = (
    "RuntimeError: DataLoader worker (pid(s) 21) exited unexpectedly. ERROR: "
    "Unexpected bus error encountered in worker. This might be caused by "
    "insufficient shared memory (shm)."
)


def worker_rows():
    return [
        # The words of the worker that is to blame, whatever else was printed, and whoever was first to end.
        Row(
            "key-error",
            "An exception, and warnings after it",
            "KeyError: 'step'",
            script=raises("KeyError: 'step'", "exit 1", WARNING),
        ),
        Row(
            "import-error",
            "A module that is not there",
            "ModuleNotFoundError: No module named 'transformers'",
            script=raises("ModuleNotFoundError: No module named 'transformers'"),
        ),
        Row(
            "syntax-error",
            "A script that Python cannot read",
            "SyntaxError: invalid syntax",
            script=last_words(
                ['  File "train.py", line 3', "    def main(:", "             ^", "SyntaxError: invalid syntax"],
                "exit 1",
            ),
        ),
        Row(
            "usage",
            "Wrong arguments of the script",
            "train.py: error: unrecognized arguments: --lrr 1",
            2,
            script=last_words(
                ["usage: train.py [-h] [--lr LR]", "train.py: error: unrecognized arguments: --lrr 1"], "exit 2"
            ),
        ),
        Row(
            "exit-text",
            '`sys.exit("text")`',
            "no checkpoint in /data",
            script=last_words(["no checkpoint in /data"], "exit 1"),
        ),
        Row("silent", "`os._exit(7)`, without a word", "", 7, script="exit 7"),
        Row("segmentation-fault", "SIGSEGV", "", 139, how="was killed by SIGSEGV", script=DIE.format("SEGV")),
        Row(
            "abort",
            "SIGABRT after a C++ exception",
            "terminate called after throwing an instance of 'c10::Error': CUDA error: an illegal memory access",
            134,
            how="was killed by SIGABRT",
            script=last_words(
                [
                    "terminate called after throwing an instance of 'c10::Error'",
                    "  what():  CUDA error: an illegal memory access was encountered",
                ],
                DIE.format("ABRT"),
            ),
        ),
        Row(
            "shared-memory",
            "A full /dev/shm, in the words of DataLoader",
            "insufficient shared memory (shm)",
            script=raises(SHM),
            step="mount an emptyDir of medium Memory at /dev/shm",
        ),
        Row(
            "gpu-memory",
            "Too little memory of the GPU",
            "torch.OutOfMemoryError: CUDA out of memory.",
            script=raises(
                "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. "
                "GPU 0 has a total capacity of 79.10 GiB"
            ),
        ),
        Row(
            "hydra",
            "An exception under Hydra, with its advice after it",
            "ValueError: no such optimizer",
            script=last_words(
                [
                    "Error executing job with overrides: []",
                    "Traceback (most recent call last):",
                    '  File "/app/train.py", line 9, in main',
                    "    raise ValueError('no such optimizer')",
                    "ValueError: no such optimizer",
                    "",
                    "Set the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.",
                ],
                "exit 1",
            ),
        ),
        Row(
            "disk-full",
            "A volume without room",
            "No space left on device",
            script="cat /dev/zero > /small/file || exit 1",
            change=with_small_tmpfs,
        ),
        Row(
            "hidden-before",
            "Its peer ends first, since it has lost the worker",
            "KeyError: 'step'",
            others="await raised; " + raises(CLOSED),
            script=last_words(
                ["Traceback (most recent call last):", "KeyError: 'step'"], ": > /shared/raised; sleep 0.5; exit 1"
            ),
        ),
        Row(
            "hidden-after",
            "Its peer ends after it, with many lines",
            "KeyError: 'step'",
            others="await raised; " + raises(CLOSED),
            script=raises("KeyError: 'step'", ": > /shared/raised; exit 1"),
        ),
        Row(
            "slow-teardown",
            "An exception that the worker catches; its teardown takes long, its peers end first",
            "KeyError: 'step'",
            others="await raised; " + raises(CLOSED),
            script=raises("KeyError: 'step'", ": > /shared/raised; sleep 3; exit 1"),
        ),
        Row(
            "hang",
            "A worker that stands still",
            "no heartbeat for",
            203,
            script=": > $MUSTER_HEARTBEAT_FILE; exec sleep 1000",
            how="exit code 203",
            others="while :; do date > $MUSTER_HEARTBEAT_FILE; sleep 0.2; done",
            change=with_env(MUSTER_HANG_TIMEOUT="3s"),
        ),
        Row(
            "budget",
            "Each restart in the pods ends the same way",
            "out of luck",
            143,
            max_restarts=1,
            script=last_words(["out of luck"], "exit 143"),
        ),
        # Commands that are no workers of torchrun.
        Row(
            "command",
            "A command that fails",
            "KeyError: 'step'",
            torchrun=False,
            script=raises("KeyError: 'step'", "exit 1", WARNING),
        ),
        Row(
            "command-hidden",
            "A command whose peer ends first, since it has lost it",
            "KeyError: 'step'",
            torchrun=False,
            others="await raised; " + raises(CLOSED),
            script=raises("KeyError: 'step'", ": > /shared/raised; sleep 0.5; exit 1"),
        ),
        Row(
            "not-found",
            "A command that does not exist",
            "'no-such-program' was not found in PATH",
            127,
            torchrun=False,
            rank=None,
            how="exit code 127",
            command=["no-such-program"],
            step="correct the command of container",
        ),
        Row(
            "not-executable",
            "A command without the right to run it",
            "'/etc/passwd' cannot be executed: Permission denied",
            126,
            torchrun=False,
            rank=None,
            how="exit code 126",
            command=["/etc/passwd"],
            step="correct the command of container",
        ),
        Row(
            "killed-from-inside",
            "A command that a signal kills",
            "",
            137,
            torchrun=False,
            how="was killed by SIGKILL|128 \\+ SIGKILL",
            script=DIE.format("KILL"),
        ),
        Row(
            "beside-1",
            "Another container serves the one that fails",
            "KeyError: 'step'",
            torchrun=False,
            script=raises("KeyError: 'step'"),
            change=beside(STAYS),
        ),
        Row(
            "beside-137",
            "The same after a signal",
            "",
            137,
            torchrun=False,
            how="was killed by SIGKILL|128 \\+ SIGKILL",
            script=DIE.format("KILL"),
            change=beside(STAYS),
        ),
    ]


def torch_rows(python=torch_programs.PYTHON, prefix="torch"):
    def row(name, what, words, fault, code=1, **more):
        return Row(
            f"{prefix}-{name}",
            what,
            words,
            code,
            command=torch_programs.command(fault, python),
            change=torch_programs.on_debian,
            missing=lambda: torch_programs.missing(python),
            **more,
        )

    return [
        row(
            "raises",
            "PyTorch: an exception while the others are in an all_reduce",
            "KeyError: 'step'",
            torch_programs.RAISES,
        ),
        row(
            "alone",
            "The same without torchrun",
            "KeyError: 'step'",
            torch_programs.RAISES,
            torchrun=False,
            kinds=(PYTORCH,),
        ),
        row(
            "dies",
            "PyTorch: SIGKILL while the others are in an all_reduce",
            "",
            torch_programs.DIES,
            137,
            how="was killed by SIGKILL",
        ),
        row(
            "data",
            "PyTorch: an exception in a worker of DataLoader",
            "ValueError: no such sample",
            torch_programs.LOADS,
        ),
        row(
            "timeout",
            "PyTorch: a rank that does not join an all_reduce",
            f"Timed out waiting {torch_programs.TIMEOUT}000ms for recv operation to complete",
            torch_programs.SLEEPS,
            rank=0,
        ),
    ]


def mpi_rows():
    def row(name, what, words, code, command, **more):
        return MpiRow(
            f"mpi-{name}",
            what,
            words,
            code,
            kinds=(TRAIN,),
            torchrun=False,
            rank=None,
            command=command,
            missing=mpi_jobs.missing,
            **more,
        )

    run = [mpi_jobs.MPIRUN, "-n", "2"]
    return [
        row(
            "rank",
            "MPI: a rank that ends with 7",
            "one or more processes exited with non-zero status",
            7,
            [*run, "/shared/program", "exit", "1", "7"],
        ),
        row(
            "no-program",
            "MPI: a program that does not exist",
            "could not access or execute an executable: Executable: /shared/nothing",
            132,
            [*run, "/shared/nothing"],
            how="exit code 132",
        ),
        row(
            "no-mpirun",
            "MPI: an `mpirun` that does not exist",
            "'no-such-mpirun' was not found in PATH",
            127,
            ["no-such-mpirun", "-n", "2", "/shared/program"],
            how="exit code 127",
            step="correct the command of container",
        ),
    ]
