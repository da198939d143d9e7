#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the pages of a built site: build-support/site/check_site.py FOLDER

Each link inside the site has its file and its anchor, and no page loads anything from another host.
"""

import html.parser
import pathlib
import re
import sys
import urllib.parse

# What a browser loads by itself, without a click.
LOADED = {("link", "href"), ("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("object", "data")}
FOREIGN_STYLE = re.compile(r"(?:url\(|@import)\s*[\"']?((?:https?:)?//[^\"')]*)")


def anchor(heading):
    """The anchor that GitHub makes of a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.anchors, self.links, self.loads = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name == "id" or (tag, name) == ("a", "name"):
                self.anchors.add(value)
            elif (tag, name) in LOADED:
                self.loads.append(value)
            elif (tag, name) == ("a", "href"):
                self.links.append(value)
            elif name == "class" and "mermaid" in (value or "").split():
                self.loads.append("https://unpkg.com")  # the theme gets the program for such a diagram there


def broken(link, path, pages, folder):
    """What is wrong with a link of the page at `path` to a place in the site; None: nothing."""
    parts = urllib.parse.urlsplit(link)
    target = path
    if parts.path:
        base = folder if parts.path.startswith("/") else path.parent  # 404.html links from the root of the site
        target = (base / urllib.parse.unquote(parts.path).lstrip("/")).resolve()
        if target.is_dir():
            target /= "index.html"
    if not target.is_file() or not target.is_relative_to(folder):
        return "which is not there"
    place = urllib.parse.unquote(parts.fragment)
    return "which has no such anchor" if place and target in pages and place not in pages[target].anchors else None


def faults(folder):
    """What is wrong with the site in `folder`, as lines of text."""
    folder = folder.resolve()
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.html"))}
    found = [] if pages else ["the site has no page"]
    for path, page in pages.items():
        name = path.relative_to(folder)
        for link in page.loads + page.links:
            parts = urllib.parse.urlsplit(link)
            if not parts.scheme and not parts.netloc:
                why = broken(link, path, pages, folder)
                found += [f"{name} links to {link}, {why}"] if why else []
            elif link in page.loads and parts.scheme != "data":
                found.append(f"{name} loads {link}")
    for path in sorted(folder.rglob("*.css")):
        found += [
            f"{path.relative_to(folder)} loads {address}"
            for address in FOREIGN_STYLE.findall(path.read_text(encoding="utf-8"))
        ]
    return found


def main():
    found = faults(pathlib.Path(sys.argv[1]))
    for fault in found:
        print(fault, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
