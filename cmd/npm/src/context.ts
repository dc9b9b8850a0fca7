import type { OpenRequest, Session } from "./connection/session.js";
import { makeEvaluation } from "./evaluations.js";
import { declare } from "./functions.js";
import { checkOptions } from "./names.js";
import { cellNames, contextNames } from "./optionnames.js";
import type { CellOptions, ContextOptions } from "./options.js";
import { asList, asObject, asText } from "./parse.js";
import type { Evaluation } from "./result.js";
import { milliseconds } from "./runs.js";

/** Why a context has ended. */
export interface ContextEnd {
  reason: string;

  /** The exit status, if the program has exited. */
  exitCode?: number;
}

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
  complete(line: string): Promise<{ prefix: string; names: string[] }>;

  /** Ends the context, and the current cell. It waits until nothing is left of the process. */
  close(): Promise<void>;

  [Symbol.asyncDispose](): Promise<void>;
}

/** Starts a context. */
export async function startContext(session: Session, sandbox: string, o: ContextOptions): Promise<Context> {
  const declared = declare(session, checkOptions("createContext", o, contextNames).globals);
  const { permissions, env, cwd, lastValue } = o;
  const params = { sandbox, permissions, env, cwd, lastValue, idleTimeoutMs: milliseconds("idleTimeoutMs", o.idleTimeoutMs), ...declared.params };
  const r = session.open("context", params);
  const ended = r.result.then((value) => asObject(value, "end of a context") as unknown as ContextEnd).finally(declared.release);
  ended.catch(() => undefined);
  await r.started;
  r.keepAlive(false);
  return newContext(session, r, sandbox, ended);
}

function newContext(session: Session, r: OpenRequest, sandbox: string, ended: Promise<ContextEnd>): Context {
  const close = async (): Promise<void> => {
    r.keepAlive(true);
    r.cancel();
    await ended.catch(() => undefined);
  };
  return {
    ended,
    async evaluate(code, options = {}) {
      return makeEvaluation(session, "cell", { sandbox, context: r.id, code }, checkOptions("evaluate", options, cellNames));
    },
    async complete(line) {
      const found = asObject(await session.request("complete", { sandbox, context: r.id, line }), "completion");
      return { prefix: asText(found["prefix"], "completion"), names: asList(found["names"], "completion") as string[] };
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}
