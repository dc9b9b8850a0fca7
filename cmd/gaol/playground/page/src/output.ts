// The output pane: what a run did, in panels.
import { byId, element } from "./dom.js";
import type { Result } from "./api.js";
import { LogBuffer } from "./logs.js";
import { LogView } from "./logview.js";
import { copyButton } from "./copy.js";
import { paced } from "./pace.js";
import { denialsPanel, errorsList, statePanel, usagePanel } from "./panels.js";
import { Tabs } from "./tabs.js";
import { bytes, count, duration } from "./text.js";
import type { GoTo } from "./textview.js";

export type State = "idle" | "running" | "works" | "fails" | "timeout" | "stopped" | "failed";

type Panel = "result" | "logs" | "facts" | "derived" | "errors" | "denials" | "usage";

const titles: Record<State, string> = {
  idle: "Ready",
  running: "Running",
  works: "Works",
  fails: "Fails",
  timeout: "Timed out",
  stopped: "Stopped",
  failed: "Did not run",
};

/** The output pane. */
export class Output {
  readonly #tabs: Tabs;
  readonly #buffer = new LogBuffer();
  readonly #all = new LogView(this.#buffer, 2000);
  readonly #last = new LogView(this.#buffer, 200);
  readonly #verdict = element("p", { class: "verdict", id: "verdict" });
  readonly #detail = element("p", { class: "detail", id: "verdict-detail" });
  readonly #details = element("div", { class: "sections" });
  readonly #output = element(
    "section",
    {},
    element("div", { class: "heading" }, element("h2", {}, "Output"), copyButton("Copy the output", () => this.#text())),
    this.#last.root,
  );
  readonly #goTo: GoTo;
  readonly #refreshSoon = paced(() => this.#refresh());
  #clock = 0;

  constructor(goTo: GoTo) {
    this.#goTo = goTo;
    this.#tabs = new Tabs(byId("panels"), (tab) => this.#show(tab.id.slice("tab-".length) as Panel));
    byId("panel-result").append(element("div", { class: "head" }, this.#verdict, this.#detail), this.#details, this.#output);
    byId("panel-logs").append(this.#all.root);
    this.#show("result");
    this.reset();
  }

  /** Clears everything. */
  reset(): void {
    this.#clear();
    this.#say("idle", "Run executes src/main.ts in a sandbox of its own. The kernel keeps it from everything else.");
    this.#fill({ facts: {}, derived: {} }, new Set(), "Nothing has run yet.");
  }

  /** Shows that a program is running. */
  start(): void {
    this.#clear();
    const began = performance.now();
    const tick = (): void => this.#say("running", duration(Math.floor((performance.now() - began) / 100) * 100 || 1));
    tick();
    this.#clock = window.setInterval(tick, 100);
    this.#fill({ facts: {}, derived: {} }, new Set(), "The program is running.");
  }

  /** Stops the clock while the person is asked for something. start begins again. */
  pause(why: string): void {
    clearInterval(this.#clock);
    this.#say("running", why);
  }

  /** Adds a line of output. */
  line(line: string): void {
    this.#buffer.push(line);
    this.#refreshSoon();
  }

  /** Shows a result. */
  finish(result: Result, paths: ReadonlySet<string>): State {
    if (this.#buffer.total < result.logs.length) {
      this.#buffer.clear();
      result.logs.forEach((line) => this.#buffer.push(line));
    }
    const state = result.timedOut ? "timeout" : result.errors.length > 0 ? "fails" : "works";
    this.#end(state, [
      duration(result.durationMs),
      ...(this.#buffer.total > 0 ? [count(this.#buffer.total, "line")] : []),
      ...(result.errors.length > 0 ? [count(result.errors.length, "error")] : []),
      ...(result.denials.length > 0 ? [`${result.denials.length} denied`] : []),
      ...(result.usage === undefined ? [] : [`${bytes(result.usage.peakMemoryBytes)} of memory`]),
    ].join(" · "));
    this.#fill(result, paths, "");
    return state;
  }

  /** Shows that a run was stopped, or could not be made. Its output so far stays. */
  abort(state: "stopped" | "failed", why: string): void {
    this.#end(state, why);
    this.#fill({ facts: {}, derived: {} }, new Set(), state === "stopped" ? "The program was stopped before it reported this." : "There is no result.");
  }

  /** Names the panels for a mode. */
  setPlain(plain: boolean): void {
    byId("tab-facts").textContent = plain ? "Exports" : "Facts";
    byId("tab-derived").hidden = plain;
  }

  #text(): string {
    return this.#buffer.lines.map((line) => line.text + "\n").join("");
  }

  #clear(): void {
    clearInterval(this.#clock);
    this.#buffer.clear();
    this.#refresh();
  }

  #end(state: State, detail: string): void {
    clearInterval(this.#clock);
    this.#say(state, detail);
    this.#refresh();
  }

  #say(state: State, detail: string): void {
    this.#verdict.dataset["state"] = state;
    this.#verdict.textContent = titles[state];
    this.#detail.textContent = detail;
  }

  #refresh(): void {
    this.#all.update();
    this.#last.update();
    this.#output.hidden = this.#buffer.total === 0;
    badge("logs", this.#buffer.total);
  }

  #fill(r: Partial<Result> & Pick<Result, "facts" | "derived">, paths: ReadonlySet<string>, none: string): void {
    const errors = r.errors ?? [];
    const list = (): HTMLElement => errorsList(errors, paths, this.#goTo);
    byId("panel-facts").replaceChildren(statePanel(r.facts, none || "The program has no state to show."));
    byId("panel-derived").replaceChildren(statePanel(r.derived, none || "The program derives nothing."));
    byId("panel-errors").replaceChildren(errors.length > 0 ? list() : note(none || "No errors."));
    byId("panel-denials").replaceChildren(denialsPanel(r.denials ?? [], none || "Nothing was denied."));
    byId("panel-usage").replaceChildren(r.usage === undefined ? note(none || "The server reports no usage.") : usagePanel(r.usage, r.durationMs ?? 0));
    badge("errors", errors.length);
    badge("denials", r.denials?.length ?? 0);
    this.#details.replaceChildren(...(errors.length > 0 ? [section("Errors", list())] : []), ...this.#states(r));
  }

  #states(r: Pick<Result, "facts" | "derived">): HTMLElement[] {
    const title = byId("tab-facts").firstChild?.textContent ?? "Facts";
    return [
      ...(Object.keys(r.facts).length > 0 ? [section(title, statePanel(r.facts, ""))] : []),
      ...(Object.keys(r.derived).length > 0 ? [section("Derived", statePanel(r.derived, ""))] : []),
    ];
  }

  #show(panel: Panel): void {
    this.#tabs.mark(byId(`tab-${panel}`));
    for (const other of document.querySelectorAll<HTMLElement>(".panel")) {
      other.hidden = other.id !== `panel-${panel}`;
    }
  }
}

function badge(panel: Panel, n: number): void {
  const tab = byId(`tab-${panel}`);
  tab.querySelector(".badge")?.remove();
  if (n > 0) {
    tab.append(" ", element("span", { class: "badge" }, n > 9999 ? "9999+" : String(n)));
  }
}

function section(title: string, ...content: Node[]): HTMLElement {
  return element("section", {}, element("h2", {}, title), ...content);
}

function note(text: string): HTMLElement {
  return element("p", { class: "dim" }, text);
}

