// Search in a site that is read from a folder: no browser starts a worker from a file, so that a
// hidden frame stands in for it. The theme would fetch the same from elsewhere.
class FrameWorker extends EventTarget {
  constructor(address) {
    super();
    const frame = document.createElement("iframe");
    frame.hidden = true;
    document.body.append(frame);
    this.inside = frame.contentWindow;
    addEventListener("message", (event) => {
      if (event.source !== this.inside) return;
      event.stopImmediatePropagation();
      this.dispatchEvent(new MessageEvent("message", { data: event.data }));
    });
    const answer = "postMessage = (data) => parent.postMessage(data, '*')";
    this.inside.document.write(
      `<script>${answer}</script><script src="${address}"></script>`,
    );
    this.started = new Promise((resolve) => (this.inside.onload = resolve));
    this.inside.document.close();
  }

  postMessage(data) {
    const event = () => new MessageEvent("message", { data });
    this.started.then(() => this.inside.dispatchEvent(event()));
  }
}
if (location.protocol === "file:") window.Worker = FrameWorker;
