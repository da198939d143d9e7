# SPDX-License-Identifier: Apache-2.0
"""A container's command survives webhooks that join its words by blanks into one line for a shell, as Katib's does.

The plan's command runs as a kubelet starts it, as it is and joined, with the real agent: both do what the user's
command does.
"""

import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import class_runner

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
BIN = os.environ.get("MUSTER_BIN", os.path.join(ROOT, "build", "bin"))
TORCH = os.path.join(ROOT, "controller", "manifests", "runtimes", "torch-distributed.yaml")

# The form in which Kubeflow's SDK sends a function: a script for bash, with a program for Python in it.
FUNCTION = """
if ! [ -x "$(command -v python3)" ]; then echo "Python is missing" && exit 1; fi
read -r -d '' SCRIPT << EOM

def train(values):
    with open("trained", "w") as file:
        file.write(f"{values['lr']} {sum(values.values())}\\\\n")

train({'lr': 0.1, "it's": 2})

EOM
printf "%s" "$SCRIPT" > "train.py"
python3 "train.py"; echo "loss=$(cat trained | cut -d' ' -f1)"
"""
WORDS = "import sys; print(sys.argv[1:])"
COMMANDS = {
    "a script of a shell": [
        "bash",
        "-c",
        'python3 -c \'print("loss=0.1"); open("trained", "w")\' && echo $HOME; exit 0',
    ],
    "a function of the SDK": ["bash", "-c", FUNCTION],
    "words that a shell changes": [
        "python3",
        "-c",
        WORDS,
        "a  b",
        "",
        "*",
        "$HOME",
        "$(date)",
        "$$(LR)",
        "`date`",
        "it's",
        "x;y",
        "a\tb\nc",
        "~",
        "#",
        "\\",
        "{a,b}",
        "\u00e9",
        "MUSTER_ARG_3",
    ],
    "references": ["python3", "-c", WORDS, "$(LR)", "--text=$(TEXT)", "$(LATER)", "$(NONE)", "$$(TEXT)", "$$$$"],
}
VARIABLES = [{"name": "LR", "value": "0.1"}, {"name": "TEXT", "value": "two  words; $(LR) $HOME"}]


def expanded(text, variables):
    """As Kubernetes replaces $(NAME)."""

    def one(found):
        return "$" if found[0] == "$$" else variables.get(found[1], found[0])

    return re.sub(r"\$\$|\$\(([^)]*)\)", one, text)


def katib(container):
    """What Katib's webhook makes of the container's command, with the collector StdOut
    (pkg/webhook/v1beta1/pod/utils.go)."""
    command, args = ["sh", "-c"], container["command"] + container.get("args", [])
    if args[0] in ("sh", "bash") and args[1] == "-c":
        command, args = args[:2], args[2:]
    args += ["1>metrics.log 2>&1", "&&", "echo completed > done"]
    return {**container, "command": command, "args": [" ".join(args)]}


class Joined(unittest.TestCase):
    def container(self, *jobs, runtime=True):
        """The container that trains, in the plan of a job."""
        files = ["-f", TORCH] if runtime else []
        done = subprocess.run(
            [os.path.join(BIN, "muster-controller"), "plan", "-o", "json", "-f", "-", *files],
            input="\n---\n".join(map(json.dumps, jobs)),
            capture_output=True,
            text=True,
            timeout=60,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        [pod] = [
            one["spec"].get("template", {}).get("spec") or one["spec"]
            for one in json.loads(done.stdout)["items"]
            if one["kind"] in ("Job", "Pod")
        ]
        return pod["containers"][0]

    def train_job(self, command, args):
        return self.container(
            {
                "apiVersion": "trainer.kubeflow.org/v1alpha1",
                "kind": "TrainJob",
                "metadata": {"name": "trial"},
                "spec": {
                    "runtimeRef": {"name": "torch-distributed"},
                    "trainer": {"image": "i", "numNodes": 1, "command": command, "args": args, "env": VARIABLES},
                },
            }
        )

    def pytorch_job(self, command, args):
        template = {
            "spec": {
                "containers": [{"name": "pytorch", "image": "i", "command": command, "args": args, "env": VARIABLES}]
            }
        }
        return self.container(
            {
                "apiVersion": "kubeflow.org/v1",
                "kind": "PyTorchJob",
                "metadata": {"name": "trial"},
                "spec": {
                    "pytorchReplicaSpecs": {"Master": {"replicas": 1, "restartPolicy": "Never", "template": template}}
                },
            },
            runtime=False,
        )

    def outcome(self, container, agent=True):
        """Runs the container's command as a kubelet does. Returns the code, what it has written, and its files."""
        # Another webhook may add variables behind those of the plan.
        variables, mine = {}, {"PATH": os.environ["PATH"], "HOME": "/root"}
        for variable in container["env"] + [{"name": "LATER", "value": "later"}]:
            if "value" in variable:
                variables[variable["name"]] = expanded(variable["value"], variables)
        words = [expanded(word, variables) for word in container["command"] + container.get("args", [])]
        if agent:
            words = [word.replace("/muster-agent/muster ", os.path.join(BIN, "muster") + " ") for word in words]
            words[0] = words[0].replace("/muster-agent", BIN)
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                words,
                cwd=folder,
                env={**mine, **variables, "MUSTER_HTTP_PORT": "off"},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=60,
            )
            files = {path.name: path.read_bytes() for path in pathlib.Path(folder).iterdir()}
        return done.returncode, files.pop("metrics.log", done.stdout), files

    def test_the_command_does_what_the_user_wrote(self):
        for name, words in COMMANDS.items():
            wanted = self.outcome({"command": words, "env": VARIABLES}, agent=False)
            self.assertEqual(wanted[0], 0, wanted)
            for kind in (self.train_job, self.pytorch_job):
                for split in (len(words), 2):
                    container = kind(words[:split], words[split:])
                    with self.subTest(f"{name}, {kind.__name__}, {split} words in command"):
                        self.assertEqual(self.outcome(container), wanted)
                        code, said, files = self.outcome(katib(container))
                        self.assertEqual(files.pop("done", None), b"completed\n", said)
                        self.assertEqual((code, said, files), wanted)

    def test_a_command_without_such_words_is_in_the_pod_as_it_is(self):
        container = self.train_job(["torchrun", "train.py"], ["--lr=0.1"])
        self.assertEqual(
            container["command"] + container["args"],
            ["/muster-agent/muster", "exec", "--", "torchrun", "train.py", "--lr=0.1"],
        )
        self.assertNotIn("MUSTER_ARG", json.dumps(container))

    def test_programs_do_not_get_the_variables(self):
        container = self.train_job(["sh", "-c", "env; true"], [])
        self.assertIn("MUSTER_ARG_2", [one["name"] for one in container["env"]])
        code, said, _ = self.outcome(container)
        self.assertEqual(code, 0)
        self.assertNotIn(b"MUSTER_ARG", said)

    def test_a_variable_that_was_taken_away(self):
        container = self.train_job(["sh", "-c", "exit 0"], [])
        container["env"] = []
        with tempfile.TemporaryDirectory() as folder:
            words = [os.path.join(BIN, "muster"), *container["command"][1:]]
            done = subprocess.run(
                words, cwd=folder, env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, timeout=60
            )
        self.assertEqual(
            (done.returncode, done.stderr),
            (
                64,
                (
                    "muster exec: --args-from-env: the variable MUSTER_ARG_2 is not set; "
                    "it has a word of the command, and the pod's template sets it\n"
                ),
            ),
        )


if __name__ == "__main__":
    class_runner.main()
