# SPDX-License-Identifier: Apache-2.0
"""The values that the schema of the Helm chart knows."""

import json
import pathlib

SCHEMA = pathlib.Path(__file__).resolve().parent.parent / "charts" / "muster" / "values.schema.json"
# What a chart that depends on this one may set. The chart itself does not read it.
OF_PARENTS = {"global", "enabled"}


def values_of(schema, definitions, path=""):
    """The names of the values below `path`, such as image.tag."""
    if "$ref" in schema:
        schema = definitions[schema["$ref"].rpartition("/")[2]]
    if "properties" not in schema or schema.get("type") == "array":
        yield path
        return
    for name, part in schema["properties"].items():
        yield from values_of(part, definitions, f"{path}.{name}" if path else name)


def chart_values():
    """Of a value that is handed to Kubernetes, such as resources or livenessProbe, the fields are not listed."""
    schema = json.loads(SCHEMA.read_text())
    definitions = {**schema["$defs"], "probe": {}}
    whole = {name: {} for name in ("strategy", "resources")}
    schema["properties"].update(whole)
    return set(values_of(schema, definitions)) - OF_PARENTS
