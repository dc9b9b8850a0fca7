import type { Commands } from "./commands.js";
import type { Connection } from "./connection/connection.js";
import type { Input } from "./connection/session.js";
import type { Globals } from "./functions.js";
import type { CallLimits, Cell, ContextRequest, LogLine, ProcessRequest, Program, SandboxRequest, Snippet, Timeout, Tree } from "./operations.js";

export type { CallLimits, Limits, Mount } from "./operations.js";

/** The content, limits and permissions of a sandbox. */
export interface TreeOptions extends Omit<Tree, "files" | "fileBytes" | "hostPorts"> {
  /** Files, by path in the sandbox. */
  files?: Readonly<Record<string, string | Uint8Array>> | undefined;
}

/** Which connection to use. */
export interface OnConnection {
  /** By default the connection of the whole program, which uses the server that the environment chooses. */
  connection?: Connection | undefined;
}

/** An option of operations that can be canceled. */
export interface Cancelable {
  signal?: AbortSignal | undefined;
}

/** How to start a program. */
export interface ProgramOptions extends Omit<Program, "code" | "stdin" | keyof Timeout> {}

/** A time limit. */
export interface TimeLimit {
  /** Wall-clock time in milliseconds. By default 30,000. 0 and Infinity mean the longest that the server allows. */
  timeoutMs?: number | undefined;

  /** Ends the program. The promise is rejected with the signal's reason. */
  signal?: AbortSignal | undefined;
}

/** Options of a run. */
export interface RunOptions extends ProgramOptions, TimeLimit {
  /** Standard input. By default it is empty. */
  stdin?: Input | undefined;

  /** Called with each piece of standard output as it is printed. The program waits while the returned promise is pending. */
  onStdout?: ((piece: Uint8Array) => unknown) | undefined;

  /** The same for standard error. */
  onStderr?: ((piece: Uint8Array) => unknown) | undefined;
}

/** Options of a run of a program of the image. */
export type CommandOptions = Omit<RunOptions, "name" | "format" | "args">;

/** Options of {@link submit}: of a run, and of its sandbox. */
export interface SubmitOptions extends ProgramOptions, Pick<TimeLimit, "timeoutMs">, Omit<TreeOptions, "mounts">, OnConnection {
  /** The name of the batch run. A repetition with the same key and request is the same batch run. By default a random key. */
  key?: string | undefined;

  /** Standard input. By default it is empty. */
  stdin?: string | undefined;
}

/** Options of {@link submitCommand}. */
export type SubmitCommandOptions = Omit<SubmitOptions, "name" | "format" | "args">;

/** Options of {@link waitBatchRun}. */
export interface WaitBatchRunOptions extends OnConnection {
  /** How long to wait, in milliseconds. By default, or if it is 0 or Infinity, until the end. */
  timeoutMs?: number | undefined;

  /** Ends the waiting, but not the batch run. The promise is rejected with the signal's reason. */
  signal?: AbortSignal | undefined;
}

/** Options of a process. */
export interface SpawnOptions extends Omit<ProcessRequest, "code" | "command" | "whenFull"> {
  /** Kills the process. */
  signal?: AbortSignal | undefined;

  /** Keep events for {@link Process.events}. Then read these. */
  events?: boolean | undefined;
}

/** Bounds of evaluations. */
export interface EvaluateLimits extends Pick<Cell, "maxOutput" | "maxLogs" | "maxLogLength"> {
  /** Calls of host functions. By default 50. */
  maxCalls?: number | undefined;
}

/** Options of a cell. */
export interface CellOptions extends EvaluateLimits, TimeLimit {
  /** Variables to set before the cell: values only. */
  globals?: Globals | undefined;

  /** Called with each line of the logs as it is printed. */
  onLog?: ((line: LogLine) => unknown) | undefined;
}

/** Options of an evaluation. Its variables are values, functions, and objects that have both. */
export interface EvaluateOptions extends CellOptions, Pick<Snippet, "permissions" | "env" | "cwd"> {}

/** Options of a context. */
export interface ContextOptions extends Omit<ContextRequest, "globals" | "maxIdleTimeout"> {
  /** Variables of all cells: values, functions, and objects that have both. */
  globals?: Globals | undefined;
}

/** Options of a sandbox. */
export interface SandboxOptions extends TreeOptions, OnConnection, Omit<SandboxRequest, Exclude<keyof Tree, "hostPorts"> | "globals"> {
  /** Keep the sandbox when the connection ends. It can have no functions and commands then. */
  detached?: boolean | undefined;

  /** Variables of all programs: values, functions, and objects that have both. */
  globals?: Globals | undefined;

  /** Limits of the calls of functions. */
  calls?: CallLimits | undefined;

  /** Commands on the PATH of all programs that call this program. Set it, if only to `{}`, to add commands later. */
  commands?: Commands | undefined;

  /** Cancels the creation. */
  signal?: AbortSignal | undefined;
}
