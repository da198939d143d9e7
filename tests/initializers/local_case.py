"""What the tests with folders of this machine share: one to bring in."""
import os

from initializer_case import InitializerCase


class LocalCase(InitializerCase):
    def setUp(self):
        super().setUp()
        self.source = os.path.join(self.home(), "claim")
        os.mkdir(self.source)
        self.uri = f"file://{self.source}"

    def home(self):
        """Where the folder to bring in is made."""
        return self.dir

    def lay(self, files):
        """Path below the source -> content."""
        for path, data in files.items():
            path = os.path.join(self.source, path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(data)
        return files
