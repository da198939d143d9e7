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


def write(folder, reference, layers, config, moment, architecture="amd64"):
    """Writes an image of `layers` (tars, the lowest first) as the folder `folder` and as the archive `folder`.tar,
    which replace older ones. Returns the digest of its manifest. `reference`: REPOSITORY:TAG with the registry's host,
    such as docker.io/library/muster:latest. `config`: the image's own "config" object (Env, Entrypoint, User, Labels
    ...). `architecture`: as Debian and the format name it.

    The folder is an OCI image layout with the manifest.json that older `docker load` wants, so that docker, podman,
    skopeo, kind and containerd all read it."""
    layout = Layout(folder)
    created = datetime.datetime.fromtimestamp(moment, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    platform = {"architecture": architecture, "os": "linux"}
    facts = {
        **platform,
        "created": created,
        "config": config,
        "rootfs": {
            "type": "layers",
            "diff_ids": [f"sha256:{hashlib.sha256(content).hexdigest()}" for content in layers],
        },
        "history": [{"created": created, "created_by": "make-images"} for _ in layers],
    }
    layer_blobs = [layout.add(f"{MEDIA}layer.v1.tar+gzip", compressed(content)) for content in layers]
    config_blob = layout.add(f"{MEDIA}config.v1+json", as_json(facts))
    manifest = layout.add_manifest(config_blob, layer_blobs)
    layout.name(manifest, reference, platform=platform)
    path_of = lambda blob: blob["digest"].replace("sha256:", "blobs/sha256/")
    layout.save(
        "manifest.json",
        as_json([{"Config": path_of(config_blob), "RepoTags": [reference], "Layers": list(map(path_of, layer_blobs))}]),
    )
    with open(f"{folder}.tar", "wb") as file:
        file.write(layer(folder, moment))
    return manifest["digest"]


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

    def name(self, manifest, reference, **more):
        """Makes `manifest` what the layout contains under the name `reference`."""
        annotations = {
            "io.containerd.image.name": reference,
            "org.opencontainers.image.ref.name": reference.rpartition(":")[2],
        }
        index = {
            "schemaVersion": 2,
            "mediaType": f"{MEDIA}index.v1+json",
            "manifests": [{**manifest, **more, "annotations": annotations}],
        }
        self.save("index.json", as_json(index))


def as_json(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def compressed(content):
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=packed, mtime=0) as file:
        file.write(content)
    return packed.getvalue()
