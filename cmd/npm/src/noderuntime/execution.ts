import { checkOptions, type Names } from "../names.js";
import type { RunOptions } from "../options.js";
import type { RunResult } from "../result.js";

/** Options of one program. */
export interface NodeRuntimeExecOptions {
  /** Environment variables that replace or add to the runtime's. */
  env?: Record<string, string>;
  /** The working directory. */
  cwd?: string;
  /** Standard input. By default it is empty. */
  stdin?: string | Uint8Array;
  /** The longest time that the program may take, in milliseconds. By default as long as the server allows. */
  timeout?: number;
  /** Kills the program. The promise is then rejected with the signal's reason. */
  signal?: AbortSignal;
  /** Called with each piece of standard output as it is printed. */
  onStdout?: (chunk: Uint8Array) => void;
  /** Called with each piece of standard error as it is printed. */
  onStderr?: (chunk: Uint8Array) => void;
}

/** The result of a program. */
export interface NodeRuntimeExecResult {
  stdout: string;
  stderr: string;
  /** Its exit status; 128 and the number of the signal that has killed it. */
  exitCode: number;
  /** Which output lacks its end, because there was more than 16 MiB. Absent if none does. */
  truncated?: { stdout: boolean; stderr: boolean };
}

/** The result of {@link NodeRuntime.run}. */
export interface NodeRuntimeRunResult<T = unknown> extends NodeRuntimeExecResult {
  /** The value that the program has passed to `__return`, if its exit status is 0. */
  value?: T;
}

const names = { env: true, cwd: true, stdin: true, timeout: true, signal: true, onStdout: true, onStderr: true } satisfies Names<NodeRuntimeExecOptions>;

/** Checks the options of a program. Unknown ones are an error. */
export function checkExecOptions(o: NodeRuntimeExecOptions): NodeRuntimeExecOptions {
  return checkOptions("NodeRuntime", o, names);
}

/** Returns the server's options of a program. Without a time limit, the server's own applies. */
export function runOptions(o: NodeRuntimeExecOptions): RunOptions {
  const { env, cwd, stdin, timeout, signal, onStdout, onStderr } = checkExecOptions(o);
  return { env, cwd, stdin, signal, onStdout, onStderr, timeoutMs: timeout === undefined ? Infinity : milliseconds(timeout) };
}

/** Returns a time limit of at least a millisecond: for the server, 0 is the default. */
export function milliseconds(timeout: number): number {
  return Math.max(1, Math.ceil(timeout));
}

/** Returns the part of a result that secure-exec has. */
export function execResult({ stdout, stderr, exitCode, truncated }: RunResult): NodeRuntimeExecResult {
  const cut = { stdout: truncated.stdout, stderr: truncated.stderr };
  return { stdout, stderr, exitCode, ...((cut.stdout || cut.stderr) && { truncated: cut }) };
}

let programs = 0;

/** Returns the options of a program, with the name that secure-exec gives it, so that imports start in /tmp. */
export function programOptions(): { name: string; format: "esm" } {
  return { name: `/tmp/secure-exec-program-${programs++}.mjs`, format: "esm" };
}
