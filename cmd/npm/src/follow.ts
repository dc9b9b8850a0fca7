import type { RequestOptions, Session, SessionEvent } from "./connection/session.js";
import { results, type Operations } from "./operations.js";
import { decode, type Result } from "./perform.js";
import { newQueue, type Queue } from "./queue.js";
import type { Call, Denial, LogLine, OutgoingConnection } from "./result.js";

/** What happens in a run, in the order in which the server has noticed it. */
export type RunEvent =
  | { type: "stdout"; data: Uint8Array }
  | { type: "stderr"; data: Uint8Array }
  | { type: "log"; log: LogLine }
  | { type: "call"; call: Call }
  | { type: "denial"; denial: Denial }
  | { type: "connect"; connect: OutgoingConnection };

/**
 * A run whose events are read while it is in progress. The run waits while 256 KiB of an output are not read, so
 * read the events, or leave the loop, before you await the result. Leaving the loop early ends the run.
 */
export interface RunStream<R> extends AsyncIterable<RunEvent> {
  /** The result, without output. */
  readonly result: Promise<R>;

  [Symbol.asyncDispose](): Promise<void>;
}

/** The shapes of the events' data. */
const known: Readonly<Record<string, string>> = { log: "LogLine", call: "Call", denial: "Denial", connect: "OutgoingConnection" };

/** A run to follow. */
export interface Followed {
  params: object;
  options: RequestOptions;

  /** Called when the run has ended. */
  release?(): void;
}

/** Starts a run with events. */
export function follow<M extends keyof Operations, R>(session: Promise<Session>, method: M, prepare: (s: Session) => Followed, convert: (result: Result<M>) => R): RunStream<R> {
  let cancel = (): void => undefined;
  const queue = newQueue<RunEvent>(() => cancel());
  const start = async (): Promise<R> => {
    const connected = await session;
    const { params, options, release } = prepare(connected);
    try {
      const r = connected.open(method, params, { ...options, ...handlers(queue) });
      cancel = () => r.cancel();
      return convert(decode(results[method], await r.result, method) as Result<M>);
    } finally {
      release?.();
    }
  };
  const result = start();
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
    onEvent({ event, data }: SessionEvent) {
      const shape = known[event];
      return shape === undefined ? undefined : queue.push({ type: event, [event]: decode(shape, data, event) } as unknown as RunEvent);
    },
  };
}
