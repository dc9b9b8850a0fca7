import type { BatchRun as Batch, Call, Cause, Evaluation as Evaluated, GuestError, Run, Truncated } from "./operations.js";

export type { BatchError, Call, Cause, Denial, GuestError, LogLine, NetworkUsage, OutgoingConnection, Usage } from "./operations.js";

/**
 * A list that nodes of a fleet contribute to. If some did not reply in time, `missing` has their ids, and the list lacks
 * their part.
 */
export type FleetList<T> = T[] & { readonly missing?: readonly string[] };

/** Returns a list with the nodes that did not reply, if there are any. */
export function fleetList<T>(list: T[], missing: readonly string[] = []): FleetList<T> {
  return missing.length > 0 ? Object.assign(list, { missing }) : list;
}

/** What all results of programs have. */
interface Ended<T> extends Omit<Run, "cause" | "signal" | "value" | "queuedMs" | "calls" | "truncated"> {
  /** Standard output as text. Invalid UTF-8 becomes U+FFFD. */
  stdout: string;

  /** Standard error as text. */
  stderr: string;

  /** Standard output. */
  stdoutBytes: Uint8Array;

  /** Standard error. */
  stderrBytes: Uint8Array;

  /** The value that the program passed to `__return`. Absent if it returned none. */
  value?: T;

  /** How long the run has waited for its turn. */
  queuedMs: number;

  /** The calls of host functions. */
  calls: Call[];
  truncated: Required<Truncated>;
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

/** Describes a batch run. One that is done has either a result or an error, for an hour. */
export interface BatchRun<T = unknown> extends Omit<Batch, "result"> {
  /** How it ended. The cause `lost` means that no machine has completed it, although it has begun 20 times. */
  result?: RunResult<T>;
}

/** A snippet that has been evaluated. */
export interface SuccessfulEvaluation<T = unknown> extends Omit<Evaluated, "value"> {
  cause: "";
  error: null;

  /** The value of the last expression. Absent if the code returns no value. */
  value?: T;
}

/** A snippet that has failed. The cause is empty if the code has thrown. */
export interface FailedEvaluation extends Omit<Evaluated, "value" | "noValue"> {
  error: GuestError;
  value?: undefined;
  noValue?: undefined;
}

/** The result of an evaluation. `error` is null if the code has succeeded. */
export type Evaluation<T = unknown> = SuccessfulEvaluation<T> | FailedEvaluation;
