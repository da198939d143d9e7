"""Shows a training run while it goes on: on a terminal a log with a status below it that is drawn anew, else plain lines."""
import sys
import time

BAR = 40
RESET, BOLD, RED, GREEN, YELLOW = "\x1b[0m", "\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[33m"


class View:
    def __init__(self, epochs, out=sys.stdout):
        self._out = out
        self._live = out.isatty()
        self._epochs = epochs
        self._began = time.monotonic()
        self._drawn = 0  # lines of the status on the screen
        self._nodes = {}
        self._epoch, self._loss, self._accuracy, self._world = 0, None, None, 0

    def node(self, name, state):
        """state: running, killed, ended."""
        self._nodes[name] = state
        self._redraw()

    def say(self, text, color=""):
        self._line(f"{color}{text}{RESET}" if self._live and color else text)

    def fault(self, text):
        self.say(f">>> {text}", RED)

    def event(self, event):
        """An event of the training run (training_run.py)."""
        if event["event"] == "start":
            self._world = event["world"]
            where = f"goes on after epoch {event['epoch']}" if event["epoch"] else "starts"
            self.say(f"training {where} with {event['world']} workers", GREEN)
        elif event["event"] == "epoch":
            self._epoch, self._loss, self._accuracy = event["epoch"], event["loss"], event["accuracy"]
            self.say(f"epoch {event['epoch']:2d}/{self._epochs}  loss {event['loss']:.4f}  accuracy {event['accuracy']:.3f}"
                     f"  {event['world']} workers")
        elif event["event"] == "end":
            self.say(f"test accuracy {event['accuracy']:.4f} after {event['epoch']} epochs", BOLD)
        elif event["event"] == "node_ended":
            self.node(event["node"], "killed" if event["code"] == 137 else "ended")
            self.say(f"{event['node']} ended with code {event['code']}")

    def finish(self):
        """Takes the status away; what follows is printed plainly."""
        self._erase()
        self._live = False

    def _line(self, text):
        self._erase()
        self._out.write(f"[{time.monotonic() - self._began:5.1f} s] {text}\n")
        self._redraw()

    def _erase(self):
        if self._drawn:
            self._out.write(f"\x1b[{self._drawn}A\x1b[J")
            self._drawn = 0

    def _redraw(self):
        if not self._live:
            return self._out.flush()
        self._erase()
        colors = {"running": GREEN, "killed": RED, "ended": YELLOW}
        nodes = "   ".join(f"{name} {colors[state]}{state}{RESET}" for name, state in self._nodes.items())
        done = BAR * self._epoch // self._epochs
        figures = f"loss {self._loss:.4f}  accuracy {self._accuracy:.3f}" if self._epoch else ""
        self._out.write(f"\n  {nodes}   {self._world} workers\n"
                        f"  [{'#' * done}{'.' * (BAR - done)}] {self._epoch}/{self._epochs}  {figures}\n")
        self._drawn = 3
        self._out.flush()
