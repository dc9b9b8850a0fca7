import type { Session, SessionEvent } from "./connection/session.js";
import { feed } from "./connection/feed.js";
import type { RunOptions } from "./options.js";
import { newQueue, type Queue } from "./queue.js";
import type { Call, Denial, LogLine, OutgoingConnection } from "./result.js";

/** What happens in a run, in the order in which the server has noticed it. */
export type RunEvent =
  | { type: "stdout"; data: Uint8Array }
  | { type: "stderr"; data: Uint8Array }
  | { type: "log"; log: LogLine }
  | { type: "call"; call: Call }
  | { type: "denial"; denial: Denial }
  | { type: "connection"; connection: OutgoingConnection };

/**
 * A run whose events are read while it is in progress. The run waits while 256 KiB of an output are not read, so
 * read the events, or leave the loop, before you await the result. Leaving the loop early ends the run.
 */
export interface RunStream<R> extends AsyncIterable<RunEvent> {
  /** The result, without output. */
  readonly result: Promise<R>;

  [Symbol.asyncDispose](): Promise<void>;
}

const known = new Set(["log", "call", "denial", "connection"]);

/** A run to follow. */
export interface Followed<R> {
  method: string;

  /** Returns the parameters of the request. */
  params(session: Session): object;

  /** Parses the result. */
  parse(value: unknown): R;

  /** Called when the run has ended. */
  release?(): void;
}

/** Starts a run with events. */
export function follow<R>(session: Promise<Session>, run: Followed<R>, o: Pick<RunOptions, "stdin" | "signal">): RunStream<R> {
  let cancel = (): void => undefined;
  const queue = newQueue<RunEvent>(() => cancel());
  const start = async (): Promise<R> => {
    const connected = await session;
    const r = connected.open(run.method, { ...run.params(connected), events: true }, { signal: o.signal, ...handlers(queue) });
    cancel = () => r.cancel();
    if (o.stdin !== undefined) feed(r, o.stdin).catch(() => r.cancel());
    return run.parse(await r.result);
  };
  const result = start().finally(() => run.release?.());
  result.then(queue.end, queue.fail);
  return {
    result,
    [Symbol.asyncIterator]: () => queue.values,
    async [Symbol.asyncDispose]() {
      await queue.values.return?.();
      await result.catch(() => undefined);
    },
  };
}

/** Returns the functions that fill a queue. */
export function handlers(queue: Queue<RunEvent>) {
  return {
    onStdout: (data: Uint8Array) => queue.push({ type: "stdout", data }),
    onStderr: (data: Uint8Array) => queue.push({ type: "stderr", data }),
    onEvent: (e: SessionEvent) => (known.has(e.type) && typeof e[e.type] === "object" ? queue.push(e as unknown as RunEvent) : undefined),
  };
}
