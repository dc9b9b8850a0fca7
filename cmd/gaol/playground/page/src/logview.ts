// Shows output as it arrives.
import { element } from "./dom.js";
import type { Line, LogBuffer } from "./logs.js";
import { count } from "./text.js";
import { textNodes } from "./textview.js";

/** Shows the last lines of a buffer. */
export class LogView {
  readonly root: HTMLElement;
  readonly #list = element("ol", { class: "lines" });
  readonly #earlier = element("p", { class: "dim", hidden: "" });
  readonly #buffer: LogBuffer;
  readonly #max: number;
  #shown = 0; // lines of the buffer that were rendered

  constructor(buffer: LogBuffer, max: number) {
    this.#buffer = buffer;
    this.#max = max;
    this.root = element("div", { class: "log" }, this.#earlier, this.#list);
  }

  /** Renders new lines. */
  update(): void {
    const { total, lines } = this.#buffer;
    if (total < this.#shown || total - this.#shown >= this.#max) {
      this.#list.replaceChildren();
      this.#shown = total - Math.min(this.#max, lines.length);
    }
    const atEnd = isAtEnd(this.root);
    const fresh = lines.slice(lines.length - Math.min(lines.length, total - this.#shown));
    this.#list.append(...fresh.map(item));
    this.#shown = total;
    while (this.#list.childElementCount > Math.min(this.#max, lines.length)) {
      this.#list.firstElementChild?.remove();
    }
    this.#showEarlier(total - this.#list.childElementCount);
    if (atEnd && fresh.length > 0) {
      scrollToEnd(this.root);
    }
  }

  #showEarlier(n: number): void {
    this.#earlier.hidden = n === 0;
    this.#earlier.textContent = n === 0 ? "" : `${count(n, "earlier line")} not shown`;
  }
}

function item(line: Line): HTMLElement {
  const made = element("li", { class: line.level });
  if (line.level !== "log") {
    made.append(element("span", { class: "level" }, line.level), " ");
  }
  made.append(...textNodes(line.text));
  return made;
}

// On phones the page scrolls, elsewhere the panel. After scrolling back, the position is kept.
function isAtEnd(root: HTMLElement): boolean {
  const panel = root.closest(".panel");
  return panel !== null && panel.scrollHeight - panel.scrollTop - panel.clientHeight < 40;
}

function scrollToEnd(root: HTMLElement): void {
  const panel = root.closest(".panel");
  panel?.scrollTo({ top: panel.scrollHeight });
}
