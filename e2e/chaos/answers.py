# SPDX-License-Identifier: Apache-2.0
"""Stands between the controllers and the API server, and answers some requests with an error: answers.py FOLDER

FOLDER/answers.json says which share of the requests gets which answer: {"503": 0.5}. An HTTP status refuses writes and
reads, "lost" resets the connection before the API server sees the request, "cut" after it. A watch can be lost, and is
torn when "cut" begins. The file is read with each request. Writes of Leases pass, so that a leader stays one.
"""

import json
import os
import random
import sys
import types

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "..", "tests", "controller", "cluster"), os.path.join(HERE, "..", "cluster")]

from api_proxy import ApiProxy, Fault, status_answer
from network import ADDRESS

PORT = 6444
REASONS = {409: "Conflict", 429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable"}


def fault_of(request, shares, chance):
    """What happens to a request; None: it passes."""
    if "cut" in shares and request.is_watch:
        return Fault(cut=chance.randrange(1, 4096))
    for which, share in shares.items():
        if request.resource == "leases" or chance.random() >= share:
            continue
        if which == "lost":
            return Fault(lost=True)
        if which == "cut":
            return Fault(cut=-1)
        return Fault(answer=status_answer(int(which), REASONS[int(which)], {"Retry-After": "1"}))
    return None


def rule(path, chance, proxy, request):
    proxy.requests.clear()
    with open(path) as file:
        return fault_of(request, json.load(file), chance)


def main():
    folder = sys.argv[1]
    certificates = types.SimpleNamespace(path=lambda name: os.path.join(folder, name))
    cluster = types.SimpleNamespace(server="https://127.0.0.1:443", address=ADDRESS, certificates=certificates)
    proxy = ApiProxy(cluster, PORT)
    chance, path = random.Random(0), os.path.join(folder, "answers.json")
    proxy.rule = lambda request: rule(path, chance, proxy, request)
    proxy.thread.join()


if __name__ == "__main__":
    main()
