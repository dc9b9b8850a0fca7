import { asList, asNumber, asObject, asText, invalidResult } from "../parse.js";

/** What a snippet did. */
export interface SnippetOutput {
  /** Lines such as `[log] hello`. */
  logs: string[];

  /** The state of the framework, or what the snippet exports. */
  facts: Record<string, unknown>;

  /** What the framework computes from it. */
  derived: Record<string, unknown>;

  /** Empty if the snippet works. */
  errors: string[];
  durationMs: number;
  timedOut: boolean;
}

/** Returns the output of a snippet that has not run. */
export function notRun(error: string): SnippetOutput {
  return { logs: [], facts: {}, derived: {}, errors: [error], durationMs: 0, timedOut: false };
}

const what = "result of a snippet";

/** Returns the result of a request. */
export function parseOutput(value: unknown): SnippetOutput {
  const { logs, facts, derived, errors, durationMs, timedOut } = asObject(value, what);
  if (typeof timedOut !== "boolean") throw invalidResult(what);
  return { logs: texts(logs), facts: asObject(facts, what), derived: asObject(derived, what), errors: texts(errors), durationMs: asNumber(durationMs, what), timedOut };
}

function texts(value: unknown): string[] {
  return asList(value, what).map((text) => asText(text, what));
}
