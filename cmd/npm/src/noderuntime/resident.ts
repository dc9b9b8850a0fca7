import { randomUUID } from "node:crypto";
import { GaolError } from "../errors.js";
import { checkOptions } from "../names.js";
import { type Capture, newCapture } from "../capture.js";
import { defaultOutput } from "../runs.js";
import type { NodeRuntimeExecResult } from "./execution.js";
import type { NodeRuntimeProcess, NodeRuntimeSpawnOptions } from "./process.js";

/** Options of {@link NodeRuntime.createResidentRunner}. There are none yet. */
export type NodeRuntimeResidentRunnerOptions = Record<string, never>;

/** Options of {@link NodeRuntimeResidentRunner.exec}. */
export interface NodeRuntimeResidentRunnerExecOptions {
  /** The longest time that the program may take, in milliseconds. Beyond it the runner ends. */
  timeout?: number;
}

/** A process that executes many programs, one after the other. They share its memory. */
export interface NodeRuntimeResidentRunner {
  /** Executes an ES module. Its exit status is 1 if it throws. */
  exec(code: string, options?: NodeRuntimeResidentRunnerExecOptions): Promise<NodeRuntimeExecResult>;
  /** Ends the process. */
  dispose(): Promise<void>;
}

/**
 * The program of a runner. It reads a line with an id and code for each program, imports the code, and
 * prints the id and the exit status on both outputs when it is done. Lines of a program cannot be taken
 * for that: the id is random.
 */
const source = `
import { createInterface } from "node:readline";
import { inspect } from "node:util";
const write = process.stdout.write.bind(process.stdout), writeError = process.stderr.write.bind(process.stderr);
let count = 0;
for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  const { id, code } = JSON.parse(line);
  let exitCode = 0;
  try {
    await import("data:text/javascript;base64," + Buffer.from(code).toString("base64") + "#" + count++);
  } catch (error) {
    exitCode = 1;
    writeError((error instanceof Error ? error.stack ?? error.message : inspect(error)) + "\\n");
  }
  write("\\0" + id + exitCode + "\\n");
  writeError("\\0" + id + exitCode + "\\n");
}
`;

/** A program of a runner that is in progress. */
interface Active {
  readonly stdout: Demarcated;
  readonly stderr: Demarcated;
  readonly resolve: (result: NodeRuntimeExecResult) => void;
  readonly reject: (reason: unknown) => void;
}

/** The programs of a runner, one at a time. */
interface Programs {
  /** Begins a program, and returns its result. It throws if another one is in progress. */
  begin(id: string): Promise<NodeRuntimeExecResult>;
  /** Takes a piece of the process's output. */
  receive(of: "stdout" | "stderr", piece: Uint8Array): void;
  /** Rejects the program in progress, and all that follow. */
  stop(why: string): void;
}

function newPrograms(): Programs {
  let active: Active | undefined;
  let gone: GaolError | undefined;
  const finish = (settle: (a: Active) => void): void => {
    const finished = active;
    active = undefined;
    if (finished !== undefined) settle(finished);
  };
  return {
    begin(id) {
      if (gone !== undefined) throw gone;
      if (active !== undefined) throw new GaolError("conflict", "resident runner supports one in-flight exec");
      return new Promise((resolve, reject) => {
        active = { stdout: newDemarcated(id), stderr: newDemarcated(id), resolve, reject };
      });
    },
    receive(of, piece) {
      active?.[of].add(piece);
      if (active?.stdout.exitCode !== undefined && active.stderr.exitCode !== undefined) finish((a) => a.resolve(resultOf(a)));
    },
    stop(why) {
      gone ??= new GaolError("closed", why);
      finish((a) => a.reject(gone));
    },
  };
}

/** How a runner starts its process. */
type Spawn = (code: string, options: NodeRuntimeSpawnOptions) => Promise<NodeRuntimeProcess>;

/** Starts a runner as a process. */
export async function newResidentRunner(spawn: Spawn): Promise<NodeRuntimeResidentRunner> {
  const programs = newPrograms();
  const process = await spawn(source, { onStdout: (p) => programs.receive("stdout", p), onStderr: (p) => programs.receive("stderr", p) });
  process.wait().then(
    (code) => programs.stop(`resident runner has ended with status ${code}`),
    (err: unknown) => programs.stop(`resident runner has ended: ${String(err)}`),
  );
  const kill = (why: string): void => {
    programs.stop(why);
    process.kill("SIGKILL");
  };
  return {
    async exec(code, options = {}) {
      const { timeout } = checkOptions("exec", options, { timeout: true });
      const id = randomUUID();
      const result = programs.begin(id);
      process.writeStdin(`${JSON.stringify({ id, code })}\n`);
      const timer = timeout === undefined ? undefined : setTimeout(() => kill(`resident runner timed out after ${timeout}ms`), timeout);
      return result.finally(() => clearTimeout(timer));
    },
    async dispose() {
      kill("resident runner is not running");
      await process.wait().catch(() => undefined);
    },
  };
}

function resultOf(a: Active): NodeRuntimeExecResult {
  const [stdout, stderr] = [a.stdout.end(), a.stderr.end()];
  const cut = { stdout: stdout.truncated, stderr: stderr.truncated };
  const text = ({ bytes }: { bytes: Uint8Array }): string => new TextDecoder().decode(bytes);
  const exitCode = a.stdout.exitCode ?? 1;
  return { stdout: text(stdout), stderr: text(stderr), exitCode, ...((cut.stdout || cut.stderr) && { truncated: cut }) };
}

/** An output up to the mark of a program's end. */
interface Demarcated extends Capture {
  /** Set when the mark has arrived. */
  readonly exitCode: number | undefined;
}

function newDemarcated(id: string): Demarcated {
  const mark = Buffer.from(`\0${id}`);
  const output = newCapture(defaultOutput);
  let rest = Buffer.alloc(0); // may be the beginning of the mark
  let exitCode: number | undefined;
  return {
    end: () => output.end(),
    get exitCode() {
      return exitCode;
    },
    add(piece) {
      if (exitCode !== undefined) return;
      rest = Buffer.concat([rest, piece]);
      const at = rest.indexOf(mark);
      const status = rest[at + mark.length];
      if (at >= 0 && status !== undefined) exitCode = Number(String.fromCharCode(status));
      const keep = at >= 0 ? rest.length - at : Math.min(rest.length, mark.length);
      output.add(rest.subarray(0, rest.length - keep));
      rest = rest.subarray(rest.length - keep);
    },
  };
}
