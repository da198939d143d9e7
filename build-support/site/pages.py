# SPDX-License-Identifier: Apache-2.0
"""Hooks of mkdocs.yml: which files become pages of the site, and where their links lead.

The first page is README.md, then come those of docs/. All else of the repository that a page links to is in the folder
repository of the site: the other Markdown files of the root as pages, any other file as a copy, PATH.txt, which a
browser shows. The sources keep the links that work in the repository. Anchors are those that GitHub makes.
"""

import pathlib
import posixpath
import re
import sys

import mkdocs.exceptions
import mkdocs.structure.files

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.dont_write_bytecode = True  # no __pycache__ in build-support
sys.path.insert(0, str(ROOT / "build-support" / "site"))
import check_site

LINK = re.compile(r"(?<=\]\()([^)\s#]+)(?=[)#])")


def place_of(path):
    """Where the site has the file at `path` of the repository, as a path of mkdocs."""
    if path == "README.md":
        return path
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return f"repository/{path}" if path.endswith(".md") else f"repository/{path}.txt"


def added(path, files, config):
    """The place of the file at `path`, which is in the site from now on."""
    place = place_of(path)
    if place not in files:
        if not (ROOT / path).is_file():
            raise mkdocs.exceptions.PluginError(f"a page links to {path}, which is not a file of the repository")
        file = mkdocs.structure.files.File(place, str(ROOT), config.site_dir, config.use_directory_urls)
        file.abs_src_path = str(ROOT / path)
        files.append(file)
    return place


def on_config(config):
    config.mdx_configs["toc"] = {"slugify": lambda heading, _: check_site.anchor(heading), "permalink": True}


def on_files(files, config):
    for path in sorted(ROOT.glob("*.md")):
        added(path.name, files, config)


def on_page_markdown(markdown, page, config, files):
    folder = pathlib.Path(page.file.abs_src_path).relative_to(ROOT).parent.as_posix()

    def moved(match):
        if re.match(r"[a-z]+:", match[1]):
            return match[1]
        place = added(posixpath.normpath(posixpath.join(folder, match[1])), files, config)
        return posixpath.relpath(place, posixpath.dirname(page.file.src_uri) or ".")

    return LINK.sub(moved, markdown)


def on_page_content(html, **_):
    """A bar in the code of a table is written as \\| and shown as |."""
    return re.sub(r"<td.*?</td>", lambda cell: cell[0].replace("\\|", "|"), html, flags=re.DOTALL)


def on_post_build(config):
    """Writes the search's index as a script, too: for a site that is opened from a disk (theme/search/from-disk.js).

    Removes the list of all addresses: without a `site_url` it has none.
    """
    site = pathlib.Path(config.site_dir)
    index = (site / "search/search_index.json").read_text(encoding="utf-8")
    (site / "search/search_index.js").write_text(f"takeSearchIndex({index})\n", encoding="utf-8")
    for name in ("sitemap.xml", "sitemap.xml.gz"):
        (site / name).unlink()
