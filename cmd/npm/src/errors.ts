/** One invalid field of a request. */
export interface InvalidField {
  message: string;
  location?: string;
  value?: unknown;
}

/** Details of a {@link GaolError}. */
export interface ErrorDetails {
  status?: number;
  retryAfterMs?: number;
  errors?: InvalidField[];
  cause?: unknown;
}

/**
 * An error of gaol itself: the server has refused a request, or could not execute it. A program that
 * fails in a sandbox is no error, but a result.
 */
export class GaolError extends Error {
  /**
   * What has happened, for programs: `invalid`, `forbidden`, `not_found`, `conflict`, `quota`,
   * `too_large`, `no_space`, `no_program`, `not_executable`, `step_failed`, `closed`, `paused` (the sandbox is), `draining` (it has not begun), `interrupted` (it was
   * cut off by the end of the server), `internal`, or `connection`, `version`,
   * `no_server` and `protocol` of a {@link ConnectionError}.
   *
   * Servers that form a fleet also use `sandbox_lost` (its node has left, has died or was restarted: create another
   * sandbox), `unreachable` (a node cannot be reached now: repeat the operation, which has not begun, after
   * {@link retryAfterMs}), `node_lost` (a node was lost during the operation, which may have had effects: repeat it only if
   * it is idempotent) and `engine_unavailable` (the engine of the fleet, or of batch runs, cannot be reached now: repeat after
   * {@link retryAfterMs}).
   */
  readonly code: string;

  /** The HTTP status of the code, or 0 if no server has sent the error. */
  readonly status: number;

  /** When the request may succeed, in milliseconds. Set for some codes, such as `quota` and `unreachable`. */
  readonly retryAfterMs: number | undefined;

  /** The fields that are invalid, for the code `invalid`. */
  readonly errors: readonly InvalidField[];

  constructor(code: string, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = "GaolError";
    this.code = code;
    this.status = details.status ?? 0;
    this.retryAfterMs = details.retryAfterMs;
    this.errors = details.errors ?? [];
  }
}

/** There is no connection to a server, or it has ended. Sandboxes of the connection have ended, too. */
export class ConnectionError extends GaolError {
  declare readonly code: "connection" | "version" | "no_server" | "protocol";

  /**
   * Whether the request may have begun: it was sent, and its result is lost, as when the server restarts during a run.
   * What has not begun can be repeated without effects twice.
   */
  readonly began: boolean;

  constructor(code: ConnectionError["code"], message: string, details: ErrorDetails & { began?: boolean } = {}) {
    super(code, message, details);
    this.name = "ConnectionError";
    this.began = details.began ?? false;
  }

  /** Returns the error of a request that was sent. */
  afterSending(): ConnectionError {
    return new ConnectionError(this.code, this.message, { cause: this.cause, began: true });
  }
}
