import type { Commands } from "./commands.js";
import type { Connection } from "./connection/connection.js";
import type { Input } from "./connection/session.js";
import type { Globals } from "./functions.js";
import type { Permissions } from "./permissions.js";
import type { LogLine } from "./result.js";

/** Limits of the runs of a sandbox, and of its files. Omitted ones have the default. */
export interface Limits {
  /** Memory of a run. By default 256 MiB. Rounded up to a multiple of 64 MiB, and above 512 MiB of 256 MiB. */
  memoryBytes?: number;

  /** Processors that a run keeps busy. By default 1. */
  cpus?: number;

  /** Processor time of a run. By default without limit. */
  cpuTimeMs?: number;

  /** Processes and threads of a run. By default 64. */
  pids?: number;

  /** Open files of a process. By default 1,024. */
  files?: number;

  /** Bytes written to the sandbox's files. By default 64 MiB. */
  diskBytes?: number;

  /** Files and folders in the sandbox. By default 16,384. */
  inodes?: number;

  /** Captured bytes of each output of a run. By default 16 MiB, which is the most. */
  outputBytes?: number;

  /** Bytes of the returned value. By default 16 MiB, which is the most. */
  valueBytes?: number;
}

/** Limits of the calls of host functions. */
export interface CallLimits {
  /** Calls of one run. By default 100,000. */
  calls?: number;

  /** Calls of one run at once. By default 16. */
  concurrent?: number;

  /** Bytes of the JSON of a call's arguments. By default 1 MiB. */
  argumentsBytes?: number;

  /** Bytes of the JSON of a result. By default 4 MiB. */
  resultBytes?: number;

  /** Wall-clock time of a call. By default 30,000. */
  timeoutMs?: number;
}

/** A folder of the server's machine in a sandbox. The server's operator decides which are allowed. */
export interface Mount {
  source: string;
  target: string;

  /** Read-only (the default), writable if you may write there, or a private copy on write. */
  access?: "ro" | "rw" | "cow";
}

/** What a sandbox consists of. */
export interface TreeOptions {
  /** The name of an image of the server. */
  image?: string | undefined;

  /** A snapshot with the initial content of the sandbox's folders. */
  snapshot?: string | undefined;

  /** Files, by path in the sandbox. */
  files?: Readonly<Record<string, string | Uint8Array>> | undefined;
  limits?: Limits | undefined;

  /**
   * What confines the sandbox: a name that the server allows, such as `native` or `runc`. A server of this program
   * alone also takes `crun`, and `oci=/path` of an OCI runtime. By default the server's choice.
   */
  isolation?: string | undefined;

  /** Allow writes to writable mounts only. */
  readOnly?: boolean | undefined;
  hostname?: string | undefined;
  mounts?: readonly Mount[] | undefined;

  /**
   * BigInts in values of programs and in arguments of functions arrive as integers: as BigInts if a number cannot hold
   * them. By default they are an error. BigInts in `globals` and results of functions always arrive as BigInts. Needs Node 22.
   */
  bigInts?: boolean | undefined;

  /** A folder of packages of the server's machine, and where programs find it. By default that is their working directory's node_modules. */
  nodeModules?: string | { hostPath: string; guestPath?: string } | undefined;
}

/** Which connection to use. */
export interface OnConnection {
  /** By default the connection of the whole program, which uses the server that the environment chooses. */
  connection?: Connection | undefined;
}

/** How to start a program. */
export interface ProgramOptions {
  /** What the program may do. In a sandbox it can only be less than the sandbox allows. */
  permissions?: Permissions | undefined;

  /** The program's file name, without a slash. Its ending determines the language: .mjs, .cjs, .ts, .tsx, ... */
  name?: string | undefined;

  /** The module format. By default, `auto`, the name and the syntax determine it. */
  format?: "auto" | "esm" | "cjs" | "detect" | undefined;

  /** `process.argv` from its third element on. */
  args?: readonly string[] | undefined;
  env?: Readonly<Record<string, string>> | undefined;
  cwd?: string | undefined;
}

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

/** Options of a process. */
export interface SpawnOptions extends ProgramOptions {
  /** Wall-clock time in milliseconds. By default the longest that the server allows. */
  timeoutMs?: number | undefined;

  /** Kills the process. */
  signal?: AbortSignal | undefined;

  /** Send events, for {@link Process.events}. Then read these. */
  events?: boolean | undefined;

  /** Give the process a terminal, which has no standard error. */
  terminal?: { rows?: number; cols?: number; term?: string } | undefined;
}

/** Bounds of evaluations. */
export interface EvaluateLimits {
  /** Calls of host functions. By default 50. */
  maxCalls?: number | undefined;

  /** Bytes of JSON that the value may have. By default 1 MiB. */
  maxOutput?: number | undefined;

  /** Lines of console to keep. By default 100. */
  maxLogs?: number | undefined;

  /** Characters of one line. By default 1,000. */
  maxLogLength?: number | undefined;
}

/** Options of an evaluation. */
export interface EvaluateOptions extends EvaluateLimits, TimeLimit {
  /** Variables of the snippet: values, functions, and objects that have both. */
  globals?: Globals | undefined;
  permissions?: Permissions | undefined;
  env?: Readonly<Record<string, string>> | undefined;
  cwd?: string | undefined;

  /** Called with each line of the logs as it is printed. */
  onLog?: ((line: LogLine) => unknown) | undefined;
}

/** Options of a context. */
export interface ContextOptions {
  /** Variables of all cells: values, functions, and objects that have both. */
  globals?: Globals | undefined;
  permissions?: Permissions | undefined;
  env?: Readonly<Record<string, string>> | undefined;
  cwd?: string | undefined;

  /** Keep the value of the last cell in `globalThis._`. */
  lastValue?: boolean | undefined;

  /** How long the context waits for a cell. By default 600,000. */
  idleTimeoutMs?: number | undefined;
}

/** Options of a cell. */
export interface CellOptions extends EvaluateLimits, TimeLimit {
  /** Variables to set before the cell: values only. */
  globals?: Globals | undefined;

  /** Called with each line of the logs as it is printed. */
  onLog?: ((line: LogLine) => unknown) | undefined;
}

/** Options of a sandbox. */
export interface SandboxOptions extends TreeOptions, OnConnection {
  permissions?: Permissions | undefined;

  /** Environment variables of all runs. */
  env?: Readonly<Record<string, string>> | undefined;

  /** The working directory. By default /workspace. */
  cwd?: string | undefined;

  /** How long the sandbox lives without use. By default, and at most, what the server allows. */
  idleTimeoutMs?: number | undefined;

  /** How long it lives at most. */
  lifetimeMs?: number | undefined;

  /** Keep the sandbox when the connection ends. It can have no functions and commands then. */
  detached?: boolean | undefined;

  /** Variables of all programs: values, functions, and objects that have both. */
  globals?: Globals | undefined;

  /** Limits of the calls of functions. */
  calls?: CallLimits | undefined;

  /** Commands on the PATH of all programs that call this program. Set it, if only to `{}`, to add commands later. */
  commands?: Commands | undefined;

  /** TCP ports of the server's machine that programs reach on localhost, if the server and the permissions allow that. */
  hostPorts?: readonly number[] | undefined;

  /** Cancels the creation. */
  signal?: AbortSignal | undefined;
}
