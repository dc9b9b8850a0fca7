// The editor: one CodeMirror view, and a state for each file.
import { setDiagnostics, type Diagnostic } from "@codemirror/lint";
import { EditorState, type Text, type TransactionSpec } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { extensions } from "./codemirror.js";
import { mainPath, type File } from "./files.js";

/** An error at a position of a file. Lines and columns start at 1. */
export interface Mark {
  path: string;
  line: number;
  column: number;
  message: string;
}

/** What the editor calls. */
export interface EditorEvents {
  onChange: () => void;
  onRun: () => void;
}

/** The files of a program, in an editor that shows one of them. */
export class Editor {
  readonly #view: EditorView;
  readonly #events: EditorEvents;
  readonly #nonce: string;
  #states = new Map<string, EditorState>(); // in the order of the tabs; of the shown file it is stale
  #path = mainPath;

  constructor(parent: HTMLElement, nonce: string, events: EditorEvents) {
    this.#nonce = nonce;
    this.#events = events;
    this.#view = new EditorView({ parent, state: this.#state(mainPath, "") });
    this.#states.set(mainPath, this.#view.state);
  }

  /** The path of the shown file. */
  get path(): string {
    return this.#path;
  }

  get paths(): string[] {
    return [...this.#states.keys()];
  }

  get files(): File[] {
    return this.paths.map((path) => ({ path, source: this.#current(path).doc.toString() }));
  }

  /** Replaces all files. */
  load(files: readonly File[], path: string): void {
    this.#states = new Map(files.map((f) => [f.path, this.#state(f.path, f.source)]));
    this.#path = this.#states.has(path) ? path : mainPath;
    this.#view.setState(this.#current(this.#path, true));
  }

  show(path: string): void {
    if (path !== this.#path && this.#states.has(path)) {
      this.#states.set(this.#path, this.#view.state);
      this.#path = path;
      this.#view.setState(this.#current(path, true));
    }
  }

  /** Adds a file, at an index among the others. */
  add(file: File, index = this.#states.size): void {
    const entries = [...this.#states];
    entries.splice(index, 0, [file.path, this.#state(file.path, file.source)]);
    this.#states = new Map(entries);
    this.show(file.path);
    this.#events.onChange();
  }

  rename(from: string, to: string): void {
    const source = this.#current(from).doc.toString();
    const index = this.paths.indexOf(from);
    this.remove(from);
    this.add({ path: to, source }, index);
  }

  /** Removes a file that is not src/main.ts. Its neighbour is shown instead. */
  remove(path: string): void {
    const index = this.paths.indexOf(path);
    this.show(this.paths[path === this.#path ? index - 1 || 0 : this.paths.indexOf(this.#path)] ?? mainPath);
    this.#states.delete(path);
    this.#events.onChange();
  }

  /** Replaces the marks of all files. */
  mark(marks: readonly Mark[]): void {
    for (const path of this.paths) {
      const state = this.#current(path);
      const found = marks.filter((m) => m.path === path).map((m) => diagnostic(state.doc, m));
      const spec: TransactionSpec = setDiagnostics(state, found);
      if (path === this.#path) {
        this.#view.dispatch(spec);
      } else {
        this.#states.set(path, state.update(spec).state);
      }
    }
  }

  /** Moves the cursor to a position, and the focus to the editor. */
  goTo(path: string, line: number, column: number): void {
    this.show(path);
    const at = offset(this.#view.state.doc, line, column);
    this.#view.dispatch({ selection: { anchor: at }, effects: EditorView.scrollIntoView(at, { y: "center" }) });
    this.#view.focus();
  }

  focus(): void {
    this.#view.focus();
  }

  #current(path: string, stored = false): EditorState {
    return path === this.#path && !stored ? this.#view.state : (this.#states.get(path) ?? this.#state(path, ""));
  }

  #state(path: string, source: string): EditorState {
    const onChange = EditorView.updateListener.of((update) => {
      if (update.docChanged) {
        this.#events.onChange();
      }
    });
    return EditorState.create({ doc: source, extensions: [...extensions(path, this.#nonce, this.#events.onRun), onChange] });
  }
}

function diagnostic(doc: Text, mark: Mark): Diagnostic {
  const from = offset(doc, mark.line, mark.column);
  const rest = doc.lineAt(from).text.slice(from - doc.lineAt(from).from);
  const word = /^[\w$]+|^./u.exec(rest)?.[0].length ?? 0;
  return { from, to: from + word, severity: "error", message: mark.message };
}

function offset(doc: Text, line: number, column: number): number {
  const { from, to } = doc.line(Math.min(Math.max(line, 1), doc.lines));
  return Math.min(from + Math.max(column, 1) - 1, to);
}
