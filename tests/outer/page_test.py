# SPDX-License-Identifier: Apache-2.0
"""The live page and the report in a real browser: they fit, they can be read and used by anybody, and the live page
follows its stream."""

import json
import os
import re
import shutil

from muster_case import DEADLINE, main
from page_case import PICTURES, PageCase, Served, sample

from report_test import record, report

NEWS = 'document.getElementById("news").textContent'


class Live(PageCase):
    def serve(self, nodes=4, slots=4, tick=20):
        self.size = (nodes, slots)
        served = Served(sample("page", nodes, slots, tick))
        self.addCleanup(served.close)
        return served

    def events(self, before, tick, query="open=all"):
        return sample("events", *self.size, before, tick, query)

    def open(self, served):
        self.browser.open(served.url)
        return served.next_stream()

    def test_it_looks_well(self):
        self.open(self.serve())
        self.check_looks("live")

    def test_a_large_run_looks_well(self):
        served = self.serve(128, 8)
        self.browser.show_as(1440)
        stream = self.open(served)
        self.assertEqual(stream.request.get("open"), None)  # the groups are closed
        paint = self.browser.run('performance.getEntriesByName("first-contentful-paint")[0].startTime')
        print(f"1,024 ranks: first paint after {paint:.0f} ms")
        self.cost_of_updates(stream, "")
        self.browser.run('document.querySelectorAll("details.node").forEach((group) => { group.open = true; })')
        stream = served.next_stream()
        self.assertEqual(stream.query.partition("&")[0], "open=all")
        self.cost_of_updates(stream, "open=all")
        self.browser.run('document.querySelectorAll("details.node").forEach((group) => { group.open = false; })')
        self.check_looks("live-1024")

    def cost_of_updates(self, stream, query):
        """Prints what the browser's main thread does for one update, on average."""
        updates = [self.events(tick - 1, tick, query) for tick in range(21, 31)]
        stream.send(self.events(-1, 20, query))
        before = self.browser.metrics()
        for tick, update in enumerate(updates):
            stream.send(update)
            self.browser.wait_for(
                f'document.querySelector(".tiles dd").textContent.startsWith("{1240 + 3 * (tick + 21)}")'
            )
        after = self.browser.metrics()
        parts = {
            name: (after[name] - before[name]) * 100 for name in ("TaskDuration", "ScriptDuration", "LayoutDuration")
        }
        sizes = sum(map(len, updates)) / len(updates)
        print(f"1,024 ranks, {query or 'closed'}: an update has {sizes:.0f} bytes; milliseconds: {parts}")

    def test_it_follows_and_keeps_what_the_reader_did(self):
        served = self.serve()
        stream = self.open(served)
        self.browser.run("""{
            const group = document.querySelectorAll("details.node")[1];
            group.open = false;
            document.querySelector("#curve details").open = true;
            const box = document.querySelector("#nodes .scroll");
            box.style = "height: 120px";
            box.scrollTop = 40;
            document.querySelectorAll("#curve summary")[0].focus();
            window.kept = document.getElementById("sentence");
        }""")
        stream.end()
        stream = served.next_stream()
        self.assertEqual(stream.query.count("g-"), 3)
        stream.send(self.events(-1, 21, stream.query))
        stream.send(self.events(21, 22, stream.query))
        self.browser.wait_for('document.querySelector("#r1").children[5].textContent.startsWith("1307")')
        self.assertEqual(self.browser.run(NEWS), "Live")
        state = self.browser.run("""[document.querySelector("#curve details").open,
            document.querySelectorAll("details.node")[1].open, document.querySelector("#nodes .scroll").scrollTop,
            document.activeElement.textContent, document.getElementById("sentence") === window.kept]""")
        self.assertEqual(state, [True, False, 40, "As a table", True])

    def test_text_that_is_selected_stays(self):
        served = self.serve()
        stream = self.open(served)
        self.browser.run('getSelection().selectAllChildren(document.querySelector("#figures dd"))')
        stream.send(self.events(20, 21))
        self.browser.wait_for('document.querySelector("#r0").children[5].textContent.startsWith("1303")')
        self.assertTrue(self.browser.run('document.querySelector("#figures dd").textContent.startsWith("1300")'))
        self.browser.run("getSelection().removeAllRanges()")
        stream.send(self.events(22, 22))
        self.browser.wait_for('document.querySelector("#figures dd").textContent.startsWith("1303")')

    def test_a_stream_that_ends_is_said(self):
        served = self.serve()
        stream = self.open(served)
        stream.send(self.events(20, 21))
        self.browser.wait_for(f'{NEWS} === "Live"')
        served.refuse = True
        stream.end()
        self.browser.wait_for(f"/^Not connected; last news \\d+ s ago; asks again$/.test({NEWS})")
        served.refuse = False
        stream = served.next_stream()
        stream.send(self.events(-1, 22))
        self.browser.wait_for(f'{NEWS} === "Live"')

    def test_the_title_of_the_tab_follows(self):
        """Also without scripts it is right when the page is loaded. It is a text, whatever the name of a job is."""
        stream = self.open(self.serve(tick=20))
        self.assertEqual(self.browser.run("document.title"), "Training 26 % - TrainJob digits")
        stream.send(self.events(20, 200))
        self.browser.wait_for('document.title === "Training 36 % - TrainJob digits"')
        hostile = "Training 37 % - </title><script>window.hit = 1</script> - x"
        stream.send(f"event: title\ndata: {json.dumps(hostile)}\n\n")
        self.browser.wait_for(f"document.title === {json.dumps(hostile)}")
        self.assertTrue(self.browser.run("!window.hit"))

    def test_a_move_and_the_end_are_said(self):
        served = self.serve()
        stream = self.open(served)
        stream.send('event: moved\ndata: "The coordinator is on node-1 now"\n\n')
        self.browser.wait_for(f'{NEWS} === "The coordinator is on node-1 now"')
        stream.send('event: ended\ndata: "The run has ended: succeeded"\n\n')
        self.browser.wait_for(f'{NEWS} === "The run has ended: succeeded"')
        stream.end()
        self.assertEqual(self.browser.run('document.getElementById("news").dataset.state'), "over")
        self.assertTrue(served.streams.empty())

    def test_no_other_script_runs(self):
        self.open(self.serve())
        said = self.browser.run("""new Promise((done) => {
            document.addEventListener("securitypolicyviolation", (event) =>
                done([event.effectiveDirective, !window.hit]));
            const script = document.createElement("script");
            script.textContent = "window.hit = 1";
            document.body.append(script);
        })""")
        self.assertEqual(said, ["script-src-elem", True])

    def test_without_scripts_it_is_complete_and_comes_again(self):
        served = self.serve()
        self.browser.call("Emulation.setScriptExecutionDisabled", value=True)
        self.browser.open(served.url)
        served.pages.get(timeout=DEADLINE)
        self.assertTrue(served.streams.empty())
        self.browser.await_event("Page.loadEventFired")  # it has asked again
        text = self.browser.run("document.body.textContent")
        for part in ("Training: 16 workers", "Rank 6 is slower", "Where the time went", "step 1300 loss", "Asks again"):
            self.assertIn(part, text)

    def test_by_the_keyboard(self):
        self.open(self.serve(32, 4))
        stops = []
        focused = "document.activeElement.textContent.trim().slice(0, 40) || document.activeElement.tagName"
        for _ in range(12):
            self.browser.press("Tab")
            stops.append(self.browser.run(focused))
        self.assertEqual(stops[0], "Skip to the content")
        self.browser.run('document.querySelector("details.node summary").focus()')
        self.browser.press("Enter")
        self.assertTrue(self.browser.run('document.querySelector("details.node").open'))
        self.browser.press("Tab")
        self.assertTrue(self.browser.run("document.activeElement.matches('details.node summary')"))


class Report(PageCase):
    def put_run(self, nodes, workers, attempts):
        logs = os.path.join(self.dir, "logs")
        for node in range(nodes):
            for attempt in range(attempts):
                facts = record(node, attempt, nodes, workers, **self.training(node, workers, attempt))
                folder = os.path.join(logs, f"node-{node}", "by-hand", f"attempt_{attempt}")
                os.makedirs(folder)
                with open(os.path.join(folder, "attempt.json"), "w") as file:
                    json.dump(facts, file)
        page = os.path.join(logs, "report.html")
        self.assertEqual(report(logs).returncode, 0)
        return page

    @staticmethod
    def training(node, workers, attempt):
        first = node * workers
        return {
            "training": [
                {
                    "local_rank": rank,
                    "unit": "steps",
                    "position": 400 * (attempt + 1),
                    "end": 2000,
                    "step_seconds": 0.45 if first + rank == 5 else 0.3 + (first + rank) % 7 / 500,
                    "loss": 0.7,
                }
                for rank in range(workers)
            ],
            "curve": [[400 * attempt + 2 * at, 2.3 / (1 + (400 * attempt + 2 * at) / 200)] for at in range(200)],
            "seconds": {"waiting": 3, "start": 12, "training": 140, "redone": 9, "hang": 0, "restart": 20.5},
        }

    def test_it_looks_well(self):
        page = self.put_run(2, 4, 3)
        self.browser.open("file://" + page)
        self.check_looks("report")

    def test_a_large_run_looks_well_and_is_small(self):
        page = self.put_run(64, 8, 4)
        self.assertLess(os.path.getsize(page), 300_000)
        self.browser.open("file://" + page)
        self.check_looks("report-512")

    def test_its_links_lead_to_the_logs(self):
        page = self.put_run(1, 2, 1)
        self.browser.open("file://" + page)
        links = self.browser.run('[...document.querySelectorAll("details a")].map((link) => link.href)')
        folder = os.path.join(os.path.dirname(page), "node-0/by-hand/attempt_0")
        self.assertEqual(links, [f"file://{folder}/0", f"file://{folder}"])

    def test_it_is_printed_on_two_sheets(self):
        for size in ((2, 4, 3), (8, 8, 4)):
            with self.subTest(size=size):
                page = self.put_run(*size)
                self.browser.open("file://" + page)
                pdf = self.browser.printed()
                if PICTURES:
                    with open(f"{PICTURES}/report-{size[0]}.pdf", "wb") as file:
                        file.write(pdf)
                self.assertIn(len(re.findall(rb"/Type\s*/Page\b", pdf)), (1, 2))
                shutil.rmtree(os.path.dirname(page))


if __name__ == "__main__":
    main()
