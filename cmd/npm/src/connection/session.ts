import { ConnectionError, GaolError } from "../errors.js";
import { newCalls } from "./calls.js";
import type { Channel } from "./channel.js";
import { newDeferred } from "./deferred.js";
import { feed } from "./feed.js";
import { maxFrame, receive, send, type Host } from "../operations.js";
import { frame, FrameError, parse, type Frame } from "./frames.js";
import { ordered } from "./ordered.js";
import { Pending } from "./request.js";
import { newSlots, type Slot } from "./slots.js";

/** An event of a request, as the server sends it. */
export interface SessionEvent {
  event: string;
  data: unknown;
}

/** A function that sandboxed programs call. The signal aborts when the result is no longer wanted. */
export type Handler = (args: unknown[], signal: AbortSignal) => unknown;

/** Standard input of a request. */
export type Input = string | Uint8Array | Iterable<string | Uint8Array> | AsyncIterable<string | Uint8Array>;

/** Options of {@link Session.request} and {@link Session.open}. */
export interface RequestOptions {
  /**
   * Called for each piece of standard output. If it returns a promise, the server gets credit for the
   * piece when that is resolved, and the sandboxed program waits meanwhile. Pieces are passed on as
   * they arrive, at most 256 KiB (and a piece) without credit. Without a function, output is dropped.
   */
  onStdout?: ((piece: Uint8Array) => unknown) | undefined;

  /** The same for standard error. */
  onStderr?: ((piece: Uint8Array) => unknown) | undefined;

  /** The same for events other than `started`. */
  onEvent?: ((event: SessionEvent) => unknown) | undefined;

  /** Cancels the request. The result is rejected with the signal's reason when the server has ended it. */
  signal?: AbortSignal | undefined;

  /** Asks the server to end the request, as {@link OpenRequest.cancel} does. The result stays. */
  cancelBy?: AbortSignal | undefined;

  /** Standard input; true: the caller writes it. The request ends without reading all of it, if the program does. */
  stdin?: Input | true | undefined;

  /**
   * Ask for events, with which a run also sends its output while it is in progress, and a request that starts a process
   * or a context lasts until its end. By default if there is a function for them.
   */
  events?: boolean | undefined;

  /** Functions and commands of this program that sandboxed programs can call. */
  host?: Host | undefined;

  /** Let a new sandbox outlive the connection. */
  detached?: boolean | undefined;
}

/** A request without a result so far. */
export interface OpenRequest {
  /** Settles when the request has ended. */
  readonly result: Promise<unknown>;

  /** Resolves with the data of the event `started`, and is rejected if the request ends before. */
  readonly started: Promise<unknown>;

  /** Sends standard input. It resolves when there is room for more. */
  write(piece: string | Uint8Array): Promise<void>;

  /** Ends standard input. */
  end(): void;

  /** Asks the server to end the request, which then returns a result. */
  cancel(): void;

  /** Sets whether the request keeps the Node process alive. It does at first. */
  keepAlive(yes: boolean): void;
}

/** A connection to a server. Its methods may be called at any time, and in any order. */
export interface Session {
  /**
   * Sends a request, and returns its result. Functions for output and events are called one after
   * the other, and have returned before the promise settles.
   */
  request(method: string, params?: object, options?: RequestOptions): Promise<unknown>;

  /** Sends a request that is used while it is in progress, such as a process or a context. */
  open(method: string, params?: object, options?: RequestOptions): OpenRequest;

  /** Makes a function callable. It returns the `id` for declarations of the option `host`. */
  register(handler: Handler): number;

  /** Forgets a function. Calls of it fail. */
  unregister(id: number): void;

  /** Whether the server is of this program alone, which it trusts like root. */
  readonly own: boolean;

  /** Why the connection has ended. Undefined while it has not. */
  readonly error: ConnectionError | undefined;

  /** Resolves when the connection has ended. */
  readonly closed: Promise<void>;

  /** Ends the connection, and all that it has created. */
  close(): Promise<void>;
}

/** How long the server may not reply to a ping while a request is in progress. */
const pingEvery = 30_000;

/** A server of this program alone. */
export interface OwnServer {
  /** Adds the server's output to an error. */
  describe(error: ConnectionError): ConnectionError;
}

/** Returns the session on a connection that has just been made. */
export function newSession(channel: Channel, ownServer?: OwnServer): Session {
  return new SocketSession(channel, ownServer);
}

class SocketSession implements Session {
  readonly closed: Promise<void>;
  readonly own: boolean;
  error: ConnectionError | undefined;

  readonly #channel: Channel;
  readonly #ownServer: OwnServer | undefined;
  readonly #closed = newDeferred<void>();
  readonly #requests = new Map<number, Pending>();
  readonly #slots = newSlots();
  readonly #calls = newCalls((f) => this.#send(f));
  #lastId = 0; // of a request
  #keepingAlive = 0; // requests that keep the process alive
  #hasReplied = true; // since the last ping
  #pings: NodeJS.Timeout | undefined;

  constructor(channel: Channel, ownServer: OwnServer | undefined) {
    this.closed = this.#closed.promise;
    this.own = ownServer !== undefined;
    this.#channel = channel;
    this.#ownServer = ownServer;
    channel.listen({
      message: (data, binary) => this.#message(data, binary),
      pong: () => void (this.#hasReplied = true),
      close: (reason) => {
        this.#end(new ConnectionError("connection", `gaol: the connection to the server has ended${reason && `: ${reason}`}`));
        this.#closed.resolve();
      },
    });
    channel.keepAlive(false);
  }

  async request(method: string, params: object = {}, options: RequestOptions = {}): Promise<unknown> {
    const order = ordered(options);
    const r = this.#open(method, params, order.options, false);
    const value = await r.result;
    await order.done();
    return value;
  }

  open(method: string, params: object = {}, options: RequestOptions = {}): OpenRequest {
    return this.#open(method, params, options, true);
  }

  register(handler: Handler): number {
    return this.#calls.register(handler);
  }

  unregister(id: number): void {
    this.#calls.unregister(id);
  }

  async close(): Promise<void> {
    this.#end(new ConnectionError("connection", "gaol: the connection was closed"));
    this.#channel.keepAlive(true); // until the server has replied
    await this.closed;
  }

  #open(method: string, params: object, options: RequestOptions, longLived: boolean): Pending {
    let slot: Slot | undefined;
    const r = new Pending(this.#nextId(), options, {
      send: (f) => this.#send(f),
      keepAlive: (yes) => this.#keepAlive(yes ? 1 : -1),
      ended: () => this.#forget(r, slot),
    });
    this.#requests.set(r.id, r);
    r.keepAlive(true);
    try {
      options.signal?.throwIfAborted();
      if (this.error !== undefined) throw this.error;
      const body = encodeRequest(method, params, options);
      slot = { longLived, bytes: body.length, start: () => this.#start(r, body) };
      this.#slots.acquire(slot);
      if (options.cancelBy?.aborted) r.cancel();
      if (options.stdin !== undefined && options.stdin !== true) feed(r, options.stdin).catch((err: unknown) => r.abort(err));
    } catch (err) {
      r.fail(err);
    }
    return r;
  }

  #start(r: Pending, body: Uint8Array): void {
    if (this.error !== undefined) return; // the end of others has freed the slot
    this.#send(frame(send.request, r.id, body));
    r.sent();
  }

  #forget(r: Pending, slot: Slot | undefined): void {
    this.#requests.delete(r.id);
    if (slot !== undefined) this.#slots.release(slot);
  }

  #nextId(): number {
    do this.#lastId = this.#lastId >= 0xffffffff ? 1 : this.#lastId + 1;
    while (this.#requests.has(this.#lastId));
    return this.#lastId;
  }

  /** Counts requests that keep the process alive. */
  #keepAlive(change: number): void {
    this.#keepingAlive += change;
    const busy = this.#keepingAlive > 0 && this.error === undefined;
    this.#channel.keepAlive(busy);
    if (busy && this.#pings === undefined) {
      this.#hasReplied = true;
      this.#pings = setInterval(() => this.#ping(), pingEvery).unref();
    } else if (!busy) {
      clearInterval(this.#pings);
      this.#pings = undefined;
    }
  }

  #ping(): void {
    if (!this.#hasReplied) return this.#end(new ConnectionError("connection", `gaol: the server has not replied for ${pingEvery / 1000} seconds`));
    this.#hasReplied = false;
    this.#channel.ping();
  }

  #send(f: Uint8Array): void {
    if (this.error === undefined) this.#channel.send(f);
  }

  #message(data: Uint8Array, binary: boolean): void {
    if (this.error !== undefined) return;
    this.#hasReplied = true;
    try {
      if (!binary) throw new FrameError("a text message");
      this.#handle(parse(data));
    } catch (cause) {
      const what = cause instanceof FrameError ? cause.message : "a message that the client cannot handle";
      this.#end(new ConnectionError("protocol", `gaol: the server has sent ${what}`, { cause }), 1002);
    }
  }

  #handle(f: Frame): void {
    if (f.kind === receive.call) this.#calls.call(f);
    else if (f.kind === receive.abandon) this.#calls.abandon(f.id);
    else this.#requests.get(f.id)?.receive(f); // frames of requests that have ended were on their way
  }

  /** Ends the connection, and everything on it. */
  #end(error: ConnectionError, code = 1000): void {
    if (this.error !== undefined) return;
    this.error = this.#ownServer?.describe(error) ?? error;
    this.#channel.close(code, code === 1000 ? "" : error.message);
    for (const r of [...this.#requests.values()]) r.lose(this.error);
    this.#calls.stop(this.error);
    this.#keepAlive(0);
  }
}

function encodeRequest(method: string, params: object, { stdin, events, onEvent, host, detached }: RequestOptions): Uint8Array {
  const request = { method, params, stdin: stdin !== undefined, events: events ?? onEvent !== undefined, host, detached };
  const body = Buffer.from(JSON.stringify(request, base64));
  if (body.length <= maxFrame) return body;
  throw new GaolError("too_large", `gaol: ${method}: the request has ${body.length} bytes, the limit is ${maxFrame}`, { status: 413 });
}

/** Bytes in requests are base64. As in values.ts, this is the holder of the value. */
function base64(this: unknown, key: string, value: unknown): unknown {
  const original = (this as Record<string, unknown>)[key];
  return original instanceof Uint8Array ? Buffer.from(original).toString("base64") : value;
}
