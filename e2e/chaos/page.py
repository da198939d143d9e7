# SPDX-License-Identifier: Apache-2.0
"""A folder for each job that fell short, with its object and a page that says what happened to it."""

import contextlib
import glob
import html
import os
import shutil

import installation

HEAD = "<!doctype html><meta charset=utf-8><title>{title}</title><style>{style}</style><h1>{title}</h1>"
STYLE = "body{font:15px sans-serif;margin:2em}td{padding:.2em 1em;vertical-align:top}pre{background:#eee;padding:1em}"


def save(world, folder, job, wrong, faults):
    """Saves what is known of a job to FOLDER/JOB. `faults`: [(moment, text, concerns this job)]."""
    where = os.path.join(folder, job.name)
    os.makedirs(where, exist_ok=True)
    described = world.cluster.try_kubectl("get", job.full_name(), "-n", world.namespace, "-o", "yaml").stdout
    with open(os.path.join(where, "job.yaml"), "w") as file:
        file.write(described)
    shutil.copytree(job.folder, os.path.join(where, "shared"), dirs_exist_ok=True)
    rows = "".join(
        f"<tr><td>{moment:.1f} s<td>{'<b>' if mine else ''}{html.escape(text)}" for moment, text, mine in faults
    )
    with open(os.path.join(where, "index.html"), "w") as file:
        file.write(HEAD.format(title=html.escape(job.full_name()), style=STYLE))
        file.write("".join(f"<p>{html.escape(each)}" for each in wrong))
        file.write(
            "<p>Logs of programs, pods and events are in <a href=../cluster>../cluster</a>, the logs of all pods"
        )
        file.write(f" that there were in <a href=../pods>../pods</a>.<h2>Faults</h2><table>{rows}")
        file.write(f"</table><h2>The object</h2><pre>{html.escape(described)}</pre>")


def save_cluster(world, folder):
    """Saves the logs of all pods and programs, before the jobs are deleted."""
    installation.save(world.cluster, world.namespace, os.path.join(folder, "cluster"))


def keep_logs(world, folder):
    """Keeps the logs of all containers so far, as links in FOLDER/pods. The kubelet deletes those of pods that go."""
    for node in world.nodes:
        for path in glob.glob(node.path("podlogs/*/*/*")):
            where = os.path.join(folder, "pods", os.path.relpath(path, node.path("podlogs")))
            with contextlib.suppress(OSError):  # it exists, or the pod has just gone
                os.makedirs(os.path.dirname(where), exist_ok=True)
                os.link(path, where)
