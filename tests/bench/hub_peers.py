# SPDX-License-Identifier: Apache-2.0
"""The model hub of initializer_peers.py, served by nginx, and the clients that download a repository from it.

Large files are offered in both ways of the real hub: by a redirect to another origin (for muster-initializer and
hf_transfer), and by Xet (for hf_xet). The CAS server of Xet is the real one. It says where the bytes are; nginx
serves these, as the hub's CDN would, since the CAS server itself reads 64 MiB for each requested range.
"""

import base64
import glob
import hashlib
import json
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.append(os.path.join(ROOT, "tests"))

from free_port import free_port

BINARY = os.environ.get("MUSTER_INITIALIZER", os.path.join(ROOT, "build", "bin", "muster-initializer"))
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "muster")
PEERS = os.path.join(CACHE, "initializer-peers", "bin")
HUB_XET = os.path.join(CACHE, "hub-xet", "bin", "python")
CAS_SERVER = os.path.join(CACHE, "xet-server", "bin", "local_cas_server")
COMMIT = "c0ffee" * 6 + "c0ff"

MAPS = """
  log_format sent "$body_bytes_sent";
  map $scheme $cdn {{
    http http://127.0.0.1:{cdn};
    https https://127.0.0.1:{cdn_tls};
  }}
  map $scheme $cas {{
    http http://127.0.0.1:{cas};
    https https://127.0.0.1:{cas_tls};
  }}
  map $file $linked_size {{
    default "";
{linked_sizes}
  }}
  map $file $linked_etag {{
    default "";
{linked_etags}
  }}
  map $file $xet_hash {{
    default "";
{xet_hashes}
  }}
  map $xet_hash $xet_link {{
    default '<$scheme://$http_host/api/models/hub/$repository/xet-read-token/{commit}>; rel="xet-auth"';
    "" "";
  }}
  map $arg_term $xorb {{
    default none;
{xorbs}
  }}
"""

LOCATIONS = """
    location /api/ {{ default_type application/json; }}
    location ~ ^/api/models/hub/[a-z]+/xet-read-token/ {{
      default_type application/json;
      add_header X-Xet-Cas-Url $cas;
      add_header X-Xet-Access-Token bench;
      add_header X-Xet-Token-Expiration 4102444800;
      return 200 '{{"casUrl": "$cas", "accessToken": "bench", "exp": 4102444800}}';
    }}
    location ~ ^/hub/small/resolve/[0-9a-f]+/(?<small>.*)$ {{
      add_header X-Repo-Commit {commit} always;
      alias {data}/bench/$small;
    }}
    location ~ ^/hub/(?<repository>one|shards)/resolve/[0-9a-f]+/(?<file>.*)$ {{
      add_header X-Repo-Commit {commit} always;
      add_header X-Linked-Size $linked_size always;
      add_header X-Linked-Etag $linked_etag always;
      add_header X-Xet-Hash $xet_hash always;
      add_header Link $xet_link always;
      return 302 $cdn/bench/$file;
    }}
"""

# The CAS server's answers have URLs with http.
SERVERS = """
  server {{
    listen 127.0.0.1:{cdn};
    listen 127.0.0.1:{cdn_tls} ssl;
    root {data};
  }}
  server {{
    listen 127.0.0.1:{cas};
    listen 127.0.0.1:{cas_tls} ssl;
    location = /v1/fetch_term {{
      access_log {dir}/xorbs.log sent;
      alias {dir}/cas/xorbs/$xorb;
    }}
    location / {{
      proxy_pass http://127.0.0.1:{cas_itself};
      proxy_set_header Host $http_host;
      proxy_set_header Accept-Encoding "";
      sub_filter http:// $scheme://;
      sub_filter_types application/json;
      sub_filter_once off;
    }}
  }}
"""

DOWNLOAD = """
import sys
from huggingface_hub import snapshot_download
snapshot_download(sys.argv[1], local_dir=sys.argv[2])
"""

UPLOAD = """
import json, sys
import hf_xet
endpoint, *paths = sys.argv[1:]
with hf_xet.XetSession().new_upload_commit(endpoint=endpoint) as commit:
    files = [commit.start_upload_file(path, sha256=hf_xet.SKIP_SHA256) for path in paths]
print(json.dumps([file.result().xet_info.hash for file in files]))
"""


class Hub:
    def __init__(self, folder, data, url):
        """url: maps a scheme (http, https, or another one of the caller) to the hub's URL."""
        self.dir, self.data, self.url = folder, data, url
        self.linked, self.xet = {}, {}
        self.ports = {name: free_port() for name in ("cdn", "cdn_tls", "cas", "cas_tls", "cas_itself")}
        self.sent = os.path.join(self.dir, "xorbs.log")

    def close(self):
        if hasattr(self, "cas"):
            self.cas.terminate()
            self.cas.wait()

    def fill_xet(self, keys):
        """Uploads the files to a CAS server. False, after printing the reason, if there is none or it refuses them."""
        for path, setup in ((HUB_XET, "setup-venv hub-xet"), (CAS_SERVER, "setup-xet-server")):
            if not os.path.exists(path):
                print(f"hf_xet is left out: run build-support/{setup}", file=sys.stderr)
                return False
        environment = {"PATH": os.environ["PATH"], "HOME": self.dir}
        port = self.ports["cas_itself"]
        with open(os.path.join(self.dir, "cas.log"), "w") as log:
            self.cas = subprocess.Popen(
                [CAS_SERVER, "--port", str(port), "--data-directory", os.path.join(self.dir, "cas")],
                env=environment,
                stdout=log,
                stderr=log,
            )
        endpoint = f"http://127.0.0.1:{port}"
        subprocess.run(
            ["curl", "-sf", "--retry", "50", "--retry-connrefused", "--retry-delay", "1", f"{endpoint}/health"]
        )
        paths = [os.path.join(self.data, "bench", key) for key in keys]
        filled = subprocess.run(
            [HUB_XET, "-c", UPLOAD, endpoint, *paths], env=environment, capture_output=True, text=True
        )
        if filled.returncode != 0:
            print(f"hf_xet is left out: its CAS server did not take the files: {filled.stderr[-300:]}", file=sys.stderr)
            return False
        self.xet = dict(zip(keys, json.loads(filled.stdout)))
        return True

    def lay_repository(self, name, keys, large=True):
        """Writes the hub's answers for hub/NAME. Its files are the bucket's; large ones come from another origin."""
        files = []
        for key in keys:
            path = os.path.join(self.data, "bench", key)
            size = os.path.getsize(path)
            if not large:
                with open(path, "rb") as file:
                    oid = hashlib.sha1(b"blob %d\0" % size + file.read()).hexdigest()
                files.append({"type": "file", "path": key, "size": size, "oid": oid})
                continue
            with open(path, "rb") as file:
                oid = hashlib.file_digest(file, "sha256").hexdigest()
            self.linked[key] = (size, oid)
            files.append(
                {
                    "type": "file",
                    "path": key,
                    "size": size,
                    "oid": "0" * 40,
                    "lfs": {"oid": oid, "size": size, "pointerSize": 134},
                }
            )
            if key in self.xet:
                files[-1]["xetHash"] = self.xet[key]
        api = os.path.join(self.data, "api", "models", "hub", name)
        facts = {
            "id": f"hub/{name}",
            "modelId": f"hub/{name}",
            "sha": COMMIT,
            "private": False,
            "gated": False,
            "tags": [],
            "downloads": 0,
            "likes": 0,
            "siblings": [{"rfilename": key} for key in keys],
        }
        for place, content in ((f"revision/{COMMIT}", facts), ("revision/main", facts), (f"tree/{COMMIT}", files)):
            path = os.path.join(api, place)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as file:
                json.dump(content, file)

    def config(self):
        """The hub's parts of the nginx configuration."""
        hashes = [
            os.path.basename(path)[len("default.") :]
            for path in glob.glob(os.path.join(self.dir, "cas", "xorbs", "default.*"))
            if not path.endswith(".tagset")
        ]
        facts = {
            **self.ports,
            "dir": self.dir,
            "data": self.data,
            "commit": COMMIT,
            "linked_sizes": "\n".join(f'    {key} "{size}";' for key, (size, _) in self.linked.items()),
            "linked_etags": "\n".join(f"    {key} '\"{oid}\"';" for key, (_, oid) in self.linked.items()),
            "xet_hashes": "\n".join(f"    {key} {value};" for key, value in self.xet.items()),
            # A term is HASH:RANGES in base64. The request's header has the ranges too.
            "xorbs": "\n".join(
                f"    ~^{base64.urlsafe_b64encode(value[:63].encode()).decode()} default.{value};" for value in hashes
            ),
        }
        return {
            "hub_maps": MAPS.format(**facts),
            "hub_locations": LOCATIONS.format(**facts),
            "hub_servers": SERVERS.format(**facts),
        }

    # --- contenders: key or "folder/" -> argv and environment

    def muster_hub(self, scheme, keys, target, revision="main"):
        return (
            [BINARY, "model", f"hf://hub/{self.repository(keys)}@{revision}", "--to", target],
            {"HF_ENDPOINT": self.url(scheme), "REQUESTS_CA_BUNDLE": f"{self.dir}/authority.crt"},
        )

    def hf_transfer(self, scheme, keys, target):
        return (
            [os.path.join(PEERS, "python"), "-c", DOWNLOAD, f"hub/{self.repository(keys)}", target],
            {
                "HF_ENDPOINT": self.url(scheme),
                "HF_HUB_ENABLE_HF_TRANSFER": "1",
                "HF_HUB_DISABLE_XET": "1",
                "REQUESTS_CA_BUNDLE": f"{self.dir}/authority.crt",
                "SSL_CERT_FILE": f"{self.dir}/authority.crt",
            },
        )

    def hf_xet(self, scheme, keys, target):
        home = os.path.join(self.dir, "hf-home")
        shutil.rmtree(home, ignore_errors=True)  # its caches of earlier runs
        os.truncate(self.sent, 0)
        return (
            [HUB_XET, "-c", DOWNLOAD, f"hub/{self.repository(keys)}", target],
            {"HF_ENDPOINT": self.url(scheme), "HF_HOME": home, "SSL_CERT_FILE": f"{self.dir}/authority.crt"},
        )

    @staticmethod
    def repository(keys):
        return "one" if keys == "one.bin" else keys.rstrip("/")

    def not_by_xet(self, size):
        """The error, if hf_xet's last run did not get its bytes by Xet; else ""."""
        with open(self.sent) as file:
            sent = sum(map(int, file))
        return "" if sent >= size else f"{sent} of {size} bytes came by Xet"
