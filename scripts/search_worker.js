// Search in a site opened from disk: browsers start no worker from file://, so a hidden frame runs the search script.
(() => {
  if (location.protocol !== "file:") return;
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inside = frame.contentWindow;
      const home = new URL(url, location);
      const load = (script) =>
        new Promise((done, failed) => {
          const element = this.inside.document.createElement("script");
          Object.assign(element, { src: new URL(script, home), onload: done, onerror: failed });
          this.inside.document.head.append(element);
        });
      this.inside.importScripts = (...scripts) =>
        scripts.reduce((before, script) => before.then(() => load(script)), Promise.resolve());
      this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.ready = load(home);
    }

    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.inside.frameElement.remove();
    }
  };
})();
