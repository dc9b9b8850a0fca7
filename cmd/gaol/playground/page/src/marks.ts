// Finds where errors are, for marks in the editor.
import type { Problem, Result } from "./api.js";
import { withPositions } from "./text.js";

/** Returns the problems of a result, and the first position of each other error. */
export function marksOf(result: Pick<Result, "errors" | "problems">, paths: ReadonlySet<string>): Problem[] {
  const marks = result.problems.filter((p) => paths.has(p.path));
  for (const error of result.errors) {
    const at = withPositions(error, paths).find((part) => part.kind === "position");
    if (at?.kind === "position" && !marks.some((m) => m.path === at.path && m.line === at.line && m.column === at.column)) {
      const [message = ""] = error.split("\n", 1);
      marks.push({ path: at.path, line: at.line, column: at.column, message });
    }
  }
  return marks.slice(0, maxMarks);
}

const maxMarks = 200;
