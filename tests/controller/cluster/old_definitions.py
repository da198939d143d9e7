# SPDX-License-Identifier: Apache-2.0
"""Definitions that accept the objects of Kubeflow Trainer v2.0 and v2.1: their own fields with the keys of lists, and
any value for Kubernetes' types. Names are not checked, so objects are stored that the newest definitions refuse."""

GROUP = "trainer.kubeflow.org"
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
TEXT = {"type": "string"}
TEXTS = {"type": "object", "additionalProperties": TEXT}
NUMBER = {"type": "integer", "format": "int32", "minimum": 0}
MULTI_KUEUE = "kueue.x-k8s.io/multikueue"
CONTROLLER = "trainer.kubeflow.org/trainjob-controller"


def thing(required=(), **properties):
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


def array(items, *keys):
    return {
        "type": "array",
        "items": items,
        **({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)} if keys else {}),
    }


NAMED = {**thing(["name"], name=TEXT), "x-kubernetes-preserve-unknown-fields": True}
TRAINER = thing(
    image=TEXT,
    command=array(TEXT),
    args=array(TEXT),
    env=array(NAMED, "name"),
    numNodes={"type": "integer", "format": "int32"},
    resourcesPerNode=ANYTHING,
    numProcPerNode={"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True},
)
FIXED = {"rule": "self == oldSelf", "message": "it is immutable"}
SPEC = thing(
    ["runtimeRef"],
    initializer=ANYTHING,
    trainer=TRAINER,
    labels=TEXTS,
    annotations=TEXTS,
    podTemplateOverrides=array(ANYTHING),
    podSpecOverrides=array(ANYTHING),
    suspend={"type": "boolean", "default": False},
    runtimeRef={
        **thing(
            ["name"], name=TEXT, apiGroup={**TEXT, "default": GROUP}, kind={**TEXT, "default": "ClusterTrainingRuntime"}
        ),
        "x-kubernetes-validations": [FIXED],
    },
    managedBy={
        **TEXT,
        "default": CONTROLLER,
        "x-kubernetes-validations": [
            {"rule": f"self in ['{CONTROLLER}', '{MULTI_KUEUE}']", "message": "it must be one of these"},
            FIXED,
        ],
    },
)
COUNTS = ("ready", "succeeded", "failed", "active", "suspended")
STATUS = thing(
    conditions=array({**NAMED, "required": ["type"], "properties": {"type": TEXT}}, "type"),
    jobsStatus=array(thing(["name", *COUNTS], name=TEXT, **dict.fromkeys(COUNTS, NUMBER)), "name"),
)


def definition(kind, scope, schema):
    plural = kind.lower() + "s"
    columns = [{"name": "State", "type": "string", "jsonPath": ".status.conditions[-1:].type"}]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": scope,
            "names": {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()},
            "versions": [
                {
                    "name": "v1alpha1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    **({"subresources": {"status": {}}} if kind == "TrainJob" else {}),
                    "additionalPrinterColumns": columns if kind == "TrainJob" else [],
                }
            ],
        },
    }


OLD_DEFINITIONS = [
    definition("TrainJob", "Namespaced", thing(spec=SPEC, status=STATUS)),
    definition("TrainingRuntime", "Namespaced", thing(spec=ANYTHING)),
    definition("ClusterTrainingRuntime", "Cluster", thing(spec=ANYTHING)),
]
# Fields of a TrainJob's spec that only typed clients of one of the two generations know.
ONLY_OLD = ("labels", "annotations", "podTemplateOverrides", "podSpecOverrides")
ONLY_NEW = ("runtimePatches", "activeDeadlineSeconds", "ttlSecondsAfterFinished")
