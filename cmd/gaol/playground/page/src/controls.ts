// Connects the page's buttons and menus.
import type { App } from "./app.js";
import { connectDialogs } from "./dialogs.js";
import { button, byId, element } from "./dom.js";
import { examples, type Example } from "./examples.js";
import { connectMenu } from "./menu.js";
import { loadPrevious } from "./store.js";
import { themeSwitch } from "./theme.js";

/** Makes all controls work. theme is that of a page in a frame, or "". */
export function connectControls(app: App, theme: string): void {
  byId("run").addEventListener("click", () => void app.run());
  byId("share").addEventListener("click", () => void app.share());
  byId("skip").addEventListener("click", (event) => {
    event.preventDefault();
    app.focus();
  });
  byId("token-forget").addEventListener("click", () => {
    app.runner.token = "";
    byId("settings-menu").hidePopover();
    void app.connect();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !event.defaultPrevented && document.querySelector("dialog[open]") === null) {
      event.preventDefault();
      void app.run();
    }
  });
  byId("examples-menu").addEventListener("beforetoggle", (event) => {
    if ((event as ToggleEvent).newState === "open") { // on closing, the focus is still in the list
      listExamples(app);
    }
  });
  connectMenu(byId("examples"), byId("examples-menu"));
  connectMenu(byId("settings"), byId("settings-menu"));
  connectDialogs();
  themeSwitch(byId("theme"), theme);
  byId("run-key").textContent = navigator.platform.startsWith("Mac") ? "⌘ ↵" : "Ctrl ↵";
  for (const id of ["examples", "settings", "share", "theme"]) {
    byId(id).hidden = app.embedded;
  }
  byId("open").hidden = !app.embedded;
  document.body.classList.toggle("embed", app.embedded);
}

/** Lists the examples that this server can run. */
function listExamples(app: App): void {
  const offered = examples.filter((e) => app.settings.offers(e.adapter, e.permissions));
  const items = offered.map((e) => item(e.title, e.text, () => choose(app, e)));
  const previous = loadPrevious();
  if (previous !== undefined) {
    items.push(item("Your earlier program", "What you had before a link or an example replaced it.", () => choose(app, previous)));
  }
  byId("examples-list").replaceChildren(...items);
}

function item(title: string, text: string, onClick: () => void): HTMLElement {
  const made = button("", onClick, "item");
  made.append(element("strong", {}, title), element("span", { class: "dim" }, text));
  return element("li", {}, made);
}

function choose(app: App, program: Pick<Example, "files"> & Partial<Example>): void {
  const { files, adapter, permissions, timeoutMs } = program;
  byId("examples-menu").hidePopover();
  history.replaceState(null, "", location.pathname + location.search);
  app.replace(
    {
      files,
      path: "src/main.ts",
      ...(adapter === undefined ? {} : { adapter }),
      ...(permissions === undefined ? {} : { permissions }),
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
    },
    `Loaded: ${program.title ?? "your earlier program"}.`,
  );
  app.focus();
}
