import path from "node:path";
import type { Session, SessionEvent } from "../connection/session.js";
import { GaolError } from "../errors.js";
import type { SnippetLog, SnippetOutput } from "../operations.js";
import { decode, perform, sessionOf } from "../perform.js";
import { InputError, snippetParams, type SnippetInput, type SnippetOptions } from "./input.js";
import { nearestModules } from "./modules.js";

const aborted = "sandbox: aborted by caller signal";

/**
 * Runs a snippet in a new sandbox, and returns its output, the state of the framework that it uses, and its
 * errors. All failures of the snippet, invalid input, and an aborted signal are in `errors`. The promise is rejected if gaol
 * itself fails, or with what `onLog` throws.
 */
export async function runInSandbox(input: SnippetInput, options: SnippetOptions = {}): Promise<SnippetOutput> {
  try {
    const params = snippetParams(input, options);
    const { onLog } = options;
    if (options.signal?.aborted) return notRun(aborted);
    const session = await sessionOf(options);
    const onEvent = onLog && (({ event, data }: SessionEvent) => (event === "log" ? onLog((decode("SnippetLog", data, "log") as SnippetLog).line) : undefined));
    return await perform(session, "runSnippet", { ...params, nodeModules: nodeModules(session, options) }, { cancelBy: options.signal, onEvent });
  } catch (err) {
    return failure(err, options);
  }
}

/** Returns the folder of packages as the server finds it. */
function nodeModules(session: Session, { nodeModules }: SnippetOptions): string | undefined {
  if (nodeModules !== undefined) return nodeModules && path.resolve(nodeModules);
  return session.own ? nearestModules(process.cwd()) : undefined;
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
