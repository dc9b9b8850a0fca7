import { newCapture } from "./capture.js";
import type { Session } from "./connection/session.js";
import type { ProgramOptions, RunOptions, TimeLimit } from "./options.js";
import { parseRun } from "./parse.js";
import type { RunResult } from "./result.js";

/** Captured bytes of each output, unless a sandbox has another limit. */
export const defaultOutput = 16 << 20;

/** Returns a time limit as requests have it. */
export function timeLimit({ timeoutMs }: TimeLimit): object {
  return timeoutMs === Infinity ? { maxTimeout: true } : { timeoutMs: milliseconds(timeoutMs) };
}

/** Rounds up, so that a short time is not none, which means the default. */
export function milliseconds(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : Math.ceil(ms);
}

/** Returns how to start a program as requests have it. */
export function programParams(o: ProgramOptions): object {
  const { permissions, name, format, args, env, cwd } = o;
  return { permissions, name, format, args, env, cwd };
}

/** Makes a run, and captures its output. */
export async function makeRun<T>(session: Session, method: string, params: object, o: RunOptions, limit: number): Promise<RunResult<T>> {
  const stdout = newCapture(limit, o.onStdout);
  const stderr = newCapture(limit, o.onStderr);
  const streams = { stdinStream: o.stdin === undefined ? undefined : true, events: o.onStdout || o.onStderr ? true : undefined };
  const value = await session.request(method, { ...params, ...programParams(o), ...timeLimit(o), ...streams }, {
    stdin: o.stdin,
    signal: o.signal,
    onStdout: stdout.add,
    onStderr: stderr.add,
  });
  return parseRun(value, stdout.end(), stderr.end());
}
