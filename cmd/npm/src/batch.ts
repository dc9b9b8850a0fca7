import type { Captured } from "./capture.js";
import type { RequestOptions } from "./connection/session.js";
import { checkOptions, invalid } from "./names.js";
import { results, type BatchRun as Described } from "./operations.js";
import { connectionNames, submitCommandNames, submitNames, waitNames } from "./optionnames.js";
import type { OnConnection, SubmitCommandOptions, SubmitOptions, WaitBatchRunOptions } from "./options.js";
import { decode, sessionOf, type Params } from "./perform.js";
import type { BatchRun } from "./result.js";
import { isLongest, milliseconds, runParams, runResult, treeParams } from "./runs.js";

/** Submits a program to run in a new sandbox when it is its turn. It is begun again if its machine is lost. */
export async function submit<T = unknown>(code: string, options: SubmitOptions = {}): Promise<BatchRun<T>> {
  return submitProgram({ code }, checkOptions("submit", options, submitNames));
}

/** Submits a program of the image, as {@link submit} does. */
export async function submitCommand(command: string, args: readonly string[] = [], options: SubmitCommandOptions = {}): Promise<BatchRun<never>> {
  return submitProgram({ command, args }, checkOptions("submitCommand", options, submitCommandNames));
}

async function submitProgram<T>(program: object, o: SubmitOptions): Promise<BatchRun<T>> {
  const { key, stdin } = o;
  if (stdin !== undefined && typeof stdin !== "string") throw invalid("stdin", "gaol: stdin: a batch run has text only", "want a string");
  return ask(o, "submitRun", runParams({ ...program, ...treeParams(o), idempotencyKey: key, stdin }, o));
}

/** Describes your batch run with a key. */
export async function batchRun<T = unknown>(key: string, options: OnConnection = {}): Promise<BatchRun<T>> {
  return ask(checkOptions("batchRun", options, connectionNames), "getBatchRun", { key });
}

/** Waits until a batch run is done, or until the timeout, and describes it. */
export async function waitBatchRun<T = unknown>(key: string, options: WaitBatchRunOptions = {}): Promise<BatchRun<T>> {
  const { timeoutMs, signal } = checkOptions("waitBatchRun", options, waitNames);
  return ask(options, "waitBatchRun", { key, timeoutMs: isLongest(timeoutMs) ? undefined : milliseconds("timeoutMs", timeoutMs) }, { signal });
}

/** Ends a batch run, whose result then has the cause `canceled`, unless it is done. */
export async function cancelBatchRun<T = unknown>(key: string, options: OnConnection = {}): Promise<BatchRun<T>> {
  return ask(checkOptions("cancelBatchRun", options, connectionNames), "cancelBatchRun", { key });
}

type Method = "submitRun" | "getBatchRun" | "waitBatchRun" | "cancelBatchRun";

async function ask<T, M extends Method>(o: OnConnection, method: M, params: Params<M>, options?: RequestOptions): Promise<BatchRun<T>> {
  const session = await sessionOf(o);
  const value = await (method === "waitBatchRun" ? session.open(method, params, options).result : session.request(method, params, options));
  const { result, ...run } = decode(results[method], value, method) as Described;
  if (result === undefined) return run;
  const output = (value as { result: Record<string, unknown> }).result; // runs in sessions have theirs in frames
  return { ...run, result: runResult<T>(result, captured("stdout", output), captured("stderr", output)) };
}

/** Returns an output of a result in JSON: text, with the bytes beside it if they are not UTF-8. */
function captured(name: string, { [name]: text, [`${name}Bytes`]: bytes }: Record<string, unknown>): Captured {
  if (bytes !== undefined) return { bytes: decode("bytes", bytes, name) as Uint8Array, truncated: false };
  return { bytes: new TextEncoder().encode(decode("string", text, name) as string), truncated: false };
}
