# SPDX-License-Identifier: Apache-2.0
"""A worker that does what the test tells it: says hello over the test's socket, then obeys one command per line.

Commands: exit N | signal N | ignore NAME | asked NAME (waits until an ignored signal has come) | print TEXT |
error TEXT | fork (a grandchild that waits for ever) | file PATH TEXT
"""

import json
import os
import signal
import socket
import subprocess
import sys


def main():
    link = socket.socket(socket.AF_UNIX)
    link.connect(os.environ["MUSTER_TEST_SOCKET"])

    def say(what, **facts):
        link.sendall((json.dumps(dict(what=what, pid=os.getpid(), **facts)) + "\n").encode())

    def on_signal(number, _frame):
        say("signal", signal=number)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    came = set()
    signal.signal(signal.SIGTERM, on_signal)
    say("hello", env=dict(os.environ), argv=sys.argv, cwd=os.getcwd(), ppid=os.getppid(), pgid=os.getpgid(0))
    for line in link.makefile():
        command, _, rest = line.strip().partition(" ")
        if command == "exit":
            sys.stdout.flush()
            os._exit(int(rest))
        elif command == "signal":
            signal.signal(int(rest), signal.SIG_DFL) if int(rest) not in (9, 19) else None
            os.kill(os.getpid(), int(rest))
        elif command == "ignore":
            ignored = getattr(signal, rest)
            signal.signal(ignored, lambda number, _frame: came.add(number))
            say("done")
        elif command == "asked":
            while getattr(signal, rest) not in came:
                signal.sigtimedwait([], 0.05)
            say("asked")
        elif command == "print":
            os.write(1, (rest + "\n").encode())
            say("done")
        elif command == "error":
            os.write(2, (rest + "\n").encode())
            say("done")
        elif command == "fork":
            child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"], stdin=subprocess.DEVNULL)
            say("done", child=child.pid)
        elif command == "file":
            path, _, text = rest.partition(" ")
            with open(os.path.expandvars(path), "w") as file:
                file.write(text)
            say("done")
    signal.pause()


main()
