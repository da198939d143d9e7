# SPDX-License-Identifier: Apache-2.0
"""Makes container images from folders, in the format of the Open Container Initiative, without a daemon and a registry.
The same files give the same bytes: owners are 0, times are given, modes are one of 0644, 0755 and 1777."""

import datetime
import gzip
import hashlib
import io
import json
import os
import shutil
import tarfile
import tempfile
from dataclasses import dataclass

MEDIA = "application/vnd.oci.image."


def layer(root, moment):
    """A tar of the content of the folder `root`, sorted by name. Every file has the time `moment` (seconds since
    1970)."""

    def plain(member):
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        member.mtime = moment
        if not member.issym():
            member.mode = 0o1777 if member.mode & 0o1000 else 0o755 if member.mode & 0o100 else 0o644
        return member

    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        for name in sorted(os.listdir(root)):
            tar.add(os.path.join(root, name), name, filter=plain)
    return content.getvalue()


@dataclass(frozen=True)
class Image:
    """For one architecture, as Debian and the format name it. `layers`: tars, the lowest first. `config`: the image's
    own "config" object (Env, Entrypoint, User, Labels ...)."""

    architecture: str
    layers: list
    config: dict


def write(folder, reference, images, moment):
    """Writes `images`, of different architectures, as the folder `folder` and as the archive `folder`.tar, which
    replace older ones. Returns the digest that the reference stands for: of the one manifest, or of the index of
    several. `reference`: REPOSITORY:TAG with the registry's host, such as docker.io/library/muster:latest.

    The folder is an OCI image layout with the manifest.json that older `docker load` wants, so that docker, podman,
    skopeo, kind and containerd all read it. manifest.json knows no architectures: it has the first image."""
    layout = Layout(folder)
    manifests = [write_image(layout, image, moment) for image in images]
    top = manifests[0] if len(images) == 1 else layout.add_index(manifests)
    layout.name(top, reference)
    path_of = lambda blob: blob["digest"].replace("sha256:", "blobs/sha256/")
    first = json.loads(layout.blob(manifests[0]))
    layers = [path_of(blob) for blob in first["layers"]]
    layout.save(
        "manifest.json",
        as_json([{"Config": path_of(first["config"]), "RepoTags": [reference], "Layers": layers}]),
    )
    with open(f"{folder}.tar", "wb") as file:
        file.write(layer(folder, moment))
    return top["digest"]


def write_image(layout, image, moment):
    """Adds the blobs of an Image. Returns the descriptor of its manifest."""
    created = datetime.datetime.fromtimestamp(moment, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    platform = {"architecture": image.architecture, "os": "linux"}
    facts = {
        **platform,
        "created": created,
        "config": image.config,
        "rootfs": {
            "type": "layers",
            "diff_ids": [f"sha256:{hashlib.sha256(content).hexdigest()}" for content in image.layers],
        },
        "history": [{"created": created, "created_by": "make-images"} for _ in image.layers],
    }
    layer_blobs = [layout.add(f"{MEDIA}layer.v1.tar+gzip", compressed(content)) for content in image.layers]
    config_blob = layout.add(f"{MEDIA}config.v1+json", as_json(facts))
    return {**layout.add_manifest(config_blob, layer_blobs), "platform": platform}


def write_artifact(path, reference, config, content, moment):
    """Writes an OCI image layout of one file, which is no image, as the archive `path`. `config`, `content`: (media
    type, bytes). Returns the digest of its manifest."""
    with tempfile.TemporaryDirectory(prefix="muster-artifact-") as folder:
        layout = Layout(folder)
        manifest = layout.add_manifest(layout.add(*config), [layout.add(*content)])
        layout.name(manifest, reference)
        with open(path, "wb") as file:
            file.write(layer(folder, moment))
    return manifest["digest"]


class Layout:
    """An OCI image layout: the folder `folder`, which replaces an older one."""

    def __init__(self, folder):
        self.folder = folder
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(os.path.join(folder, "blobs", "sha256"))
        self.save("oci-layout", as_json({"imageLayoutVersion": "1.0.0"}))

    def save(self, name, content):
        with open(os.path.join(self.folder, name), "wb") as file:
            file.write(content)

    def add(self, media_type, content):
        digest = hashlib.sha256(content).hexdigest()
        self.save(os.path.join("blobs", "sha256", digest), content)
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(content)}

    def add_manifest(self, config, layers):
        media_type = f"{MEDIA}manifest.v1+json"
        return self.add(
            media_type, as_json({"schemaVersion": 2, "mediaType": media_type, "config": config, "layers": layers})
        )

    def add_index(self, manifests):
        media_type = f"{MEDIA}index.v1+json"
        return self.add(media_type, as_json(index_of(manifests)))

    def blob(self, descriptor):
        with open(
            os.path.join(self.folder, "blobs", "sha256", descriptor["digest"].removeprefix("sha256:")), "rb"
        ) as file:
            return file.read()

    def name(self, descriptor, reference):
        """Makes `descriptor`, of a manifest or an index, what the layout contains under the name `reference`."""
        annotations = {
            "io.containerd.image.name": reference,
            "org.opencontainers.image.ref.name": reference.rpartition(":")[2],
        }
        self.save("index.json", as_json(index_of([{**descriptor, "annotations": annotations}])))


def index_of(descriptors):
    return {"schemaVersion": 2, "mediaType": f"{MEDIA}index.v1+json", "manifests": descriptors}


def as_json(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def compressed(content):
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=packed, mtime=0) as file:
        file.write(content)
    return packed.getvalue()
