# SPDX-License-Identifier: Apache-2.0
"""Waits until a GET of the URL is answered with 200, then exits with 0: await_url.py URL [CA CERTIFICATE KEY]"""

import ssl
import sys
import time
import urllib.request


def main():
    url, *keys = sys.argv[1:]
    context = None
    if keys:
        context = ssl.create_default_context(cafile=keys[0])
        context.load_cert_chain(keys[1], keys[2])
    handlers = [urllib.request.ProxyHandler({}), *([urllib.request.HTTPSHandler(context=context)] if context else [])]
    opener = urllib.request.build_opener(*handlers)
    while True:
        try:
            with opener.open(url, timeout=5) as answer:
                if answer.status == 200:
                    return
        except OSError:  # all network errors, and answers other than 200
            time.sleep(0.05)


if __name__ == "__main__":
    main()
