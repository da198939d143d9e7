// SPDX-License-Identifier: Apache-2.0
// The search of a page that was opened from a disk. A browser lets such a page neither read a file nor start a worker.
// So the index comes as a script, and the worker of the theme runs in a frame.
if (location.protocol === "file:") {
  const folder = new URL(".", document.currentScript.src);

  const index = new Promise((resolve) => {
    window.takeSearchIndex = resolve;
    const script = document.createElement("script");
    script.src = new URL("search_index.js", folder);
    // The theme loses an index that comes before its own script has ended.
    addEventListener("load", () => document.head.append(script));
  });
  window.__search = { index }; // the theme asks for it here

  window.Worker = class extends EventTarget {
    constructor(source) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inside = frame.contentWindow;
      this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.ready = new Promise((resolve) => {
        const script = frame.contentDocument.createElement("script");
        script.src = new URL(source, location);
        script.onload = resolve;
        frame.contentDocument.head.append(script);
      });
    }

    async postMessage(data) {
      await this.ready;
      this.inside.dispatchEvent(new MessageEvent("message", { data }));
    }
  };
}
