// Shows a JSON value as a tree that opens lazily.
import { button, element } from "./dom.js";
import { count, cut } from "./text.js";
import { textNodes } from "./textview.js";

/** How many members are shown at once. */
const page = 100;
const maxText = 10_000;

/** Returns a list of the members of an object or array. */
export function tree(value: object): HTMLElement {
  const list = element("ul", { class: "tree" });
  const members = membersOf(value);
  let shown = 0;
  const more = button("", () => showMore(), "quiet");
  const showMore = (): void => {
    more.remove();
    list.append(...members.slice(shown, shown + page).map(([key, v]) => element("li", {}, ...member(key, v))));
    shown += page;
    if (shown < members.length) {
      more.textContent = `Show ${count(Math.min(page, members.length - shown), "more member")} of ${members.length.toLocaleString("en")}`;
      list.append(element("li", {}, more));
    }
  };
  showMore();
  return list;
}

function membersOf(value: object): [string, unknown][] {
  return Array.isArray(value) ? value.map((v, i) => [String(i), v]) : Object.entries(value);
}

function member(key: string, value: unknown): Node[] {
  const name = element("span", { class: "key" }, ...textNodes(cut(key, maxText)));
  if (typeof value !== "object" || value === null || membersOf(value).length === 0) {
    return [name, document.createTextNode(": "), leaf(value)];
  }
  const size = membersOf(value).length;
  const summary = element("summary", {}, name, ": ", element("span", { class: "dim" }, Array.isArray(value) ? `[${size}]` : `{${size}}`));
  const details = element("details", {}, summary);
  details.addEventListener("toggle", () => details.append(tree(value)), { once: true });
  details.open = size <= 20 && isFlat(value);
  return [details];
}

function isFlat(value: object): boolean {
  return Object.values(value).every((v) => typeof v !== "object" || v === null);
}

function leaf(value: unknown): HTMLElement {
  const kind = value === null ? "null" : typeof value === "object" ? "empty" : typeof value;
  return element("span", { class: `value ${kind}` }, ...textNodes(cut(JSON.stringify(value), maxText)));
}
