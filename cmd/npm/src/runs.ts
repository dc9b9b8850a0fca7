import { newCapture } from "./capture.js";
import type { Session } from "./connection/session.js";
import { invalid, pick } from "./names.js";
import { programNames } from "./optionnames.js";
import type { RunOptions, TimeLimit } from "./options.js";
import { parseRun } from "./parse.js";
import type { RunResult } from "./result.js";

/** Captured bytes of each output, unless a sandbox has another limit. */
export const defaultOutput = 16 << 20;

/** Returns a time limit as requests have it. */
export function timeLimit({ timeoutMs }: TimeLimit): object {
  return isLongest(timeoutMs) ? { maxTimeout: true } : { timeoutMs: milliseconds("timeoutMs", timeoutMs) };
}

/** Reports whether a time limit is the longest that the server allows. */
export function isLongest(timeoutMs: number | undefined): boolean {
  return timeoutMs === 0 || timeoutMs === Infinity;
}

/** Rounds up, so that a short time is not none, which means the default. */
export function milliseconds(name: string, ms: number | undefined): number | undefined {
  if (ms === undefined) return undefined;
  if (Number.isFinite(ms)) return Math.ceil(ms);
  throw invalid(name, `gaol: ${name}: want a number of milliseconds`, "want a number", ms); // JSON has no NaN
}

/** Makes a run, and captures its output. */
export async function makeRun<T>(session: Session, method: string, params: object, o: RunOptions, limit: number): Promise<RunResult<T>> {
  const stdout = newCapture(limit, o.onStdout);
  const stderr = newCapture(limit, o.onStderr);
  const streams = { stdinStream: o.stdin === undefined ? undefined : true, events: o.onStdout || o.onStderr ? true : undefined };
  const value = await session.request(method, { ...params, ...pick(o, programNames), ...timeLimit(o), ...streams }, {
    stdin: o.stdin,
    signal: o.signal,
    onStdout: stdout.add,
    onStderr: stderr.add,
  });
  return parseRun(value, stdout.end(), stderr.end());
}
