# SPDX-License-Identifier: Apache-2.0
"""Learns what a worker imports: a finder at the front of sys.meta_path that finds nothing itself.

It sends the names of modules of the standard library and of installed packages, in the order of the look-ups: what a
module does before it imports another may matter to that. A standby imports them before the first line of the script. So
what the script changes between its imports belongs to the order, and is sent as an entry of its own:

  =environ:NAME=MARK   the script has set this variable, to a value with this mark (sitecustomize.py's mark_of)
  =environ:NAME        it has removed this variable
  =file:NAME:PATH      it has begun to import this module of its own
  =file:               the same, but the name and the path are no entry
  =path:A:B            it has changed sys.path, to this
  =end:WHAT            it has changed what no standby can repeat: nothing that is imported later is sent

"The script" is each module that is not installed. What an installed module has changed after the last module that it
looked for counts as the script's, too: that costs no more than an entry too many.
"""

import os
import sys


class Learner:
    def __init__(self, channel, tools):
        """`tools`: the module sitecustomize."""
        self.channel, self.tools = channel, tools
        self.socket = os.fstat(channel)
        self.process = os.getpid()
        self.pending = []  # looked for, and not sent yet
        self.root = ""  # the module that the script has looked for last
        self.environ, self.path, self.others = self.list_facts()
        self.hidden = self.list_hidden()
        self.folder_is_due = True  # Python has not put the script's folder at the front of sys.path

    @staticmethod
    def list_facts():
        environ = dict(getattr(os.environ, "_data", os.environ))  # of bytes; a program may have put a dict there
        try:
            here = os.getcwd()
        except OSError:
            here = None
        return environ, list(sys.path), {"sys.argv": sys.argv[1:], "os.getcwd()": here}

    @staticmethod
    def list_hidden():
        return [name for name, module in list(sys.modules.items()) if module is None]

    def find_spec(self, name, path=None, target=None):
        if self.process == os.getpid():
            try:
                self.note(name)
            except Exception:  # the program has put something odd into sys: nothing more is learned
                self.process = -1
        return None

    def note(self, name):
        if self.is_importing("site"):  # usercustomize; a standby runs it, too
            self.environ, self.path, self.others = self.list_facts()
            return
        entries = self.take_pending()
        changes = self.take_changes()
        if not self.is_importing(self.root):
            self.root = name
            entries += changes
            if self.hidden != self.list_hidden():
                entries.append("=end:sys.modules")
        self.send(entries)
        self.pending.append(name)

    def is_importing(self, name):
        return getattr(self.tools.spec_of(name), "_initializing", False)

    def take_pending(self):
        """Entries for those that are in sys.modules by now."""
        pending, self.pending = self.pending, []
        entries = []
        for name in pending:
            spec = self.tools.spec_of(name)
            if spec is None:
                continue
            if self.tools.is_foreign(spec):
                entries.append(name)
                continue
            entries += self.tools.file_entries(name, spec)
            if name == self.root:
                self.root = ""  # what a module of the script's own does, the script does
        return entries

    def take_changes(self):
        environ, path, others = self.list_facts()
        changes = []
        if environ != self.environ:
            names = [name for name in {*environ, *self.environ} if environ.get(name) != self.environ.get(name)]
            changes += sorted(self.tools.variable_entry(os.fsdecode(name), environ.get(name)) for name in names)
        if path != self.path and not (self.folder_is_due and path[1:] == self.path):
            whole = all(isinstance(place, str) and os.pathsep not in place for place in path)
            change = "=path:" + os.pathsep.join(path) if whole else ""
            changes.append(change if whole and self.tools.is_plain(change) else "=end:sys.path")
        changes += ["=end:" + what for what, value in others.items() if value != self.others[what]]
        self.environ, self.path, self.others, self.folder_is_due = environ, path, others, False
        return changes

    def send(self, entries):
        if not entries:
            return
        try:
            if os.path.samestat(self.socket, os.fstat(self.channel)):  # the script has not closed it
                self.tools.send(self.channel, b"N", "\0".join(entries))
                if not any(entry.startswith("=end:") for entry in entries):
                    return
        except OSError:
            pass  # the agent listens no more
        self.process = -1
