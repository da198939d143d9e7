#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Replaces the tables of fields in docs/api.md: build-support/api_page.py

Fields and types come from the definitions in controller/manifests; api_fields.py says what each field is.
tests/docs_test.py fails if the page differs from what this script makes, or if a definition and api_fields.py have
different fields.
"""

import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from api_fields import NO_TYPES, PYTORCH_JOB, RUNTIME, TRAIN_JOB, TYPES, VERDICTS

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
PAGE = os.path.join(ROOT, "docs", "api.md")
KINDS = {
    "trainjobs": TRAIN_JOB,
    "trainingruntimes": RUNTIME,
    "clustertrainingruntimes": RUNTIME,
    "pytorchjobs": PYTORCH_JOB,
}
FILES = {"pytorchjobs": "components/pytorchjob/crd.yaml"}  # else base/crds/KIND.yaml
PATCHED_POD = "spec.runtimePatches[].trainingRuntimeSpec.template.spec.replicatedJobs[].template.spec.template.spec"
# Heading, kind, and the prefix of the table's paths. A field is in the table with the longest prefix that fits.
TABLES = [
    ("TrainJob: `spec`", "trainjobs", "spec."),
    ("TrainJob: `spec.runtimePatches[]`", "trainjobs", "spec.runtimePatches[]."),
    ("TrainJob: the pod of a patch, `replicatedJobs[].template.spec.template.spec`", "trainjobs", PATCHED_POD + "."),
    ("TrainJob: `status`", "trainjobs", "status."),
    ("Runtime: `spec`", "trainingruntimes", "spec."),
    ("Runtime: `spec.template.spec`, which is JobSet's", "trainingruntimes", "spec.template.spec."),
    (
        "Runtime: `spec.template.spec.replicatedJobs[].template`, a Job's",
        "trainingruntimes",
        "spec.template.spec.replicatedJobs[].template.",
    ),
    ("PyTorchJob: `spec`", "pytorchjobs", "spec."),
    ("PyTorchJob: `status`", "pytorchjobs", "status."),
]
BEGIN, END = "<!-- Made by build-support/api_page.py: -->\n", "<!-- end of what is made -->\n"


def read_yaml(text):
    """Parses the YAML that make-crds writes: two spaces a level, lists at the level of their key, scalars that are JSON
    or a word."""
    lines = [
        (len(line) - len(line.lstrip(" ")), line.strip()) for line in text.splitlines() if not line.startswith("#")
    ]
    words = {"null": None, "true": True, "false": False, "{}": {}, "[]": []}

    def scalar(word):
        if word.startswith('"'):
            return json.loads(word)
        return words[word] if word in words else int(word) if re.fullmatch(r"-?\d+", word) else word

    def block(depth):
        if lines[0][1].startswith("- "):
            items = []
            while lines and lines[0][0] == depth and lines[0][1].startswith("- "):
                rest = lines[0][1][2:]
                if re.match(r'("[^"]*"|[^\s"]+):( |$)', rest):
                    lines[0] = (depth + 2, rest)
                    items.append(block(depth + 2))
                else:
                    items.append(scalar(rest))
                    lines.pop(0)
            return items
        made = {}
        while lines and lines[0][0] == depth and not lines[0][1].startswith("- "):
            key, _, rest = re.match(r'("[^"]*"|[^\s"]+?):( (.*))?$', lines.pop(0)[1]).groups()
            made[key.strip('"')] = scalar(rest) if rest is not None else block(lines[0][0])
        return made

    return block(0)


def schema_of(kind):
    with open(os.path.join(ROOT, "controller", "manifests", FILES.get(kind, f"base/crds/{kind}.yaml"))) as file:
        return read_yaml(file.read())["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def type_of(path):
    """Kubernetes' own type at the end of `path`, or None."""
    if path in NO_TYPES:
        return None
    return next((TYPES[end] for end in sorted(TYPES, key=len, reverse=True) if path.endswith("." + end)), None)


def type_words(schema):
    if schema.get("type") == "array":
        return (
            ("list of " if "enum" in schema["items"] else "")
            + type_words(schema["items"])
            + ("" if "enum" in schema["items"] else "[]")
        )
    if "additionalProperties" in schema:
        return f"map of {type_words(schema['additionalProperties'])}"
    if schema.get("x-kubernetes-int-or-string"):
        return "quantity" if "pattern" in schema else "integer or string"
    words = "time" if schema.get("format") == "date-time" else schema["type"]
    values = [f"`{value}`" for value in schema.get("enum", ()) if value != ""]
    if values:
        words = ", ".join(values)
    return words + (
        f"; default `{str(schema['default']).lower() if schema['type'] == 'boolean' else schema['default']}`"
        if "default" in schema
        else ""
    )


def fields(schema, path=""):
    """(path, type) of each field below spec and status; of a field that only holds others, the type is None. A field of
    a type of Kubernetes' own is one line, without its inner fields. In a map of records KEY stands for any key."""
    inner, below = schema, path
    while inner.get("type") == "array" or "properties" in inner.get("additionalProperties", ()):
        inner, below = (
            (inner["items"], below + "[]")
            if inner["type"] == "array"
            else (inner["additionalProperties"], below + ".KEY")
        )
    whole = type_of(path)
    if whole or "properties" not in inner:
        yield path, whole or type_words(schema)
        return
    if path:
        yield path, None
    for name, part in inner["properties"].items():
        if path or name in ("spec", "status"):
            yield from fields(part, f"{below}.{name}" if path else name)


def described(schema, told, path=""):
    """`schema` with the words of `told` as descriptions of the fields that have a line."""
    schema = dict(schema)
    for inner, below in (("items", path + "[]"), ("additionalProperties", path + ".KEY")):
        if isinstance(schema.get(inner), dict):
            schema[inner] = described(schema[inner], told, below)
    if "properties" in schema:
        schema["properties"] = {
            name: described(part, told, f"{path}.{name}" if path else name)
            for name, part in schema["properties"].items()
        }
    if path not in told:
        return schema
    schema.pop("description", None)
    return {"description": description(*told[path]), **schema}


def description(verdict, words):
    """The words as text of a definition: without links, as a sentence."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", re.sub(r" \(\[[^]]*\]\([^)]*\)\)", "", words))
    if verdict in ("ignored", "refused"):
        text = f"{verdict}: {text}"
    return text[0].upper() + text[1:] + "."


def words_of(text):
    """{path: (verdict, words)}, in the order of `text`. ValueError: an unknown verdict, or a path that is there
    twice."""
    told = {}
    for line in filter(None, text.replace("\n  ", " ").splitlines()):
        path, _, rest = line.partition(": ")
        verdict, _, words = rest.partition("; ")
        if verdict not in VERDICTS or not words:
            raise ValueError(
                f"api_fields.py: {path}: want one of {', '.join(VERDICTS)}, then '; ' and words, not {rest!r}"
            )
        if path in told:
            raise ValueError(f"api_fields.py: {path} is there twice")
        told[path] = (verdict, words)
    return told


def mistakes(listed, told):
    """Sentences about each field of `listed` ((path, type) of a definition) without a line of `told`, each line without
    a field, and each line whose verdict is for another kind of field."""
    known = dict(listed)
    return (
        [f"api_fields.py has no line for {path}, which the definition has" for path in known if path not in told]
        + [f"api_fields.py has {path}, and the definition has no such field" for path in told if path not in known]
        + [
            f"api_fields.py says {verdict} of {path}"
            for path, (verdict, _) in told.items()
            if path in known and (known[path] is None) != (verdict == "holds")
        ]
    )


def rows(listed, told, begin, others):
    """Lines of the table of the fields that begin with `begin` and with none of `others`; in the order of `told`."""
    known = dict(listed)
    for path, (verdict, words) in told.items():
        if verdict != "holds" and path.startswith(begin) and not path.startswith(others):
            yield f"| `{path.removeprefix(begin)}` | {known[path]} | {verdict}: {words} |"


def tables():
    text = ""
    for heading, kind, begin in TABLES:
        others = tuple(other for _, its, other in TABLES if its == kind and other.startswith(begin) and other != begin)
        text += f"\n### {heading}\n\n| field | type | Muster |\n|---|---|---|\n"
        text += "".join(row + "\n" for row in rows(list(fields(schema_of(kind))), words_of(KINDS[kind]), begin, others))
    return text + "\n"


def renewed(page):
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return before + BEGIN + tables() + END + after


def main():
    wrong = [
        f"{kind}: {what}"
        for kind, text in KINDS.items()
        for what in mistakes(list(fields(schema_of(kind))), words_of(text))
    ]
    if wrong:
        sys.exit("api_page.py: " + "\n".join(wrong))
    with open(PAGE) as file:
        page = file.read()
    with open(PAGE, "w") as file:
        file.write(renewed(page))


if __name__ == "__main__":
    main()
