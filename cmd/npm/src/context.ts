import type { OpenRequest, Session } from "./connection/session.js";
import { declare } from "./functions.js";
import { checkOptions, pick } from "./names.js";
import { results, type ContextInfo, type Completion } from "./operations.js";
import { cellNames, contextNames } from "./optionnames.js";
import type { CellOptions, ContextOptions } from "./options.js";
import { decode, perform } from "./perform.js";
import type { Evaluation } from "./result.js";
import { makeEvaluation, milliseconds } from "./runs.js";

/** Why a context has ended, with the exit status if the program has exited. */
export type ContextEnd = Pick<ContextInfo, "exitCode"> & { reason: string };

/**
 * A process that evaluates cells: each sees the declarations of the ones before. It does not keep the Node
 * process alive between its cells.
 */
export interface Context {
  /** Resolves when the context has ended. It is rejected if the connection has ended. */
  readonly ended: Promise<ContextEnd>;

  /** Evaluates a cell. Cells run one after the other. */
  evaluate<T = unknown>(code: string, options?: CellOptions): Promise<Evaluation<T>>;

  /** Returns the names that can complete the last name of a line of code. */
  complete(line: string): Promise<Completion>;

  /** Ends the context, and the current cell. It waits until nothing is left of the process. */
  close(): Promise<void>;

  [Symbol.asyncDispose](): Promise<void>;
}

/** Starts a context. */
export async function startContext(session: Session, sandbox: string, o: ContextOptions): Promise<Context> {
  const { globals, functions, release } = declare(session, checkOptions("createContext", o, contextNames).globals);
  const params = { sandbox, ...pick(o, contextNames), globals, idleTimeoutMs: milliseconds("idleTimeoutMs", o.idleTimeoutMs) };
  const r = session.open("createContext", params, { events: true, host: { functions } });
  const ended = r.result.then(endOf).finally(release);
  ended.catch(() => undefined);
  const { id } = contextInfo(await r.started);
  r.keepAlive(false);
  return newContext(session, r, { sandbox, context: id }, ended);
}

function contextInfo(value: unknown): ContextInfo {
  return decode(results.createContext, value, "context") as ContextInfo;
}

function endOf(value: unknown): ContextEnd {
  const { reason = "", exitCode } = contextInfo(value);
  return { reason, ...(exitCode !== undefined && { exitCode }) };
}

function newContext(session: Session, r: OpenRequest, self: { sandbox: string; context: string }, ended: Promise<ContextEnd>): Context {
  const close = async (): Promise<void> => {
    r.keepAlive(true);
    r.cancel();
    await ended.catch(() => undefined);
  };
  return {
    ended,
    evaluate: async (code, options = {}) => makeEvaluation(session, "evaluateCell", { ...self, code }, checkOptions("evaluate", options, cellNames)),
    complete: (line) => perform(session, "completeInContext", { ...self, line }),
    close,
    [Symbol.asyncDispose]: close,
  };
}
