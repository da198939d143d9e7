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


def write(folder, reference, layers, config, moment):
    """Writes an image of `layers` (tars, the lowest first) as the folder `folder` and as the archive `folder`.tar,
    which replace older ones. Returns the digest of its manifest. `reference`: REPOSITORY:TAG with the registry's host,
    such as docker.io/library/muster:latest. `config`: the image's own "config" object (Env, Entrypoint, User, Labels
    ...).

    The folder is an OCI image layout with the manifest.json that older `docker load` wants, so that docker, podman,
    skopeo, kind and containerd all read it."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(os.path.join(folder, "blobs", "sha256"))

    def save(name, content):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(content)

    def save_blob(kind, content):
        digest = hashlib.sha256(content).hexdigest()
        save(os.path.join("blobs", "sha256", digest), content)
        return {"mediaType": f"{MEDIA}{kind}", "digest": f"sha256:{digest}", "size": len(content)}

    created = datetime.datetime.fromtimestamp(moment, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    layer_blobs = [save_blob("layer.v1.tar+gzip", compressed(content)) for content in layers]
    config_blob = save_blob(
        "config.v1+json",
        as_json(
            {
                "created": created,
                "architecture": "amd64",
                "os": "linux",
                "config": config,
                "rootfs": {
                    "type": "layers",
                    "diff_ids": [f"sha256:{hashlib.sha256(content).hexdigest()}" for content in layers],
                },
                "history": [{"created": created, "created_by": "make-images"} for _ in layers],
            }
        ),
    )
    manifest_blob = save_blob(
        "manifest.v1+json",
        as_json(
            {"schemaVersion": 2, "mediaType": f"{MEDIA}manifest.v1+json", "config": config_blob, "layers": layer_blobs}
        ),
    )
    save(
        "index.json",
        as_json(
            {
                "schemaVersion": 2,
                "mediaType": f"{MEDIA}index.v1+json",
                "manifests": [
                    {
                        **manifest_blob,
                        "platform": {"architecture": "amd64", "os": "linux"},
                        "annotations": {
                            "io.containerd.image.name": reference,
                            "org.opencontainers.image.ref.name": reference.rpartition(":")[2],
                        },
                    }
                ],
            }
        ),
    )
    save("oci-layout", as_json({"imageLayoutVersion": "1.0.0"}))
    path_of = lambda blob: blob["digest"].replace("sha256:", "blobs/sha256/")
    save(
        "manifest.json",
        as_json([{"Config": path_of(config_blob), "RepoTags": [reference], "Layers": list(map(path_of, layer_blobs))}]),
    )
    with open(f"{folder}.tar", "wb") as file:
        file.write(layer(folder, moment))
    return manifest_blob["digest"]


def as_json(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def compressed(content):
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=packed, mtime=0) as file:
        file.write(content)
    return packed.getvalue()
