import type { Readable, Writable } from "node:stream";
import type { OpenRequest, Session } from "./connection/session.js";
import { GaolError } from "./errors.js";
import { handlers, type RunEvent } from "./follow.js";
import { checkOptions, pick } from "./names.js";
import { fields, results, type ProcessInfo, type Run } from "./operations.js";
import type { SpawnOptions } from "./options.js";
import { decode, perform } from "./perform.js";
import { newQueue } from "./queue.js";
import type { RunResult } from "./result.js";
import { isLongest, milliseconds, runResult } from "./runs.js";
import { newInput, newOutput } from "./streams.js";

/** A long-lived process in a sandbox. It keeps the Node process alive until it has ended. */
export interface Process {
  /** The process's ID, as the sandbox sees it. */
  readonly pid: number;

  /** Standard input. Input after the process's end is dropped. */
  readonly stdin: Writable;

  /** Standard output. The process waits while 256 KiB of it are not read. If the connection is lost, the stream closes without an end. */
  readonly stdout: Readable;

  /** The same for standard error. A process with a terminal has none. */
  readonly stderr: Readable;

  /** Events other than output, in their order. There are none without the option `events`. */
  readonly events: AsyncIterable<Exclude<RunEvent, { type: "stdout" | "stderr" }>>;

  /** Waits for the end of the process. The result lacks output. */
  wait(): Promise<RunResult>;

  /** Kills the process and its descendants. It does not wait. */
  kill(): void;

  /** Sends a signal such as `SIGTERM` to the process, or to the process group that it leads. */
  signal(name: NodeJS.Signals, options?: { group?: boolean }): Promise<void>;

  /** Changes the size of the process's terminal, in characters. */
  resize(size: { rows: number; cols: number }): Promise<void>;

  /** Kills the process and waits for its end. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** Describes the process of a request: a result, or the data of its start. */
export function processInfo(value: unknown): ProcessInfo {
  return decode(results.spawn, value, "process") as ProcessInfo;
}

/** Returns how the process of a request has ended. */
export function endOf(value: unknown): Run {
  const { result, failure } = processInfo(value);
  if (result === undefined) throw new GaolError("internal", `gaol: the process has no result: ${failure}`, { status: 500 });
  return result;
}

/** Starts a process. */
export async function startProcess(session: Session, sandbox: string, program: object, o: SpawnOptions): Promise<Process> {
  const stdout = newOutput();
  const stderr = newOutput();
  const queue = newQueue<RunEvent>(() => undefined);
  const timeoutMs = isLongest(o.timeoutMs) ? undefined : milliseconds("timeoutMs", o.timeoutMs); // the longest is the default
  const params = { sandbox, ...pick(o as Record<string, unknown>, fields.ProcessRequest), ...program, timeoutMs };
  const onEvent = o.events ? handlers(queue).onEvent : undefined;
  const r = session.open("spawn", params, { stdin: true, events: true, signal: o.signal, onStdout: stdout.push, onStderr: stderr.push, onEvent });
  const ended = r.result.then((value) => runResult(endOf(value)));
  ended.then(queue.end, queue.fail);
  ended.then(
    () => [stdout, stderr].forEach((s) => s.end()),
    () => [stdout, stderr].forEach((s) => s.cut()),
  );
  const { id, pid } = processInfo(await r.started);
  const streams = { stdout: stdout.stream, stderr: stderr.stream, events: queue.values as Process["events"] };
  return newProcess(session, r, { sandbox, process: id }, { pid, ...streams, wait: () => ended });
}

function newProcess(session: Session, r: OpenRequest, self: { sandbox: string; process: string }, p: Pick<Process, "pid" | "stdout" | "stderr" | "events" | "wait">): Process {
  return {
    ...p,
    stdin: newInput(r),
    kill: () => r.cancel(),
    async signal(signal, options = {}) {
      const { group } = checkOptions("signal", options, { group: true });
      await perform(session, "signalProcess", { ...self, signal, group });
    },
    async resize(size) {
      await perform(session, "resizeProcess", { ...self, ...size });
    },
    async [Symbol.asyncDispose]() {
      r.cancel();
      await p.wait().catch(() => undefined);
    },
  };
}
