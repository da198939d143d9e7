# SPDX-License-Identifier: Apache-2.0
"""What tests/gpu/run finds on this machine: a Python with torch, the GPU, and the processes on the GPU."""

import json
import os
import shutil
import subprocess

IMPORT_LIMIT = 120  # seconds: a cold disk
# What a Python says about its torch.
FACTS = """
import json, torch
facts = {"torch": torch.__version__, "cuda": torch.version.cuda, "gpus": 0, "card": None}
if torch.cuda.is_available():
    facts.update(gpus=torch.cuda.device_count(), card=torch.cuda.get_device_name(0))
print(json.dumps(facts))
"""


class Missing(Exception):
    """The reason why the checks cannot run here."""


def pythons_on_path():
    found = [os.path.join(folder or ".", "python3") for folder in os.environ.get("PATH", "").split(os.pathsep)]
    return [path for path in dict.fromkeys(found) if os.access(path, os.X_OK)]


def ask(python):
    """(its facts, what it wrote to stderr). The facts are None if its torch cannot be imported."""
    command = [python, "-c", FACTS]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=IMPORT_LIMIT)
    except subprocess.TimeoutExpired:
        return None, f"importing torch takes more than {IMPORT_LIMIT} s"
    return (json.loads(run.stdout.splitlines()[-1]) if run.returncode == 0 else None), run.stderr


def smi(query):
    """The lines that nvidia-smi answers; [] without nvidia-smi."""
    if not shutil.which("nvidia-smi"):
        return []
    run = subprocess.run(["nvidia-smi", query, "--format=csv,noheader"], stdout=subprocess.PIPE, text=True)
    return run.stdout.splitlines() if run.returncode == 0 else []


class Machine:
    """Raises Missing."""

    def __init__(self, kind, python=None):
        """`kind`: cuda or cpu. `python`: the only one to try."""
        self.kind = kind
        tried = [python] if python else pythons_on_path()
        without = []
        for self.python in tried:
            self.facts, error = ask(self.python)
            if self.facts and (kind == "cpu" or self.facts["gpus"]):
                break
            last = (error.strip().splitlines() or ["no error message"])[-1]
            without.append(f"{self.python}: {self.describe() if self.facts else last}")
        else:
            seen = [name for name in sorted(os.listdir("/dev")) if name.startswith("nvidia")]
            raise Missing(
                f"no Python with a torch that {'can be imported' if kind == 'cpu' else 'sees a GPU'} "
                f"({'; '.join(without) or 'no python3 on PATH'}). /dev has {', '.join(seen) or 'no nvidia*'}; "
                f"nvidia-smi is {shutil.which('nvidia-smi') or 'not on PATH'}"
            )
        self.card = self.facts["card"] if kind == "cuda" else "no GPU: a stand-in on the CPU"
        self.driver = next(iter(smi("--query-gpu=driver_version")), "unknown") if kind == "cuda" else None

    def describe(self):
        return f"torch {self.facts['torch']}, CUDA {self.facts['cuda']}, {self.facts['gpus']} GPUs"

    def smi_pids(self):
        """The processes on the GPUs, as nvidia-smi sees them. In a container it may see none, or other numbers."""
        return {int(line) for line in smi("--query-compute-apps=pid") if line.strip().isdigit()}

    def device_files(self, pid, folder):
        """The files of the device that the process has open. `folder`: the test's, where the stand-in is."""
        found = []
        for number in os.listdir(f"/proc/{pid}/fd"):
            try:
                target = os.readlink(f"/proc/{pid}/fd/{number}")
            except OSError:
                continue  # closed meanwhile
            if target.startswith("/dev/nvidia") or target == os.path.join(folder, "device"):
                found.append(target)
        return found
