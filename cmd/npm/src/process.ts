import type { Readable, Writable } from "node:stream";
import type { OpenRequest, Session } from "./connection/session.js";
import { handlers, type RunEvent } from "./follow.js";
import { checkOptions, pick } from "./names.js";
import { programNames } from "./optionnames.js";
import type { SpawnOptions } from "./options.js";
import { asNumber, parseRun } from "./parse.js";
import { newQueue } from "./queue.js";
import type { RunResult } from "./result.js";
import { isLongest, milliseconds } from "./runs.js";
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

  /** Waits for the end of the process. The result has no output. */
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

const none = { bytes: new Uint8Array(), truncated: false };

/** Starts a process. */
export async function startProcess(session: Session, program: object, o: SpawnOptions): Promise<Process> {
  const stdout = newOutput();
  const stderr = newOutput();
  const queue = newQueue<RunEvent>(() => undefined);
  const timeoutMs = isLongest(o.timeoutMs) ? undefined : milliseconds("timeoutMs", o.timeoutMs); // the longest is the default
  const params = { ...program, ...pick(o, programNames), events: o.events, timeoutMs, terminal: o.terminal };
  const r = session.open("spawn", params, { signal: o.signal, onStdout: stdout.push, onStderr: stderr.push, onEvent: handlers(queue).onEvent });
  const ended = r.result.then((value) => parseRun(value, none, none));
  ended.then(queue.end, queue.fail);
  ended.then(
    () => [stdout, stderr].forEach((s) => s.end()),
    () => [stdout, stderr].forEach((s) => s.cut()),
  );
  const { pid } = await r.started;
  return newProcess(session, r, asNumber(pid, "process"), { stdout: stdout.stream, stderr: stderr.stream, events: queue.values as Process["events"], ended });
}

function newProcess(session: Session, r: OpenRequest, pid: number, p: Pick<Process, "stdout" | "stderr" | "events"> & { ended: Promise<RunResult> }): Process {
  return {
    pid,
    stdin: newInput(r),
    stdout: p.stdout,
    stderr: p.stderr,
    events: p.events,
    wait: () => p.ended,
    kill: () => r.cancel(),
    async signal(signal, options = {}) {
      const { group = false } = checkOptions("signal", options, { group: true });
      await session.request("signal", { process: r.id, signal, group });
    },
    async resize(size) {
      await session.request("resize", { process: r.id, ...size });
    },
    async [Symbol.asyncDispose]() {
      r.cancel();
      await p.ended.catch(() => undefined);
    },
  };
}
