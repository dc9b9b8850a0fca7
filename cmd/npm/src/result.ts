/** Why a program was ended. */
export type Cause = "timeout" | "cpu" | "memory" | "pids" | "output" | "canceled" | "signal";

/** An error that the program did not catch. */
export interface GuestError {
  name: string;
  message: string;
  stack: string;

  /** The line of the code, for evaluations. Empty if it is unknown. */
  frame?: string;
  code?: string;
  properties?: Record<string, unknown>;
  cause?: GuestError;

  /** The first errors of an AggregateError, or the two of a SuppressedError. */
  errors?: GuestError[];

  /** The message with those of the causes and the rule that denied what failed, unless it is "name: message". */
  text?: string;

  /** The rule that denied the connection or look-up that caused an evaluation's error. */
  denied?: string;
}

/** What a run has used of the network. */
export interface NetworkUsage {
  connections: number;
  lookups: number;
  denied: number;
  bytesIn: number;
  bytesOut: number;
}

/** What a run has used. */
export interface Usage {
  cpuMs: number;
  peakMemoryBytes: number;
  pids: number;

  /** Absent if the run has not used the network. */
  network?: NetworkUsage;
}

/** An operation that permissions denied. Its target is the program's text, for display only. */
export interface Denial {
  scope: string;
  operation: string;
  target: string;

  /** The rule that denied it, such as `fs.rules[2]`. */
  rule: string;
  count: number;
  source: string;
}

/** A call of a host function. */
export interface Call {
  name: string;
  ms: number;
  argumentsBytes: number;
  resultBytes: number;

  /** The error that the program got. Empty on success. */
  error: string;
}

/** A line that an evaluation has logged. */
export interface LogLine {
  level: "log" | "info" | "warn" | "error" | "debug" | "stdout" | "stderr";
  text: string;

  /** Milliseconds since the start. */
  ms: number;
}

/** A TCP connection to a host outside, which has ended or failed. */
export interface OutgoingConnection {
  /** The name that the program has looked up. Empty if it used an address. */
  host: string;

  /** The address, with the port. */
  address: string;
  port: number;

  /** The rule that allowed it. */
  rule: string;
  bytesIn: number;
  bytesOut: number;
  ms: number;
  outcome: "closed" | "refused" | "unreachable" | "timeout" | "failed";
}

/** What all results of programs have. */
interface Ended<T> {
  /** Standard output as text. Invalid UTF-8 becomes U+FFFD. */
  stdout: string;

  /** Standard error as text. */
  stderr: string;

  /** Standard output. */
  stdoutBytes: Uint8Array;

  /** Standard error. */
  stderrBytes: Uint8Array;

  /** The exit status. 128 and the signal's number for a program that a signal has ended. */
  exitCode: number;

  /** The value that the program passed to `__return`. Absent if it returned none. */
  value?: T;

  /** The uncaught error that ended the program. */
  error?: GuestError;
  durationMs: number;

  /** How long the run has waited for its turn. */
  queuedMs: number;
  usage: Usage;

  /** Which fields are incomplete. */
  truncated: { stdout: boolean; stderr: boolean; denials: boolean };
  denials: Denial[];

  /** The calls of host functions. */
  calls: Call[];
  callsTruncated: boolean;

  /** How the program was started. */
  launcher: string;
  launcherReason?: string;
}

/** A program that has exited. */
export interface ExitedRun<T = unknown> extends Ended<T> {
  cause: "";
  signal: "";
}

/** A program that was ended. */
export interface StoppedRun<T = unknown> extends Ended<T> {
  cause: Cause;

  /** The signal that ended it, such as `SIGKILL`. */
  signal: string;
}

/** The result of a run. `cause` is empty if the program has exited. */
export type RunResult<T = unknown> = ExitedRun<T> | StoppedRun<T>;

interface Evaluated {
  logs: LogLine[];
  calls: Call[];
  durationMs: number;
  usage: Usage;
  denials: Denial[];

  /** Which lists are incomplete. */
  truncated: { logs: boolean; calls: boolean; denials: boolean };
}

/** A snippet that has been evaluated. */
export interface SuccessfulEvaluation<T = unknown> extends Evaluated {
  cause: "";
  error: null;

  /** The value of the last expression. Absent if the code has no value. */
  result?: T;

  /** Why the value of the last expression has no JSON. */
  noResult?: string;
}

/** A snippet that has failed. */
export interface FailedEvaluation extends Evaluated {
  /** Empty if the code has thrown. */
  cause: Cause | "";
  error: GuestError;
  result?: undefined;
  noResult?: undefined;
}

/** The result of an evaluation. `error` is null if the code has succeeded. */
export type Evaluation<T = unknown> = SuccessfulEvaluation<T> | FailedEvaluation;
