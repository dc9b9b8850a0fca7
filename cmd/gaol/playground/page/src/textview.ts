// Shows hostile text.
import { button, element } from "./dom.js";
import { visible, withPositions, type Part } from "./text.js";

/** Moves the editor to a position. */
export type GoTo = (path: string, line: number, column: number) => void;

/** Returns nodes for a text. Control characters are visible. */
export function textNodes(text: string): Node[] {
  return visible(text).map((part) => node(part));
}

/** Returns nodes for a text whose positions in files are buttons. */
export function linkedNodes(text: string, paths: ReadonlySet<string>, goTo: GoTo): Node[] {
  return withPositions(text, paths).map((part) => node(part, goTo));
}

function node(part: Part, goTo?: GoTo): Node {
  switch (part.kind) {
    case "control":
      return element("span", { class: "control" }, part.text);
    case "position":
      return button(part.text, () => goTo?.(part.path, part.line, part.column), "position");
    case "text":
      return document.createTextNode(part.text);
  }
}
