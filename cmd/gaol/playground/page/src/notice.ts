// Messages: a bar with one message and at most one action, and text for screen readers only.
import { byId } from "./dom.js";

/** Shows a message. */
export function notify(text: string, action?: { label: string; run: () => void }): void {
  const control = byId("notice-action");
  byId("notice").hidden = false;
  byId("notice-text").textContent = text;
  control.hidden = action === undefined;
  control.textContent = action?.label ?? "";
  control.onclick = () => {
    hideNotice();
    action?.run();
  };
  byId("notice-close").onclick = hideNotice;
}

/** Hides the message. */
export function hideNotice(): void {
  byId("notice").hidden = true;
  byId("notice-text").textContent = "";
}

/** Says something to screen readers, once. */
export function say(text: string): void {
  byId("status").textContent = text;
}
