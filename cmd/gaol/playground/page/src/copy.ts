// Copies text.
import { button } from "./dom.js";
import { say } from "./notice.js";

/** Returns a button that copies a text. */
export function copyButton(label: string, text: () => string): HTMLButtonElement {
  const made = button("Copy", () => void copy(text()), "quiet");
  made.setAttribute("aria-label", label);
  return made;

  async function copy(content: string): Promise<void> {
    try {
      await navigator.clipboard.writeText(content);
      flash("Copied");
    } catch {
      flash("Not allowed by the browser");
    }
  }

  function flash(done: string): void {
    made.textContent = done;
    say(`${done}.`);
    setTimeout(() => (made.textContent = "Copy"), 1500);
  }
}
