// Browsers start no worker from a file. Where the site is opened as one, the search worker's script runs in a hidden
// frame of the page instead, which inherits the page's origin.
(function () {
  if (location.protocol !== "file:") return;

  class IFrameWorker extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.appendChild(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = inside.document.createElement("script");
      script.src = new URL(url, location.href).href;
      script.onload = () => {
        this.send = (data) => inside.dispatchEvent(new inside.MessageEvent("message", { data }));
        this.waiting.splice(0).forEach(this.send);
      };
      script.onerror = () => this.dispatchEvent(new Event("error"));
      inside.document.body.appendChild(script);
    }

    postMessage(data) {
      if (this.send) this.send(data);
      else this.waiting.push(data);
    }

    terminate() {
      this.frame.remove();
    }
  }

  window.IFrameWorker = IFrameWorker;
  window.Worker = IFrameWorker;
})();
