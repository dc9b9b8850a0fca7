import { checkOptions } from "../names.js";
import { connectionNames } from "../optionnames.js";
import type { OnConnection } from "../options.js";
import { performOn } from "../perform.js";

/**
 * Turns code as models write it into an ES module, as evaluations do: it removes Markdown's fences and the prose
 * around them, translates TypeScript and JSX, and passes the value of the last expression to
 * `globalThis.__evaluated`. If that is a function, the function is called. The server does it, because a
 * parser decides. The promise is rejected with a SyntaxError that shows the line if the code is invalid.
 */
export async function normalizeCode(code: string, options: OnConnection = {}): Promise<string> {
  const { code: module = "", error } = await performOn(checkOptions("normalizeCode", options, connectionNames), "normalize", { code });
  if (error === null) return module;
  throw new SyntaxError(`${error.message}\n${error.frame ?? ""}`.trimEnd());
}
