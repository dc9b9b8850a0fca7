// The playground, at / of gaol serve.
import { App } from "./app.js";
import { connectControls } from "./controls.js";
import { connectFrame, frameOf } from "./frame.js";

const frame = frameOf(new URLSearchParams(location.search));
const app = new App(frame !== undefined);
connectControls(app, frame?.theme ?? "");
if (frame === undefined) {
  window.addEventListener("hashchange", () => void app.openLink());
  window.addEventListener("pagehide", () => app.save());
  await app.openLink();
} else {
  connectFrame(frame, (files) => app.show(files));
}
await app.connect();
document.documentElement.dataset["ready"] = "true";
