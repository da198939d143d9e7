# SPDX-License-Identifier: Apache-2.0
"""The files of one package in a folder, as they lie below a prefix such as /usr:

bin/NAME                     the program; a dynamic one is behind a starter (starter.cc)
lib/NAME/                    that program, its shared libraries and their loader
share/man, bash-completion, zsh, fish
share/doc/PACKAGE/           the licences of Muster and of all that is in the package
"""

import gzip
import os
from dataclasses import dataclass

from components import Components
from release import ROOT, output, put

STARTER = "muster-starter"
COMPLETIONS = {
    "bash": "share/bash-completion/completions/{}",
    "zsh": "share/zsh/site-functions/_{}",
    "fish": "share/fish/vendor_completions.d/{}.fish",
}


@dataclass(frozen=True)
class Package:
    """One program. `needs`: packages of ours whose programs it runs; `recommends`: packages of the distribution."""

    name: str
    summary: str
    needs: tuple = ()
    recommends: tuple = ()


PACKAGES = (
    Package("muster", "Runs training on the machines and pods of a job: agent, rendezvous, torchrun and mpirun"),
    Package(
        "muster-initializer",
        "Brings data sets and models into a folder: from S3, GCS, the Hugging Face Hub and volumes",
    ),
    Package(
        "muster-local",
        "Runs TrainJobs and PyTorchJobs on one machine, without a cluster",
        needs=("muster", "muster-initializer"),
        recommends=("bubblewrap",),
    ),
    Package("muster-controller", "Serves TrainJobs and PyTorchJobs on Kubernetes"),
)


def package(name):
    """The Package of that name."""
    return next(package for package in PACKAGES if package.name == name)


@dataclass(frozen=True)
class Build:
    """A build of the programs. `folder`: CMake's. `speaker`: the folder of binaries of the same commit that run on this
    machine, which print manuals and completions. `debian`: where the libraries come from."""

    folder: str
    speaker: str
    debian: object

    def binary(self, name):
        return os.path.join(self.folder, "bin", name)


def write(prefix, name, build):
    """Writes the package `name` below the folder `prefix`. Returns its Components."""
    components = Components(build.folder, name, build.debian)
    libraries = components.libraries
    if libraries:
        put(prefix, f"bin/{name}", source=build.binary(STARTER))
        for path in libraries:
            put(prefix, f"lib/{name}/{os.path.basename(path)}", source=build.debian.place(path), mode=0o644)
        os.chmod(os.path.join(prefix, "lib", name, os.path.basename(loader_of(libraries))), 0o755)
        output(build.debian.tool("strip"), "--strip-all", os.path.join(prefix, "bin", name))
    place = f"lib/{name}/{name}" if libraries else f"bin/{name}"
    output(build.debian.tool("strip"), "--strip-all", put(prefix, place, source=build.binary(name)))
    write_usage(prefix, name, build)
    write_licences(prefix, name, build, components)
    return components


def program_of(name, prefix):
    """The relative path of the program itself, behind the starter if there is one."""
    behind = f"lib/{name}/{name}"
    return behind if os.path.exists(os.path.join(prefix, behind)) else f"bin/{name}"


def loader_of(libraries):
    return next(path for path in libraries if os.path.basename(path).startswith("ld-"))


def write_usage(prefix, name, build):
    speaker = os.path.join(build.speaker, name)
    manual = gzip.compress(output(speaker, "man").encode(), mtime=0)
    put(prefix, f"share/man/man1/{name}.1.gz", content=manual)
    for shell, path in COMPLETIONS.items():
        put(prefix, path.format(name), content=output(speaker, "completion", shell))


def write_licences(prefix, name, build, components):
    folder = f"share/doc/{name}"
    put(prefix, f"{folder}/copyright", source=os.path.join(ROOT, "LICENSE"))
    for part in (*components.linked, *components.shared):
        if licence := components.debian_of(part).licence_of(part):
            put(prefix, f"{folder}/licences/{part}", source=licence)
