# SPDX-License-Identifier: Apache-2.0
"""The site of `make site`: its menu has every page once, and check_site.py finds links without a target."""

import pathlib
import re
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True  # no __pycache__ in build-support
sys.path.insert(0, str(ROOT / "build-support" / "site"))
import check_site


class Site(unittest.TestCase):
    def test_the_menu_has_every_page_once(self):
        menu = (ROOT / "build-support/site/mkdocs.yml").read_text().partition("\nnav:\n")[2]
        pages = {path.name for path in ROOT.glob("docs/*.md")} | {"README.md"}
        pages |= {f"repository/{path.name}" for path in ROOT.glob("*.md") if path.name != "README.md"}
        self.assertEqual(sorted(re.findall(r": (\S+\.md)\n", menu)), sorted(pages))

    def test_what_is_wrong_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            site = pathlib.Path(folder)
            self.assertEqual(check_site.faults(site), ["the site has no page"])
            (site / "below").mkdir()
            (site / "below/page.html").write_text(
                '<h1 id="there">A</h1><a href="../index.html#top">a</a><a href="#there">a</a><a href="..">a</a>'
                '<a href="#gone">a</a><a href="gone.html">a</a><a href="../../out">a</a><img src="/gone.png">'
            )
            (site / "index.html").write_text(
                '<a id="top" href="https://host/">a</a><a href="below/page.html#there">a</a><img src="data:,">'
                '<script src="//host/a.js"></script><pre class="wide mermaid"></pre><a href="below/page.html#no">a</a>'
            )
            (site / "a.css").write_text('@import "https://host/b.css"; p { background: url(data:,), url(a.png) }')
            self.assertEqual(
                check_site.faults(site),
                [
                    "below/page.html links to /gone.png, which is not there",
                    "below/page.html links to #gone, which has no such anchor",
                    "below/page.html links to gone.html, which is not there",
                    "below/page.html links to ../../out, which is not there",
                    "index.html loads //host/a.js",
                    "index.html loads https://unpkg.com",
                    "index.html links to below/page.html#no, which has no such anchor",
                    "a.css loads https://host/b.css",
                ],
            )


if __name__ == "__main__":
    sys.exit(unittest.main())
