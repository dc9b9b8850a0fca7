import type { Session, SessionEvent } from "./connection/session.js";
import { declare } from "./functions.js";
import type { CellOptions, EvaluateLimits, EvaluateOptions, TimeLimit } from "./options.js";
import { parseEvaluation } from "./parse.js";
import type { Evaluation, LogLine } from "./result.js";
import { timeLimit } from "./runs.js";

/** Returns the bounds of an evaluation as requests have them. */
export function evaluateLimits(o: EvaluateLimits & TimeLimit): object {
  const { maxCalls, maxOutput, maxLogs, maxLogLength } = o;
  return { maxCalls, maxOutput, maxLogs, maxLogLength, ...timeLimit(o) };
}

/** Evaluates code. Its functions exist until the result. */
export async function makeEvaluation<T>(session: Session, method: string, params: object, o: EvaluateOptions | CellOptions): Promise<Evaluation<T>> {
  const declared = declare(session, o.globals);
  try {
    const all = { ...params, ...declared.params, ...evaluateLimits(o), logs: o.onLog && true };
    return parseEvaluation(await session.request(method, all, { signal: o.signal, onEvent: o.onLog && logHandler(o.onLog) }));
  } finally {
    declared.release();
  }
}

function logHandler(onLog: (line: LogLine) => unknown): (e: SessionEvent) => unknown {
  return (e) => (e.type === "log" && typeof e["log"] === "object" && e["log"] !== null ? onLog(e["log"] as LogLine) : undefined);
}
