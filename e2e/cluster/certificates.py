# SPDX-License-Identifier: Apache-2.0
"""A cluster's certificate authority, its certificates, and kubeconfigs with them. Makes missing files with openssl."""

import base64
import os
import subprocess

from processes import Broken

KUBECONFIG = """apiVersion: v1
kind: Config
clusters: [{{name: cluster, cluster: {{server: "{server}", certificate-authority-data: {ca}}}}}]
users: [{{name: user, user: {{{identity}}}}}]
contexts: [{{name: cluster, context: {{cluster: cluster, user: user}}}}]
current-context: cluster
"""


def openssl(*arguments, **options):
    done = subprocess.run(["openssl", *arguments], capture_output=True, text=True, **options)
    if done.returncode:
        raise Broken(f"openssl {' '.join(arguments)}: {done.stderr.strip()}")


def inline(path):
    with open(path, "rb") as file:
        return base64.b64encode(file.read()).decode()


class Certificates:
    def __init__(self, folder):
        self.folder = folder
        os.makedirs(folder, mode=0o700, exist_ok=True)
        if not os.path.exists(self.path("ca.crt")):
            openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", self.path("ca.key"))
            openssl(
                "req",
                "-x509",
                "-new",
                "-key",
                self.path("ca.key"),
                "-days",
                "30",
                "-subj",
                "/CN=muster-e2e",
                "-out",
                self.path("ca.crt"),
            )
            openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", self.path("accounts.key"))
            openssl("ec", "-in", self.path("accounts.key"), "-pubout", "-out", self.path("accounts.pub"))

    def path(self, name):
        return os.path.join(self.folder, name)

    def issue(self, name, subject, extensions):
        """The paths of NAME.crt and NAME.key."""
        if os.path.exists(self.path(f"{name}.crt")):
            return
        openssl(
            "req",
            "-new",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-subj",
            subject,
            "-keyout",
            self.path(f"{name}.key"),
            "-out",
            self.path(f"{name}.csr"),
        )
        openssl(
            "x509",
            "-req",
            "-in",
            self.path(f"{name}.csr"),
            "-CA",
            self.path("ca.crt"),
            "-CAkey",
            self.path("ca.key"),
            "-CAcreateserial",
            "-days",
            "30",
            "-extfile",
            "/dev/stdin",
            "-out",
            self.path(f"{name}.crt"),
            input=f"keyUsage=critical,digitalSignature\n{extensions}\n",
        )

    def serve(self, name, subject, alternatives):
        self.issue(name, subject, f"extendedKeyUsage=serverAuth\nsubjectAltName={','.join(alternatives)}")

    def kubeconfig(self, name, server, user, groups=()):
        """The path of a kubeconfig with a client certificate for `user` (64 characters at most)."""
        self.issue(name, "".join(f"/O={group}" for group in groups) + f"/CN={user}", "extendedKeyUsage=clientAuth")
        return self.write_kubeconfig(
            name,
            server,
            f"client-certificate-data: {inline(self.path(f'{name}.crt'))}, "
            f"client-key-data: {inline(self.path(f'{name}.key'))}",
        )

    def write_kubeconfig(self, name, server, identity):
        path = self.path(f"{name}.kubeconfig")
        with open(path, "w") as file:
            file.write(KUBECONFIG.format(server=server, ca=inline(self.path("ca.crt")), identity=identity))
        return path
