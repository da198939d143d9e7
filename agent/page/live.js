// SPDX-License-Identifier: Apache-2.0
"use strict";
// Follows the events, fills in what changes, says how old it is.
(() => {
  const SILENT = 5000, AGAIN = 2000; // ms
  const find = (id) => document.getElementById(id);
  const waiting = new Map(); // contents that wait: their text is selected
  let stream, groups, retry, heard = Date.now(), connected = true, moved = "", over = "";

  const show = () => {
    const age = Date.now() - heard;
    const lost = !over && (!connected || age > SILENT);
    const text = over || (lost ? `Not connected; last news ${Math.round(age / 1000)} s ago; asks again` : moved || "Live");
    const news = find("news");
    news.dataset.state = over ? "over" : lost ? "lost" : "live";
    if (news.textContent !== text) news.textContent = text;
  };

  const addButtons = (place) => {
    if (!navigator.clipboard) return;
    for (const line of place.querySelectorAll(".command")) {
      const button = document.createElement("button");
      button.textContent = "Copy";
      button.onclick = async () => {
        await navigator.clipboard.writeText(line.querySelector("code").textContent);
        button.textContent = "Copied";
      };
      line.append(button);
    }
  };

  // Keeps what was opened, scrolled, focused.
  const fill = (id, html) => {
    const place = find(id), chosen = getSelection();
    if (!place) return;
    if (!chosen.isCollapsed && chosen.containsNode(place, true)) return void waiting.set(id, html);
    waiting.delete(id);
    const groups = () => [...place.querySelectorAll("details")];
    const open = groups().map((group) => [group.id, group.open]);
    const scrolls = [...place.querySelectorAll(".scroll")].map((box) => [box.scrollLeft, box.scrollTop]);
    const stops = () => [...place.querySelectorAll("summary, button, a, [tabindex]")];
    const stop = stops().indexOf(document.activeElement), name = document.activeElement.id;
    place.innerHTML = html;
    open.forEach(([group, isOpen], at) => {
      const now = group ? find(group) : groups()[at];
      if (now) now.open = isOpen;
    });
    place.querySelectorAll(".scroll").forEach((box, at) => box.scrollTo(...(scrolls[at] ?? [0, 0])));
    addButtons(place);
    if (stop >= 0) ((name && find(name)) || stops()[stop])?.focus({ preventScroll: true });
  };

  const fillCells = (rows) => {
    for (const [id, cells] of Object.entries(rows)) {
      const row = find(id)?.children;
      for (let at = 0; row && at < cells.length; at += 2) {
        const cell = row[cells[at]], text = cells[at + 1];
        (cell.firstChild ?? cell.appendChild(new Text())).data = text;
        if (cells[at] === 1) cell.dataset.state = text;
      }
    }
  };

  const opened = () => {
    const all = [...document.querySelectorAll("details.node")], open = all.filter((group) => group.open);
    return open.length === all.length || open.length > 200 ? "all" : open.map((group) => group.id).join(",");
  };

  const connect = () => {
    clearTimeout(retry);
    stream?.close();
    if (over || document.hidden) return;
    groups = opened();
    stream = new EventSource(`events?open=${groups}&outline=${find("ranks")?.dataset.outline ?? ""}`);
    const on = (name, act) => stream.addEventListener(name, (event) => {
      heard = Date.now();
      connected = true;
      act(JSON.parse(event.data));
      show();
    });
    on("title", (text) => (document.title = text));
    on("section", ({ id, html }) => fill(id, html));
    on("cells", fillCells);
    on("tick", () => { for (const [id, html] of waiting) fill(id, html); });
    on("moved", (text) => (moved = text));
    on("ended", (text) => { over = text; stream.close(); });
    stream.onerror = () => {
      connected = false;
      show();
      if (stream.readyState === EventSource.CLOSED) retry = setTimeout(connect, AGAIN);
    };
  };

  let soon;
  addEventListener("toggle", () => {
    clearTimeout(soon);
    soon = setTimeout(() => { if (opened() !== groups) connect(); }, 50);
  }, true);
  document.addEventListener("visibilitychange", connect);
  setInterval(show, 1000);
  addButtons(document);
  connect();
})();
