# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests with folders of this machine: a source folder."""

import os

from initializer_case import InitializerCase


class LocalCase(InitializerCase):
    def setUp(self):
        super().setUp()
        self.source = os.path.join(self.home(), "claim")
        os.mkdir(self.source)
        self.uri = f"file://{self.source}"

    def home(self):
        """The place for the source folder."""
        return self.dir

    def lay(self, files):
        """Writes `files` (path below the source -> content)."""
        for path, data in files.items():
            path = os.path.join(self.source, path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(data)
        return files
