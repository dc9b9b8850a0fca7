import os from "node:os";
import type { Session } from "../connection/session.js";
import { perform } from "../perform.js";
import { endOf, processInfo } from "../process.js";
import { checkExecOptions, milliseconds, type NodeRuntimeExecOptions } from "./execution.js";

/** Options of {@link NodeRuntime.spawn}. */
export interface NodeRuntimeSpawnOptions extends NodeRuntimeExecOptions {}

/** A process of the guest that is in progress. */
export interface NodeRuntimeProcess {
  /** The number of the process in the sandbox; from `spawnCommand`, which does not wait for it, one of this runtime. */
  readonly pid: number;
  /** Writes to its standard input. */
  writeStdin(data: string | Uint8Array): void;
  /** Ends its standard input. */
  closeStdin(): void;
  /** Sends a signal, by default SIGTERM. */
  kill(signal?: NodeJS.Signals | number): void;
  /** Resolves with the exit status when the process has ended. */
  wait(): Promise<number>;
  /** The exit status, or null while the process is in progress. */
  readonly exitCode: number | null;
}

/** A process, and its start. */
export interface Started {
  readonly process: NodeRuntimeProcess;
  /** Resolves with the process ID when the process has started. */
  readonly pid: Promise<number>;
}

/** Numbers of processes that have not started. The kernel's are smaller. */
let unstarted = 1 << 22;

/** Starts a process. It returns immediately. */
export function startProcess(session: Session, sandbox: string, program: object, o: NodeRuntimeSpawnOptions): Started {
  checkExecOptions(o);
  const params = { sandbox, ...program, env: o.env, cwd: o.cwd, timeoutMs: o.timeout === undefined ? undefined : milliseconds(o.timeout) };
  const request = session.open("spawn", params, { stdin: o.stdin ?? true, events: true, onStdout: o.onStdout, onStderr: o.onStderr, signal: o.signal });
  const number = ++unstarted;
  let exitCode: number | null = null;
  const ended = request.result.then((result) => (exitCode = endOf(result).exitCode));
  const started = request.started.then(processInfo);
  const pid = started.then((info) => info.pid);
  for (const promise of [ended, pid]) promise.catch(() => undefined); // callers that wait get the error
  const ignoreEnd = (promise: Promise<unknown>): void => void promise.catch(() => undefined);
  const process: NodeRuntimeProcess = {
    pid: number,
    writeStdin: (data) => ignoreEnd(request.write(data)),
    closeStdin: () => request.end(),
    kill(signal = "SIGTERM") {
      const name = signalName(signal);
      ignoreEnd(started.then(({ id }) => perform(session, "signalProcess", { sandbox, process: id, signal: name })));
    },
    wait: () => ended,
    get exitCode() {
      return exitCode;
    },
  };
  return { process, pid };
}

/** Starts a process, and waits until it has started. */
export async function spawnProcess(session: Session, sandbox: string, program: object, o: NodeRuntimeSpawnOptions): Promise<NodeRuntimeProcess> {
  const { process, pid } = startProcess(session, sandbox, program, o);
  const number = await pid;
  return Object.defineProperty(process, "pid", { value: number, enumerable: true });
}

function signalName(signal: NodeJS.Signals | number): string {
  const named = Object.entries(os.constants.signals).find(([name, n]) => name === signal || n === signal);
  if (named === undefined) throw new Error(`Unknown signal: ${signal}`);
  return named[0];
}
