import type { RequestOptions, Session } from "../connection/session.js";

/** A sandbox of the server. */
export interface Box {
  readonly session: Session;
  readonly id: string;
}

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
  /** What the program has passed to `__return`, if its exit status is 0. */
  value?: T;
}

/** The most bytes of an output that a result has. */
const maxOutput = 16 << 20;

/** Collects the beginning of an output. */
export interface Output {
  add(piece: Uint8Array): void;
  text(): string;
  readonly truncated: boolean;
}

/** Returns an output that is empty at first. */
export function newOutput(): Output {
  const pieces: Uint8Array[] = [];
  let size = 0;
  let truncated = false;
  return {
    add(piece) {
      const part = piece.subarray(0, maxOutput - size);
      truncated ||= part.length < piece.length;
      size += part.length;
      if (part.length > 0) pieces.push(part);
    },
    text: () => new TextDecoder().decode(Buffer.concat(pieces)),
    get truncated() {
      return truncated;
    },
  };
}

/** The fields of the server's results that are used here. */
interface ServerResult {
  exitCode: number;
  value?: unknown;
  truncated?: { stdout?: boolean; stderr?: boolean };
}

/** Executes a program or a command until its end. */
export async function execute<T>(box: Box, method: "run" | "exec" | "command", what: object, o: NodeRuntimeExecOptions): Promise<NodeRuntimeRunResult<T>> {
  const stdout = newOutput();
  const stderr = newOutput();
  const params = {
    sandbox: box.id, ...what, ...commonParams(o), ...timeLimit(o.timeout),
    stdinStream: o.stdin !== undefined,
    events: o.onStdout !== undefined || o.onStderr !== undefined,
  };
  const options: RequestOptions = { onStdout: tee(stdout, o.onStdout), onStderr: tee(stderr, o.onStderr), signal: o.signal, stdin: o.stdin };
  const result = (await box.session.request(method, params, options)) as ServerResult;
  const cut = {
    stdout: stdout.truncated || result.truncated?.stdout === true,
    stderr: stderr.truncated || result.truncated?.stderr === true,
  };
  return {
    stdout: stdout.text(), stderr: stderr.text(), exitCode: result.exitCode,
    ...((cut.stdout || cut.stderr) && { truncated: cut }),
    ...(method === "run" && { value: (result.exitCode === 0 ? result.value : undefined) as T }),
  };
}

function tee(output: Output, onPiece: ((piece: Uint8Array) => void) | undefined): (piece: Uint8Array) => void {
  return (piece) => {
    output.add(piece);
    onPiece?.(piece);
  };
}

/** Returns the parameters that programs and processes share. */
export function commonParams(o: NodeRuntimeExecOptions): object {
  return { ...(o.env && { env: o.env }), ...(o.cwd !== undefined && { cwd: o.cwd }) };
}

function timeLimit(timeout: number | undefined): object {
  return timeout === undefined ? { maxTimeout: true } : { timeoutMs: milliseconds(timeout) };
}

/** Returns a time limit of at least a millisecond: for the server, 0 is the default. */
export function milliseconds(timeout: number): number {
  return Math.max(1, Math.ceil(timeout));
}

let programs = 0;

/** Returns the parameters of a program, which has the name that secure-exec would give it: imports begin in /tmp. */
export function programParams(code: string): { code: string; name: string; format: "esm" } {
  return { code, name: `/tmp/secure-exec-program-${programs++}.mjs`, format: "esm" };
}
