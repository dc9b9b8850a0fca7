import { ConnectionError } from "./errors.js";
import type { Evaluation, RunResult } from "./result.js";

/** The error for a result that the protocol does not have. */
export function invalidResult(what: string): ConnectionError {
  return new ConnectionError("protocol", `gaol: the server has sent an invalid ${what}`);
}

/** Returns a result as the object that it must be. */
export function asObject(value: unknown, what: string): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw invalidResult(what);
  return value as Record<string, unknown>;
}

/** Returns a member that must be a text. */
export function asText(value: unknown, what: string): string {
  if (typeof value !== "string") throw invalidResult(what);
  return value;
}

/** Returns a member that must be a list. */
export function asList(value: unknown, what: string): unknown[] {
  if (!Array.isArray(value)) throw invalidResult(what);
  return value;
}

/** Returns a member that must be a number. */
export function asNumber(value: unknown, what: string): number {
  if (typeof value !== "number") throw invalidResult(what);
  return value;
}

const text = new TextDecoder("utf-8", { ignoreBOM: true });

/** Output that was captured. */
export interface Captured {
  bytes: Uint8Array;
  truncated: boolean;
}

/** Returns the result of a run. Its output has arrived before. */
export function parseRun<T>(value: unknown, stdout: Captured, stderr: Captured): RunResult<T> {
  const run = asObject(value, "run");
  const truncated = asObject(run["truncated"], "run");
  asNumber(run["exitCode"], "exit code");
  asText(run["cause"], "cause");
  return {
    ...run,
    stdout: text.decode(stdout.bytes),
    stderr: text.decode(stderr.bytes),
    stdoutBytes: stdout.bytes,
    stderrBytes: stderr.bytes,
    truncated: {
      stdout: truncated["stdout"] === true || stdout.truncated,
      stderr: truncated["stderr"] === true || stderr.truncated,
      denials: truncated["denials"] === true,
    },
  } as RunResult<T>;
}

/** Returns the result of an evaluation. */
export function parseEvaluation<T>(value: unknown): Evaluation<T> {
  const e = asObject(value, "evaluation");
  asText(e["cause"], "cause");
  asList(e["logs"], "list of logs");
  if (e["error"] !== null) asObject(e["error"], "error");
  return e as unknown as Evaluation<T>;
}
