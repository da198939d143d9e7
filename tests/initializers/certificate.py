# SPDX-License-Identifier: Apache-2.0
"""Makes a self-signed certificate for a test server, with openssl."""

import os
import ssl
import subprocess


def make(folder, names="IP:127.0.0.1"):
    """Makes `folder`, with public.crt and private.key in it."""
    os.makedirs(folder, exist_ok=True)
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=muster-test",
            "-addext",
            f"subjectAltName={names}",
            "-keyout",
            f"{folder}/private.key",
            "-out",
            f"{folder}/public.crt",
        ],
        check=True,
        capture_output=True,
    )
    return f"{folder}/public.crt"


def server_context(folder):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{folder}/public.crt", f"{folder}/private.key")
    return context
