# SPDX-License-Identifier: Apache-2.0
"""The parts list of a package, as a document of SPDX 2.3 in JSON. The same parts give the same bytes."""

import datetime
import hashlib
import re

from package_files import SITE

ROOT_ID = "SPDXRef-Package"
PART_FACTS = "${Version}\\n${source:Package}\\n${source:Version}\\n${Architecture}\\n"


def utc(moment):
    return datetime.datetime.fromtimestamp(moment, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def document(package, facts, commit, components, binary_digest):
    """`components`: of the package's binary, whose SHA-256 is `binary_digest`."""
    subject = {
        "SPDXID": ROOT_ID,
        "name": package.name,
        "versionInfo": facts.version,
        "supplier": "Organization: The Muster authors",
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "sourceInfo": f"commit {commit}",
        "checksums": [{"algorithm": "SHA256", "checksumValue": binary_digest}],
        "licenseConcluded": "Apache-2.0",
        "licenseDeclared": "Apache-2.0",
        "copyrightText": "NOASSERTION",
        "primaryPackagePurpose": "APPLICATION",
        "externalRefs": [purl(f"pkg:generic/{package.name}@{facts.version}")],
    }
    packages = [subject]
    relationships = [relationship("SPDXRef-DOCUMENT", "DESCRIBES", ROOT_ID)]
    for kind, parts in (("STATIC_LINK", components.linked), ("DYNAMIC_LINK", components.shared)):
        for part in parts:
            packages.append(part_of(part, components.debian_of(part)))
            relationships.append(relationship(ROOT_ID, kind, packages[-1]["SPDXID"]))
    content = hashlib.sha256(repr(packages).encode()).hexdigest()
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"{package.name}-{facts.version}-{facts.architecture}",
        "documentNamespace": f"{SITE}/spdx/{package.name}-{facts.version}-{facts.architecture}-{content}",
        "creationInfo": {"created": utc(facts.moment), "creators": ["Tool: make-dist"]},
        "packages": packages,
        "relationships": relationships,
    }


def part_of(name, debian):
    """A Debian package. The sources of its binaries may have another name and version."""
    version, source, source_version, architecture = debian.facts(name, PART_FACTS).split("\n")[:4]
    return {
        "SPDXID": f"SPDXRef-{re.sub('[^A-Za-z0-9.-]', '-', name)}",
        "name": name,
        "versionInfo": version,
        "supplier": "Organization: Debian",
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "sourceInfo": f"built from the Debian source package {source} {source_version}",
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": "NOASSERTION",
        "copyrightText": "NOASSERTION",
        "externalRefs": [
            purl(f"pkg:deb/debian/{name.replace('+', '%2B')}@{version.replace('+', '%2B')}?arch={architecture}")
        ],
    }


def purl(locator):
    return {
        "referenceCategory": "PACKAGE-MANAGER",
        "referenceType": "purl",
        "referenceLocator": locator,
    }


def relationship(element, kind, related):
    return {"spdxElementId": element, "relationshipType": kind, "relatedSpdxElement": related}
