// The tabs of the files.
import { byId, element } from "./dom.js";
import { askPath } from "./dialogs.js";
import type { Editor } from "./editor.js";
import { mainPath, maxFiles, pathError } from "./files.js";
import { notify } from "./notice.js";
import { Tabs } from "./tabs.js";

/** Shows the editor's files as tabs. */
export class FileTabs {
  readonly #editor: Editor;
  readonly #tabs: Tabs;

  constructor(editor: Editor) {
    this.#editor = editor;
    this.#tabs = new Tabs(byId("files"), (tab) => this.#select(tab.dataset["path"] ?? mainPath));
    byId("files").addEventListener("keydown", (event) => this.#onKey(event));
    byId("files").addEventListener("dblclick", () => void this.rename());
    byId("file-add").addEventListener("click", () => void this.add());
    byId("file-rename").addEventListener("click", () => void this.rename());
    byId("file-close").addEventListener("click", () => this.close());
  }

  /** Shows the files that the editor has now. */
  render(): void {
    const { paths, path } = this.#editor;
    const tabs = paths.map((p) =>
      element("button", { type: "button", role: "tab", id: `file-${p}`, "aria-controls": "editor", "data-path": p }, p),
    );
    const hadFocus = byId("files").contains(document.activeElement);
    byId("files").replaceChildren(...tabs);
    byId("file-rename").hidden = byId("file-close").hidden = path === mainPath;
    byId("file-add").hidden = paths.length >= maxFiles;
    const selected = tabs[paths.indexOf(path)];
    if (selected !== undefined) {
      this.#tabs.mark(selected);
      byId("editor").setAttribute("aria-labelledby", selected.id);
    }
    if (hadFocus) {
      selected?.focus();
    }
  }

  async add(): Promise<void> {
    if (this.#editor.paths.length >= maxFiles) {
      return;
    }
    const path = await askPath("New file", "Add", freePath(this.#editor.paths), (p) => this.#check(p));
    if (path !== undefined) {
      this.#editor.add({ path, source: "" });
      this.render();
      this.#editor.focus();
    }
  }

  async rename(): Promise<void> {
    const from = this.#editor.path;
    if (from === mainPath) {
      return;
    }
    const to = await askPath(`Rename ${from}`, "Rename", from, (p) => (p === from ? undefined : this.#check(p)));
    if (to !== undefined && to !== from) {
      this.#editor.rename(from, to);
      this.render();
    }
  }

  close(): void {
    const { path, paths, files } = this.#editor;
    const index = paths.indexOf(path);
    const closed = files[index];
    if (path === mainPath || closed === undefined) {
      return;
    }
    this.#editor.remove(path);
    this.render();
    notify(`Closed ${path}.`, {
      label: "Undo",
      run: () => {
        if (this.#check(path) === undefined && this.#editor.paths.length < maxFiles) {
          this.#editor.add(closed, index);
          this.render();
        }
      },
    });
  }

  #select(path: string): void {
    this.#editor.show(path);
    this.render();
  }

  #onKey(event: KeyboardEvent): void {
    if (event.key === "Delete") {
      this.close();
    } else if (event.key === "F2") {
      void this.rename();
    }
  }

  #check(path: string): string | undefined {
    const { paths } = this.#editor;
    return pathError(path) ?? (paths.includes(path) ? "There is a file of this name." : undefined);
  }
}

function freePath(paths: readonly string[]): string {
  for (let n = 1; ; n++) {
    const path = n === 1 ? "src/module.ts" : `src/module${n}.ts`;
    if (!paths.includes(path)) {
      return path;
    }
  }
}
