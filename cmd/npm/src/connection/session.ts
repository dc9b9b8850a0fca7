import type { ConnectionError } from "../errors.js";

/** An event of a request, as the server sends it. */
export interface SessionEvent {
  type: string;
  [field: string]: unknown;
}

/** A function that sandboxed programs call. The signal says that the result is no longer wanted. */
export type Handler = (args: unknown[], signal: AbortSignal) => unknown;

/** Standard input of a request. */
export type Input = string | Uint8Array | Iterable<string | Uint8Array> | AsyncIterable<string | Uint8Array>;

/** Options of {@link Session.open}. */
export interface OpenOptions {
  /**
   * Called for each piece of standard output. If it returns a promise, the server gets credit for the
   * piece when that is resolved, and the sandboxed program waits meanwhile. Pieces are passed on as
   * they arrive, at most 256 KiB (and a piece) without credit. Without a function, output is dropped.
   */
  onStdout?: ((piece: Uint8Array) => unknown) | undefined;

  /** The same for standard error. */
  onStderr?: ((piece: Uint8Array) => unknown) | undefined;

  /** The same for events. */
  onEvent?: ((event: SessionEvent) => unknown) | undefined;

  /** Whether the request keeps the Node process alive. By default it does. */
  ref?: boolean | undefined;

  /** Cancels the request. The result is rejected with the signal's reason when the server has ended it. */
  signal?: AbortSignal | undefined;
}

/** Options of {@link Session.request}. */
export interface RequestOptions extends OpenOptions {
  /** Standard input. The request ends without reading all of it, if the program does. */
  stdin?: Input | undefined;
}

/** A request that has no result yet. */
export interface OpenRequest {
  /** What other requests call it, as `process` or `context`. */
  readonly id: number;

  /** Settles when the request has ended. */
  readonly result: Promise<unknown>;

  /** Resolves at the event `started`, and is rejected if the request ends before. */
  readonly started: Promise<SessionEvent>;

  /** Sends standard input. It resolves when there is room for more. */
  write(piece: string | Uint8Array): Promise<void>;

  /** Ends standard input. */
  end(): void;

  /** Asks the server to end the request, which then has a result. */
  cancel(): void;
}

/** A connection to a server. Its methods may be called at any time, and in any order. */
export interface Session {
  /**
   * Sends a request, and returns its result. Functions for output and events are called one after
   * the other, and have returned before the promise settles.
   */
  request(method: string, params?: object, options?: RequestOptions): Promise<unknown>;

  /** Sends a request that is used while it is in progress, such as a process or a context. */
  open(method: string, params?: object, options?: OpenOptions): OpenRequest;

  /** Makes a function callable. It returns the `id` for declarations in `functions` and `commands`. */
  register(handler: Handler): number;

  /** Forgets a function. Calls of it fail. */
  unregister(id: number): void;

  /** Why the connection has ended. Undefined while it has not. */
  readonly error: ConnectionError | undefined;

  /** Resolves when the connection has ended. */
  readonly closed: Promise<void>;

  /** Ends the connection, and all that it has created. */
  close(): Promise<void>;
}
