# SPDX-License-Identifier: Apache-2.0
"""The server of initializer_peers.py (nginx), and programs that download by libraries."""

NGINX = """
daemon off;
user {user};
worker_processes 2;
error_log {dir}/error.log;
pid {dir}/nginx.pid;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  log_format asked "$request_method $uri $status";
  sendfile on;
  tcp_nopush on;
  keepalive_requests 1000000;
  ssl_certificate {dir}/public.crt;
  ssl_certificate_key {dir}/private.key;
  ssl_protocols TLSv1.3;
  client_body_temp_path {dir}/tmp; proxy_temp_path {dir}/tmp; fastcgi_temp_path {dir}/tmp;
  uwsgi_temp_path {dir}/tmp; scgi_temp_path {dir}/tmp;
  types {{ }}
  default_type application/octet-stream;
  map $args $page_folder {{
    default none;
    "~(^|&)prefix=(?<folder>[a-z]+)" $folder;
  }}
  map $args $page_number {{
    default 0;
    "~(^|&)continuation-token=(?<token>p[0-9]+)" $token;
  }}
  map $uri $object_crc {{
    default "";
{crcs}
  }}
  map $http_range $crc {{
    default "";
    "" $object_crc;
  }}
  map $crc $crc_type {{
    default FULL_OBJECT;
    "" "";
  }}
  map $server_port $asked {{
    default 0;
    {counted} 1;
  }}
{hub_maps}  server {{
    listen 127.0.0.1:{http};
    listen 127.0.0.1:{https} ssl;
    listen 127.0.0.1:{counted};
    access_log {dir}/asked.log asked if=$asked;
    root {data};
    location /pages/ {{ default_type application/xml; }}
    location / {{
      if ($args ~ list-type=2) {{ rewrite ^ /pages/$page_folder-$page_number.xml? last; }}
      if (-d $request_filename) {{ return 404; }}
      add_header x-amz-checksum-crc32c $crc;
      add_header x-amz-checksum-type $crc_type;
    }}
{hub_locations}  }}
{hub_servers}}}
"""


OBSTORE = """
import asyncio, os, sys
import obstore
from obstore.store import S3Store
url, keys, target = sys.argv[1], sys.argv[2], sys.argv[3]
store = S3Store("bench", endpoint=url, access_key_id="K", secret_access_key="S", region="us-east-1",
                virtual_hosted_style_request=False,
                client_options={"allow_http": True, "allow_invalid_certificates": True})
async def one(key, gate):
    async with gate:
        answer = await obstore.get_async(store, key)
        with open(os.path.join(target, os.path.basename(key)), "wb") as file:
            async for part in answer.stream(min_chunk_size=8 << 20):
                file.write(part)
async def main():
    gate = asyncio.Semaphore(64)
    names = [entry["path"] for page in obstore.list(store, keys) for entry in page] if keys.endswith("/") else [keys]
    await asyncio.gather(*(one(name, gate) for name in names))
asyncio.run(main())
"""


OPENDAL = """
import asyncio, os, sys
import opendal
url, keys, target = sys.argv[1], sys.argv[2], sys.argv[3]
store = opendal.AsyncOperator("s3", bucket="bench", endpoint=url, access_key_id="K", secret_access_key="S",
                              region="us-east-1")
async def one(key, gate):
    async with gate:
        with open(os.path.join(target, os.path.basename(key)), "wb") as file:
            async with await store.open(key, "rb") as source:
                while data := await source.read(8 << 20):
                    file.write(data)
async def main():
    gate = asyncio.Semaphore(64)
    names = [entry.path async for entry in await store.list(keys)] if keys.endswith("/") else [keys]
    await asyncio.gather(*(one(name, gate) for name in names if not name.endswith("/")))
asyncio.run(main())
"""


# Downloads by the CRT as the AWS CLI does.
CRT = """
import os, sys
import botocore.session
from s3transfer.crt import BotocoreCRTCredentialsWrapper, BotocoreCRTRequestSerializer
from s3transfer.crt import CRTTransferManager, create_s3_crt_client
url, keys, target, authority = sys.argv[1:]
session = botocore.session.Session()
session.set_credentials("K", "S")
where = {"region_name": "us-east-1", "endpoint_url": url, "verify": authority}
names = [keys]
if keys.endswith("/"):
    pages = session.create_client("s3", **where).get_paginator("list_objects_v2").paginate(Bucket="bench", Prefix=keys)
    names = [entry["Key"] for page in pages for entry in page["Contents"]]
provider = BotocoreCRTCredentialsWrapper(session.get_credentials()).to_crt_credentials_provider()
client = create_s3_crt_client("us-east-1", provider, use_ssl=url.startswith("https"), verify=authority)
with CRTTransferManager(client, BotocoreCRTRequestSerializer(session, where)) as manager:
    for future in [manager.download("bench", name, os.path.join(target, os.path.basename(name))) for name in names]:
        future.result()
"""
