// The contents of panels that show a result at once.
import { element } from "./dom.js";
import type { Denial, Usage } from "./api.js";
import { bytes, cut, duration } from "./text.js";
import { linkedNodes, textNodes, type GoTo } from "./textview.js";
import { tree } from "./tree.js";

const maxErrors = 200;
const maxError = 20_000;
const maxDenials = 200;

/** Shows errors. Positions in files move the cursor there. */
export function errorsList(errors: readonly string[], paths: ReadonlySet<string>, goTo: GoTo): HTMLElement {
  const items = errors.slice(0, maxErrors).map((e) => element("li", {}, ...linkedNodes(cut(e, maxError), paths, goTo)));
  const list = element("ul", { class: "errors" }, ...items);
  if (errors.length > maxErrors) {
    list.append(element("li", { class: "dim" }, `${errors.length - maxErrors} more errors`));
  }
  return list;
}

/** Shows an object of state. */
export function statePanel(state: Record<string, unknown>, none: string): HTMLElement {
  return Object.keys(state).length > 0 ? tree(state) : element("p", { class: "dim" }, none);
}

/** Shows what permissions denied. */
export function denialsPanel(denials: readonly Denial[], none: string): HTMLElement {
  if (denials.length === 0) {
    return element("p", { class: "dim" }, none);
  }
  const items = denials.slice(0, maxDenials).map((d) =>
    element(
      "li",
      {},
      element("strong", {}, ...textNodes(`${d.scope} ${d.operation}`)),
      " ",
      element("code", {}, ...textNodes(cut(d.target, 512))),
      element("span", { class: "dim" }, ` denied by ${d.rule}${d.count > 1 ? `, ${d.count.toLocaleString("en")} times` : ""}`),
    ),
  );
  return element("ul", { class: "denials" }, ...items);
}

/** Shows what a run used. */
export function usagePanel(usage: Usage, ms: number): HTMLElement {
  const rows: [string, string][] = [
    ["Wall-clock time", duration(ms)],
    ["Processor time", duration(usage.cpuMs)],
    ["Peak memory", bytes(usage.peakMemoryBytes)],
    ["Threads and processes at once", usage.pids === 0 ? "unknown" : String(usage.pids)],
  ];
  const net = usage.network;
  if (net !== undefined) {
    rows.push(
      ["Connections", String(net.connections)],
      ["Name look-ups", String(net.lookups)],
      ["Connections and look-ups denied", String(net.denied)],
      ["Received", bytes(net.bytesIn)],
      ["Sent", bytes(net.bytesOut)],
    );
  }
  return element("dl", { class: "usage" }, ...rows.map(([k, v]) => element("div", {}, element("dt", {}, k), element("dd", {}, v))));
}
