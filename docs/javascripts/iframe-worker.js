// Search in a site that is read from a folder: no browser starts a worker from a file, so that a
// hidden frame stands in for it. The theme would fetch the same from elsewhere.
class FrameWorker extends EventTarget {
  constructor(address) {
    super();
    const frame = document.body.appendChild(document.createElement("iframe"));
    frame.hidden = true;
    this.inside = frame.contentWindow;
    this.inside.document.write(`<script src="${address}"></script>`);
    this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
    this.started = new Promise((resolve) => (this.inside.onload = resolve));
    this.inside.document.close();
  }
  postMessage(data) {
    this.started.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
  }
}
if (location.protocol === "file:") window.Worker = FrameWorker;
