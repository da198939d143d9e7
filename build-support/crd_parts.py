# SPDX-License-Identifier: Apache-2.0
"""Parts of custom resource definitions: schemas of Kubernetes' own types, pieces of a schema, a definition."""

import json
import os
import re
import sys
import tempfile

import api_page
from api_fields import KINDS

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e", "cluster"))
from cluster import Cluster, binaries

GROUP = "trainer.kubeflow.org"
MANAGED_BY = "trainer.kubeflow.org/trainjob-controller"
MULTIKUEUE = "kueue.x-k8s.io/multikueue"
MOST_NODES = 100_000  # pods of an Indexed Job (controller/api/limits.h)

# ---- Kubernetes' own types


def types_of_kubernetes():
    """The schemas in the OpenAPI of an API server, by name. It is started for this, and built before if need be."""
    with tempfile.TemporaryDirectory(prefix="muster-make-crds-") as folder:
        cluster = Cluster(folder, binaries(build=True))
        try:
            cluster.start()
            types = {}
            for api in ("batch/v1", "autoscaling/v2"):
                said = json.loads(cluster.kubectl("get", "--raw", f"/openapi/v3/apis/{api}"))
                types |= said["components"]["schemas"]
            return types
        finally:
            cluster.stop()


def first_sentence(text):
    whole = re.split(r" (?:More info|Possible enum values): ", " ".join(text.split()))[0]
    return re.split(r"(?<=\.)(?<!e\.g\.)(?<!i\.e\.)(?<!etc\.) (?=[A-Z])", whole)[0]


class Kubernetes:
    """Structural schemas of Kubernetes' types by name ("core.v1.PodSpec"). Without enumerations, because a newer
    Kubernetes has more values."""

    INT_OR_STRING = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
    QUANTITY = {
        **INT_OR_STRING,
        "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
        r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
    }
    KEPT = ("type", "format", "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type")

    def __init__(self, types, described):
        """`types`: of types_of_kubernetes()."""
        self.described = described
        self.types = types

    def __getitem__(self, name):
        return self._schema({"$ref": f"#/components/schemas/io.k8s.api.{name}"})

    def meta(self, name):
        return self._schema({"$ref": f"#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.{name}"})

    def _words(self, given):
        words = first_sentence(given.get("description", "")) if self.described else ""
        return {"description": words} if words else {}

    def _schema(self, given):
        parts = given.get("allOf", [given])
        reference = parts[0].get("$ref", "").rpartition("/")[2]
        if reference.endswith("api.resource.Quantity"):
            return dict(self.QUANTITY)
        if reference.endswith("util.intstr.IntOrString"):
            return dict(self.INT_OR_STRING)
        if reference.endswith("apis.meta.v1.ObjectMeta"):
            given = self.types[reference]["properties"]
            fields = metadata("annotations", "finalizers", "labels", "name", "namespace")
            return record(**{name: {**self._words(given[name]), **part} for name, part in fields["properties"].items()})
        if reference:
            return self._schema(self.types[reference])
        schema = {key: given[key] for key in self.KEPT if key in given}
        if given.get("default") not in (None, {}, "", 0, False):
            schema["default"] = given["default"]
        if given.get("required"):
            schema["required"] = given["required"]
        if "properties" in given:
            schema["properties"] = {
                name: {**self._words(part), **self._schema(part)} for name, part in sorted(given["properties"].items())
            }
        if "items" in given:
            schema["items"] = self._schema(given["items"])
            for key in schema.get("x-kubernetes-list-map-keys", ()):  # each key is required, or has a default
                if key not in schema["items"].get("required", ()):
                    schema["items"]["properties"][key].setdefault("default", "")
        if "additionalProperties" in given:
            schema["additionalProperties"] = self._schema(given["additionalProperties"])
        return schema


# ---- parts of a schema


def rules(*pairs):
    """CEL: (rule, message) or (rule, message, more)."""
    return {
        "x-kubernetes-validations": [
            {"rule": rule, "message": message, **(more[0] if more else {})} for rule, message, *more in pairs
        ]
    }


def record(required=(), **properties):
    schema = {"type": "object"}
    if required:
        schema["required"] = list(required)
    schema["properties"] = properties
    return schema


def text(most=None, least=None, **more):
    schema = {"type": "string", **more}
    if most is not None:
        schema["maxLength"] = most
    if least is not None:
        schema["minLength"] = least
    return schema


def number(least=None, most=None, form="int32", **more):
    schema = {"type": "integer", "format": form, **more}
    if least is not None:
        schema["minimum"] = least
    if most is not None:
        schema["maximum"] = most
    return schema


def several(items, most=None, keys=None, kind="atomic"):
    schema = {"type": "array", "items": items, "x-kubernetes-list-type": "map" if keys else kind}
    if keys:
        schema["x-kubernetes-list-map-keys"] = list(keys)
    if most is not None:
        schema["maxItems"] = most
    return schema


FLAG = {"type": "boolean"}
TIME = {"type": "string", "format": "date-time"}
TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def metadata(*names):
    return record(
        **{
            name: {"labels": TEXTS, "annotations": TEXTS, "finalizers": several({"type": "string"}, kind="set")}.get(
                name, {"type": "string"}
            )
            for name in names
        }
    )


def processes_per_node(message):
    """A whole number of 1 or more; in the old shape also auto, cpu, gpu, and the number as text."""
    return {
        **Kubernetes.INT_OR_STRING,
        **rules(
            ("type(self) != int || self >= 1", message),
            (
                "type(self) != string || self.matches('^(auto|cpu|gpu|[1-9][0-9]{0,8})$')",
                "it must be a whole number of 1 or more, auto, cpu or gpu",
            ),
        ),
    }


def one_word(*words):
    return {"type": "string", "enum": list(words)}


def one_of(*names):
    return "[" + ", ".join(f"has(self.{name})" for name in names) + "].filter(x, x).size() <= 1"


def condition():
    return record(
        ["type", "status", "lastTransitionTime", "reason", "message"],
        type=text(
            316,
            pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
        ),
        status={"type": "string", "enum": ["True", "False", "Unknown"]},
        lastTransitionTime=TIME,
        observedGeneration=number(0, form="int64"),
        reason=text(1024, 1, pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"),
        message=text(32768),
    )


def failure(**more):
    return record(
        time=TIME,
        pod=text(),
        job=text(),
        node=text(),
        reportedBy=text(),
        container=text(),
        rank=number(),
        nodeRank=number(),
        exitCode=number(),
        signal=text(),
        oom=FLAG,
        reason=text(),
        message=text(),
        nextStep=text(),
        counted=FLAG,
        origin=text(),
        **more,
    )


# ---- a definition


def printed(columns, wide=()):
    """The columns of `kubectl get`, and those that -o wide adds."""
    return [{"name": name, "type": form, "jsonPath": path} for name, form, path in columns] + [
        {"name": name, "type": form, "jsonPath": path, "priority": 1} for name, form, path in wide
    ]


def definition(kind, plural, scope, schema, more, group=GROUP, version="v1alpha1", told="", short=""):
    names = {
        "kind": kind,
        "listKind": f"{kind}List",
        "plural": plural,
        "singular": kind.lower(),
        **({"shortNames": [short]} if short else {}),
    }
    if told:
        schema = {"description": KINDS[kind], **api_page.described(schema, api_page.words_of(told))}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": names,
            "versions": [
                {"name": version, "served": True, "storage": True, **more, "schema": {"openAPIV3Schema": schema}}
            ],
        },
    }
