// Connects the parts of the page.
import { fetchOffer, leastOffer } from "./api.js";
import { showLink } from "./dialogs.js";
import { byId } from "./dom.js";
import { Editor } from "./editor.js";
import { examples } from "./examples.js";
import { filesError, mainPath, type File } from "./files.js";
import { FileTabs } from "./filetabs.js";
import { marksOf } from "./marks.js";
import { hideNotice, notify, say } from "./notice.js";
import { Output } from "./output.js";
import { Runner } from "./runner.js";
import { Settings } from "./settings.js";
import { decode, encode, LinkError, longLink } from "./share.js";
import { load, save, savePrevious, type Saved } from "./store.js";
import { count } from "./text.js";

/** How long after a change the program is saved, in milliseconds. */
const saveDelay = 300;

/** The page. Embedded in another site's page, it keeps nothing. */
export class App {
  readonly embedded: boolean;
  readonly settings: Settings;
  readonly runner: Runner;
  readonly #editor: Editor;
  readonly #files: FileTabs;
  readonly #output: Output;
  #saving = 0;
  #fresh: boolean; // the program is the first example, and the page was not touched yet

  constructor(embedded: boolean) {
    const saved = embedded ? undefined : load();
    const nonce = document.querySelector<HTMLMetaElement>("meta[name=csp-nonce]")?.content ?? "";
    this.embedded = embedded;
    this.#editor = new Editor(byId("editor"), nonce, { onChange: () => this.#changed(), onRun: () => void this.run() });
    this.#files = new FileTabs(this.#editor);
    this.#output = new Output((path, line, column) => this.#goTo(path, line, column));
    this.runner = new Runner(this.#output, !embedded, () => void this.connect());
    this.settings = new Settings(leastOffer, saved ?? {}, () => this.#chosen());
    this.#load(saved?.files ?? examples[0]?.files ?? [], saved?.path ?? mainPath);
    this.#chosen();
    this.#fresh = saved === undefined && !embedded;
  }

  /** Asks the server what it offers. Without an answer, the page assumes the least. */
  async connect(): Promise<void> {
    byId("token-row").hidden = this.runner.token === "";
    try {
      const offer = await fetchOffer(this.runner.token);
      this.settings.setOffer(offer);
      this.#greet(offer.adapter);
    } catch {
      // A run reports the error.
    }
  }

  /** Shows a new visitor an example of the server's framework. */
  #greet(adapter: string): void {
    const example = examples.find((e) => e.adapter === adapter);
    if (this.#fresh && example !== undefined && example !== examples[0]) {
      this.#load(example.files, mainPath);
    }
    this.#fresh = false;
  }

  /** Loads the files that the page's address has, if any. They are not run. */
  async openLink(): Promise<void> {
    try {
      const files = await decode(location.hash);
      if (files !== undefined && JSON.stringify(files) !== JSON.stringify(this.#editor.files)) {
        this.replace({ files, path: mainPath }, "The program in the link was loaded, and not run.");
      }
    } catch (error) {
      notify(error instanceof LinkError ? error.message : `The link cannot be read: ${String(error)}`);
    }
  }

  /** Loads files for another site, which are not run. */
  show(files: File[]): void {
    this.#load(files, mainPath);
    this.#output.reset();
    this.#changed();
    byId("run").focus();
  }

  /** Replaces the program. The person can restore one of their own. */
  replace(program: Saved, message: string): void {
    const earlier: Saved = { files: this.#editor.files, path: this.#editor.path, ...this.settings.chosen };
    const own = !examples.some((e) => JSON.stringify(e.files) === JSON.stringify(earlier.files));
    const { files, path, ...chosen } = program;
    if (own && !this.embedded) {
      savePrevious(earlier);
    }
    this.#fresh = false;
    this.runner.stop();
    this.#load(files, path);
    this.settings.set(chosen);
    this.#output.reset();
    this.save();
    if (own) {
      notify(`${message} Your earlier program is kept.`, { label: "Restore it", run: () => this.replace(earlier, "Restored.") });
    } else {
      hideNotice();
      say(message);
    }
  }

  /** Focuses the editor. */
  focus(): void {
    this.#editor.focus();
  }

  /** Runs the program. */
  async run(): Promise<void> {
    this.#fresh = false;
    const { files } = this.#editor;
    const paths = new Set(this.#editor.paths);
    this.save();
    this.#editor.mark([]);
    const wrong = filesError(files);
    if (wrong !== undefined) {
      this.#output.abort("failed", wrong);
      say(wrong);
      return;
    }
    const result = await this.runner.run({ files, ...this.settings.request });
    if (result !== undefined) {
      this.#output.finish(result, paths);
      this.#editor.mark(marksOf(result, paths));
      say(`${byId("verdict").textContent}. ${count(result.logs.length, "line")}, ${count(result.errors.length, "error")}.`);
    }
  }

  /** Shows a link to the program. */
  async share(): Promise<void> {
    try {
      const fragment = await encode(this.#editor.files);
      const link = new URL(fragment, location.href.replace(/[?#].*$/s, "")).href;
      history.replaceState(null, "", link);
      showLink(link, link.length > longLink ? "Some programs cut links of this length." : "");
    } catch (error) {
      notify(error instanceof LinkError ? error.message : `The link cannot be made: ${String(error)}`);
    }
  }

  #goTo(path: string, line: number, column: number): void {
    this.#editor.goTo(path, line, column);
    this.#files.render();
  }

  #load(files: readonly File[], path: string): void {
    this.#editor.load(files, path);
    this.#files.render();
  }

  #changed(): void {
    this.#fresh = false;
    if (location.hash !== "") {
      history.replaceState(null, "", location.pathname + location.search); // the link has another program
    }
    this.#saveSoon();
  }

  #chosen(): void {
    this.#output.setPlain(this.settings.chosen.adapter === "none");
    this.#saveSoon();
  }

  #saveSoon(): void {
    clearTimeout(this.#saving);
    this.#saving = window.setTimeout(() => this.save(), saveDelay);
  }

  /** Saves the program now, or updates the embedded page's link to it. */
  save(): void {
    clearTimeout(this.#saving);
    const { files, path } = this.#editor;
    if (!this.embedded) {
      save({ files, path, ...this.settings.wanted });
      return;
    }
    encode(files).then(
      (fragment) => byId("open").setAttribute("href", `./${fragment}`),
      () => byId("open").setAttribute("href", "./"),
    );
  }
}
