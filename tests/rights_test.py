# SPDX-License-Identifier: Apache-2.0
"""The controller's rights (controller/manifests) are those that its calls need: each call of the API client in the code
has its right, and no right is without a call. A call that this test cannot read fails it."""

import collections
import itertools
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
KUBE = ROOT / "controller" / "kube"
MANIFESTS = ROOT / "controller" / "manifests"
BASE, PYTORCH, STATUS = "base", "components/pytorchjob", "components/status-server"
METRICS = "components/metrics-tls"

# Verbs of the methods of ApiClient, and of the functions of actions.cc that call them.
CLIENT = {
    "Get": ["get"],
    "List": ["list"],
    "Create": ["create"],
    "TryCreate": ["create"],
    "Apply": ["patch"],
    "Merge": ["patch"],
    "Replace": ["update"],
    "Delete": ["delete"],
    "Watch": ["watch"],
}
ACTIONS = {
    "Post": ["create"],
    "Get": ["get"],
    "GetOwn": ["get"],
    "Merge": ["patch"],
    "executor.Create": ["create", "get", "patch"],
    "executor.Change": ["patch"],
    "executor.Delete": ["delete"],
}
# A cache watches a kind by an informer, which lists and watches. The status is applied to the owner of a pass.
WATCHES = ["list", "watch"]

# Calls whose resource is a variable: (file, expression) -> the resources.
CHOSEN = {
    ("own_certificates.cc", "configuration.resource"): ["kValidatingWebhooks", "kMutatingWebhooks"],
    ("webhooks.cc", "resource"): [
        "kTrainJobs",
        "kPyTorchJobs",
        "kConfigMaps",
        "kTrainingRuntimes",
        "kClusterTrainingRuntimes",
    ],
    ("passes.cc", "owner.resource"): ["kTrainJobs", "kPyTorchJobs"],
    ("runtime_cache.cc", "*resource"): ["kTrainingRuntimes", "kClusterTrainingRuntimes"],
    ("own_certificates.cc", "resource"): ["kSecrets", "kValidatingWebhooks", "kMutatingWebhooks"],
    ("pytorch_job_cache.h", "*pod_groups"): ["kPodGroups", "kVolcanoPodGroups"],
    ("actions.cc", "job.resource"): ["kTrainJobs", "kPyTorchJobs"],
}
# Wrappers, whose calls are read where they are called.
WRAPPED = {
    ("informer.cc", "resource_"),
    ("actions.cc", "resource"),
    ("actions.cc", "*resource"),
    ("job_cache.h", "resource"),
}
# Plan::objects, by kind and by what is done if one is there (controller/plan): kept as it is, or updated.
PLANNED = {
    "kSecrets": ["create"],
    "kClaims": ["create"],
    "kConfigMaps": ["create", "get", "patch"],
    "kAutoscalers": ["create", "get", "patch", "delete"],
    "kPodGroups": ["create", "get", "patch", "delete"],
    "kVolcanoPodGroups": ["create", "get", "patch", "delete"],
    "kWorkloads": ["create", "get", "delete"],
    "kGangPodGroups": ["create", "get", "delete"],
}
# To own an object with blockOwnerDeletion, where OwnerReferencesPermissionEnforcement checks it.
OWNERS = {
    ("trainer.kubeflow.org", "trainjobs/finalizers", "update"),
    ("batch", "jobs/finalizers", "update"),
    ("kubeflow.org", "pytorchjobs/finalizers", "update"),
}
# Calls of shared files that only PyTorchJobs make.
OF_PYTORCH = {
    *(
        (group, plural, "delete")
        for group, plural in (
            ("autoscaling", "horizontalpodautoscalers"),
            ("scheduling.x-k8s.io", "podgroups"),
            ("scheduling.volcano.sh", "podgroups"),
        )
    ),
}


def resources():
    """The constants of resource.h: name -> (group, plural)."""
    found = re.findall(
        r'inline const Resource (k\w+)\{"([^"]+)", "([^"]+)"', (KUBE / "client" / "resource.h").read_text()
    )
    return {name: (api.rpartition("/")[0], plural) for name, api, plural in found}


def arguments(text, begin):
    """The arguments of a call; `begin`: after its parenthesis."""
    depth, parts, part = 0, [], ""
    for letter in text[begin:]:
        if letter in "([{":
            depth += 1
        if letter in ")]}":
            depth -= 1
            if depth < 0:
                return [*parts, part.strip()]
        if letter == "," and depth == 0:
            parts.append(part.strip())
            part = ""
        else:
            part += letter
    return parts


def calls():
    """(file, resource expression, subresource, verbs) of every call in controller/kube."""
    for path in sorted([*KUBE.rglob("*.cc"), *KUBE.rglob("*job_cache.h")]):
        text = re.sub(r"//[^\n]*", "", path.read_text())
        for match in re.finditer(r"\bclient_?\.(%s)\(" % "|".join(CLIENT), text):
            given = arguments(text, match.end())
            subresource = given[3].strip('"') if match[1] in ("Apply", "Merge") else ""
            yield path.name, given[0], subresource, CLIENT[match[1]]
        for match in re.finditer(r"make_unique<Informer>\(", text):
            yield path.name, arguments(text, match.end())[2], "", WATCHES
        if "job_cache." in path.name:
            for match in re.finditer(r"(?:\{|Follow\(|kResource = )(k[A-Z]\w+|\*\w+)[,;]", text):
                yield path.name, match[1], "", WATCHES
        if path.name == "webhooks.cc":
            for match in re.finditer(r"co_await Look\((\w+|\*\w+),", text):
                yield path.name, match[1].lstrip("*"), "", ["get"]
        if path.name == "actions.cc":
            for match in re.finditer(r"(?<![\w.>:])((?:executor\.)?\w+)\((k[A-Z]\w+|job\.resource)\b", text):
                if match[1] in ACTIONS:
                    yield path.name, match[2], "", ACTIONS[match[1]]


def place(file, right):
    """The manifests that give the right."""
    if right[0] == "kubeflow.org" or right in OF_PYTORCH or file.startswith("pytorch_"):
        return PYTORCH
    return {"status_server.cc": STATUS, "metrics_server.cc": METRICS}.get(file, BASE)


def needed():
    """Folder of manifests -> the (group, resource, verb) that the calls need; and the calls that cannot be read."""
    known, rights, unread = resources(), collections.defaultdict(set), []
    found = [("", name, "", verbs) for name, verbs in PLANNED.items()]
    for file, expression, subresource, verbs in [*calls(), *found]:
        if (file, expression) in WRAPPED:
            continue
        for name in CHOSEN.get((file, expression), [expression]):
            if name not in known:
                unread.append(f"{file}: {expression}")
                continue
            group, plural = known[name]
            for verb in verbs:
                right = (group, f"{plural}/{subresource}" if subresource else plural, verb)
                rights[place(file, right)].add(right)
    for right in OWNERS:
        rights[place("", right)].add(right)
    for folder in (PYTORCH, STATUS, METRICS):  # they are installed beside the base
        rights[folder] -= rights[BASE]
    return rights, unread


def given(folder):
    """(group, resource, verb) -> the names of the objects, of the rules in rbac.yaml; None: all objects."""
    rights = collections.defaultdict(set)
    text = re.sub(r"^\s*#[^\n]*\n", "", (MANIFESTS / folder / "rbac.yaml").read_text(), flags=re.MULTILINE)
    for rule in re.findall(r"^- apiGroups: (?:.*\n)(?:  .*\n?)*", text, re.MULTILINE):
        fields = {
            name: [word.strip(' "') for word in value.split(",")]
            for name, value in re.findall(r"(\w+): \[(.*)\]", rule)
        }
        for right in itertools.product(fields["apiGroups"], fields["resources"], fields["verbs"]):
            rights[right].update(fields.get("resourceNames", [None]))
    return rights


class Rights(unittest.TestCase):
    def test_every_call_is_read(self):
        self.assertEqual(needed()[1], [], "name what these expressions can be in CHOSEN")

    def test_the_rights_are_those_of_the_calls(self):
        rights, _ = needed()
        for folder in (BASE, PYTORCH, STATUS, METRICS):
            with self.subTest(folder):
                self.assertEqual(sorted(rights[folder] - set(given(folder))), [], "missing")
                self.assertEqual(sorted(set(given(folder)) - rights[folder]), [], "not used")

    def test_secrets_are_read_by_name_only(self):
        for verb in ("get", "list", "watch", "patch"):
            own = {"muster-master-key"} if verb == "get" else {"kubeflow-trainer-webhook-cert"}
            self.assertLessEqual(given(BASE)["", "secrets", verb], own, verb)


if __name__ == "__main__":
    sys.exit(unittest.main())
