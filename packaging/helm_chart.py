# SPDX-License-Identifier: Apache-2.0
"""The Helm chart as `helm package` makes it, but with the same bytes each time: symbolic links become files, and what
.helmignore names stays out. And the same as an OCI artifact, which a registry takes as `helm push` would send it."""

import gzip
import io
import os
import tarfile

from oci_image import as_json, write_artifact
from release import ROOT, Failed, put

CHART = os.path.join(ROOT, "charts", "muster")
CONFIG = "application/vnd.cncf.helm.config.v1+json"
CONTENT = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"


def write(out, registry, moment):
    """Writes NAME-VERSION.tgz and NAME-VERSION-oci.tar into the folder `out`. Returns their paths."""
    facts = chart_facts()
    base = os.path.join(out, f"{facts['name']}-{facts['version']}")
    content = archive(facts["name"], moment)
    put("/", f"{base}.tgz", content=content)
    reference = f"{registry}/{facts['name']}:{facts['version']}"
    write_artifact(f"{base}-oci.tar", reference, (CONFIG, as_json(facts)), (CONTENT, content), moment)
    return f"{base}.tgz", f"{base}-oci.tar"


def chart_facts():
    """Chart.yaml, which has one text a line."""
    facts = {}
    with open(os.path.join(CHART, "Chart.yaml")) as file:
        for line in file:
            name, colon, value = line.rstrip("\n").partition(": ")
            if not colon or not name.isalpha():
                raise Failed(f"{file.name}: {line!r}: want NAME: TEXT")
            facts[name] = value
    return facts


def archive(name, moment):
    """The bytes of the .tgz."""
    with open(os.path.join(CHART, ".helmignore")) as file:
        ignored = tuple(line.strip() for line in file if line.strip() and not line.startswith("#"))
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=packed, mtime=0) as zipped:
        with tarfile.open(fileobj=zipped, mode="w") as tar:
            for path in chart_files():
                if any(path == rule or path.startswith(f"{rule}/") for rule in ignored):
                    continue
                with open(os.path.join(CHART, path), "rb") as file:
                    content = file.read()
                entry = tarfile.TarInfo(f"{name}/{path}")
                entry.size, entry.mtime, entry.mode = len(content), moment, 0o644
                tar.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def chart_files():
    """Relative paths of the chart's files, Chart.yaml first."""
    found = [
        os.path.relpath(os.path.join(place, name), CHART)
        for place, _, names in os.walk(CHART, followlinks=True)
        for name in names
    ]
    return sorted(found, key=lambda path: (path != "Chart.yaml", path))
