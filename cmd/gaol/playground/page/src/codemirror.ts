// The extensions of CodeMirror that the editor uses.
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { javascript } from "@codemirror/lang-javascript";
import { bracketMatching, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, lintKeymap } from "@codemirror/lint";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { EditorState, Prec, type Extension } from "@codemirror/state";
import {
  drawSelection,
  dropCursor,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  highlightSpecialChars,
  keymap,
  lineNumbers,
} from "@codemirror/view";
import { classHighlighter } from "@lezer/highlight";

/** How long Escape makes Tab leave the editor, in milliseconds. Any other key ends it. */
const tabFocus = 60_000;

/** Returns the extensions for a file. */
export function extensions(path: string, nonce: string, onRun: () => void): Extension[] {
  return [
    EditorView.cspNonce.of(nonce),
    EditorView.contentAttributes.of({ tabindex: "0", "aria-label": `Code of ${path}`, "aria-describedby": "editor-hint" }),
    Prec.highest(keymap.of([{ key: "Mod-Enter", run: () => (onRun(), true) }])),
    editing,
    language(path),
    theme,
  ];
}

const editing: Extension[] = [
  lineNumbers(),
  lintGutter(),
  history(),
  drawSelection(),
  dropCursor(),
  highlightSpecialChars(),
  highlightActiveLine(),
  highlightActiveLineGutter(),
  highlightSelectionMatches(),
  indentOnInput(),
  bracketMatching(),
  closeBrackets(),
  autocompletion({ activateOnTyping: true }),
  search({ top: true }),
  syntaxHighlighting(classHighlighter),
  indentUnit.of("  "),
  EditorState.tabSize.of(2),
  keymap.of([
    ...closeBracketsKeymap,
    ...completionKeymap,
    ...searchKeymap,
    ...lintKeymap,
    ...historyKeymap,
    ...defaultKeymap,
    indentWithTab,
    { key: "Escape", run: (view) => (view.setTabFocusMode(tabFocus), true) },
  ]),
];

function language(path: string): Extension {
  const [, kind = ""] = /\.([cm]?[jt]sx?|json)$/.exec(path) ?? [];
  return kind === "" ? [] : javascript({ typescript: /^[cm]?ts/.test(kind), jsx: kind.endsWith("x") || kind === "js" });
}

// Colours are variables of style.css, which follow the colour scheme.
const theme = EditorView.theme({
  "&": { height: "100%", color: "var(--text)", backgroundColor: "var(--surface)" },
  "&.cm-focused": { outline: "none" }, // style.css draws it over the gutters
  ".cm-scroller": { fontFamily: "var(--mono)", fontSize: "var(--code-size)", lineHeight: "1.55" },
  ".cm-content": { caretColor: "var(--text)", padding: "10px 0" },
  ".cm-cursor, .cm-dropCursor": { borderLeftColor: "var(--text)" },
  ".cm-gutters": { backgroundColor: "var(--surface)", color: "var(--dim)", border: "none" },
  ".cm-lineNumbers .cm-gutterElement": { padding: "0 6px 0 10px" },
  ".cm-gutter-lint": { width: "16px" },
  ".cm-gutter-lint .cm-gutterElement": { display: "flex", alignItems: "center", padding: "0 2px" },
  ".cm-lint-marker": { width: "0.8em", height: "0.8em" },
  ".cm-activeLine": { backgroundColor: "var(--line)" },
  ".cm-activeLineGutter": { backgroundColor: "var(--line)", color: "var(--text)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground, .cm-content ::selection": {
    backgroundColor: "var(--selection)",
  },
  ".cm-selectionMatch": { backgroundColor: "var(--match)" },
  "&.cm-focused .cm-matchingBracket": { backgroundColor: "var(--match)", outline: "1px solid var(--border-strong)" },
  "&.cm-focused .cm-nonmatchingBracket": { backgroundColor: "transparent", color: "var(--bad)" },
  ".cm-panels": { backgroundColor: "var(--raised)", color: "var(--text)", borderColor: "var(--border)" },
  ".cm-tooltip": {
    backgroundColor: "var(--raised)",
    color: "var(--text)",
    border: "1px solid var(--border)",
    borderRadius: "8px",
    overflow: "hidden",
  },
  ".cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--on-accent)" },
  ".cm-diagnostic": { padding: "6px 10px", fontFamily: "var(--sans)" },
  ".cm-diagnostic-error": { borderLeft: "3px solid var(--bad)" },
});
