import { newCapture, type Captured } from "./capture.js";
import type { RequestOptions, Session } from "./connection/session.js";
import { declare } from "./functions.js";
import { invalid, pick } from "./names.js";
import type { Run, Snippet, Timeout, Tree } from "./operations.js";
import { evaluateNames, programNames, treeNames } from "./optionnames.js";
import type { EvaluateOptions, RunOptions, TimeLimit, TreeOptions } from "./options.js";
import { decode, perform } from "./perform.js";
import type { Evaluation, LogLine, RunResult } from "./result.js";

/** Captured bytes of each output, unless a sandbox has another limit. */
export const defaultOutput = 16 << 20;

/** Returns a time limit as requests have it. */
export function timeLimit({ timeoutMs }: TimeLimit): Timeout {
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

/** Returns the options of a sandbox in the form of requests. */
export function treeParams(o: TreeOptions): Tree {
  if (o.bigInts && !("rawJSON" in JSON)) throw new TypeError("gaol: bigInts: JSON.parse of this version of Node loses digits; want Node 22");
  const files = Object.entries(o.files ?? {});
  const record = <T>(entries: [string, unknown][]) => (entries.length > 0 ? (Object.fromEntries(entries) as Record<string, T>) : undefined);
  return {
    ...pick(o, treeNames),
    limits: o.limits && { ...o.limits, cpuTimeMs: o.limits.cpuTimeMs && Math.ceil(o.limits.cpuTimeMs) },
    files: record<string>(files.filter(([, content]) => typeof content === "string")),
    fileBytes: record<Uint8Array>(files.filter(([, content]) => typeof content !== "string")),
  };
}

const text = new TextDecoder("utf-8", { ignoreBOM: true });
const none: Captured = { bytes: new Uint8Array(), truncated: false };

/** Returns the result of a run. Its output has arrived before. */
export function runResult<T>(run: Run, stdout = none, stderr = none): RunResult<T> {
  const { truncated, queuedMs = 0, calls = [] } = run;
  return {
    ...run,
    ...{ queuedMs, calls },
    stdout: text.decode(stdout.bytes),
    stderr: text.decode(stderr.bytes),
    stdoutBytes: stdout.bytes,
    stderrBytes: stderr.bytes,
    truncated: {
      stdout: truncated.stdout || stdout.truncated,
      stderr: truncated.stderr || stderr.truncated,
      denials: truncated.denials,
      calls: truncated.calls ?? false,
    },
  } as RunResult<T>;
}

/** The operations that run a program. */
export type RunMethod = "run" | "runIn" | "execIn" | "commandIn";

/** Returns the input of a run. */
export function runParams(program: object, o: RunOptions): never {
  return { ...pick(o, programNames), ...timeLimit(o), ...program } as never;
}

/** Makes a run, and captures its output. */
export async function makeRun<T>(session: Session, method: RunMethod, program: object, o: RunOptions, limit: number): Promise<RunResult<T>> {
  const { stdin, signal } = o;
  const [stdout, stderr] = [newCapture(limit, o.onStdout), newCapture(limit, o.onStderr)];
  const events = (o.onStdout ?? o.onStderr) !== undefined;
  const run = await perform(session, method, runParams(program, o), { stdin, signal, events, onStdout: stdout.add, onStderr: stderr.add });
  return runResult(run, stdout.end(), stderr.end());
}

/** A request to evaluate code. Its functions exist until they are released. */
export interface EvaluationRequest {
  params: never;
  options: RequestOptions;
  release(): void;
}

const { globals: _globals, timeoutMs: _timeout, signal: _signal, maxCalls: _maxCalls, onLog: _onLog, ...snippetNames } = evaluateNames;

/** Returns a request to evaluate code. */
export function evaluationRequest(session: Session, params: object, o: EvaluateOptions): EvaluationRequest {
  const snippet: Omit<Snippet, "code"> = { ...pick(o, snippetNames), ...timeLimit(o) };
  const { globals, functions, release } = declare(session, o.globals);
  const options = { signal: o.signal, host: { functions, calls: { calls: o.maxCalls } } };
  return { params: { ...params, ...snippet, globals } as never, options, release };
}

/** Evaluates code. */
export async function makeEvaluation<T>(session: Session, method: "evaluate" | "evaluateIn" | "evaluateCell", params: object, o: EvaluateOptions): Promise<Evaluation<T>> {
  const r = evaluationRequest(session, params, o);
  const { onLog } = o;
  const onEvent = onLog && ((e: { event: string; data: unknown }) => (e.event === "log" ? onLog(decode("LogLine", e.data, "log") as LogLine) : undefined));
  try {
    return (await perform(session, method, r.params, { ...r.options, onEvent })) as Evaluation<T>;
  } finally {
    r.release();
  }
}
