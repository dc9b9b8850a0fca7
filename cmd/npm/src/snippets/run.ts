import path from "node:path";
import { ordered } from "../connection/ordered.js";
import type { Session } from "../connection/session.js";
import { GaolError } from "../errors.js";
import { results, type SnippetLog, type SnippetOutput, type SnippetRunIn } from "../operations.js";
import { connectionOf, decode } from "../perform.js";
import { InputError, snippetParams, type SnippetInput, type SnippetOptions } from "./input.js";
import { nearestModules } from "./modules.js";

const aborted = "sandbox: aborted by caller signal";

/**
 * Runs a snippet in a sandbox of its own, and returns what it printed, the state of the framework that it uses, and its
 * errors. All failures of the snippet, invalid input, and an aborted signal are in `errors`. The promise is rejected if gaol
 * itself fails, or with what `onLog` throws.
 */
export async function runInSandbox(input: SnippetInput, options: SnippetOptions = {}): Promise<SnippetOutput> {
  try {
    const params = snippetParams(input, options);
    if (options.signal?.aborted) return notRun(aborted);
    const session = await connectionOf(options);
    return await request(session, { ...params, nodeModules: nodeModules(session, options) }, options);
  } catch (err) {
    return failure(err, options);
  }
}

/** Returns the folder of packages as the server finds it. */
function nodeModules(session: Session, { nodeModules }: SnippetOptions): string | undefined {
  if (nodeModules !== undefined) return nodeModules && path.resolve(nodeModules);
  return session.own ? nearestModules(process.cwd()) : undefined;
}

/** Sends the request. Other than by the option of a session, an aborted signal leaves the result as it is. */
async function request(session: Session, params: SnippetRunIn, { signal, onLog }: SnippetOptions): Promise<SnippetOutput> {
  const order = ordered({ onEvent: onLog && ((e) => (e.event === "log" ? onLog((decode("SnippetLog", e.data, "log") as SnippetLog).line) : undefined)) });
  const r = session.open("runSnippet", params, order.options);
  r.started.catch(() => undefined); // there is no such event
  const cancel = (): void => r.cancel();
  signal?.addEventListener("abort", cancel, { once: true });
  if (signal?.aborted) cancel();
  try {
    const result = await r.result;
    await order.done();
    return decode(results.runSnippet, result, "runSnippet") as SnippetOutput;
  } finally {
    signal?.removeEventListener("abort", cancel);
  }
}

/** Returns the output of a snippet that has not run. */
function notRun(error: string): SnippetOutput {
  return { logs: [], facts: {}, derived: {}, errors: [error], durationMs: 0, timedOut: false };
}

/** Returns the output for an error of the caller. It throws all others. */
function failure(err: unknown, { signal }: SnippetOptions): SnippetOutput {
  if (err instanceof InputError) return notRun(err.message);
  if (err instanceof GaolError && err.code === "canceled" && signal?.aborted) return notRun(aborted);
  if (err instanceof GaolError && (err.code === "invalid" || err.code === "too_large")) return notRun(err.message.replace(/^gaol: /, ""));
  throw err;
}
