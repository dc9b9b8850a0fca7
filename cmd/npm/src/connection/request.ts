import { GaolError, type ConnectionError, type InvalidField } from "../errors.js";
import { newCredit, newDebt } from "./credit.js";
import { newDeferred } from "./deferred.js";
import { maxChunk, receive, send, stream } from "../operations.js";
import { creditFrame, frame, parseCredit, parseJSON, parseObject, FrameError, type Frame } from "./frames.js";
import { isPromise } from "./ordered.js";
import type { OpenRequest, RequestOptions, SessionEvent } from "./session.js";

/** The part of a session that requests use. */
export interface Outlet {
  /** Sends a frame. */
  send(f: Uint8Array): void;

  /** Lets the request keep the process alive, or not. */
  keepAlive(yes: boolean): void;

  /** Forgets the request, which has ended. */
  ended(): void;
}

/** A request of a session, from {@link Session.open} until its result. */
export class Pending implements OpenRequest {
  readonly id: number;
  readonly result: Promise<unknown>;
  readonly started: Promise<unknown>;

  readonly #options: RequestOptions;
  readonly #out: Outlet;
  readonly #result = newDeferred<unknown>();
  readonly #started = newDeferred<unknown>();
  readonly #sent = newDeferred<void>();
  readonly #stdin = newCredit();
  readonly #debts = { [stream.stdout]: newDebt(), [stream.stderr]: newDebt(), [stream.events]: newDebt() };
  #state: "queued" | "sent" | "ended" = "queued";
  #keepsAlive = false;
  #failure: { reason: unknown } | undefined; // why the client has canceled it

  constructor(id: number, options: RequestOptions, out: Outlet) {
    this.id = id;
    this.result = this.#result.promise;
    this.started = this.#started.promise;
    this.#options = options;
    this.#out = out;
    options.signal?.addEventListener("abort", this.#abort, { once: true });
    options.cancelBy?.addEventListener("abort", this.#cancel, { once: true });
  }

  /** Records that the request was sent. */
  sent(): void {
    if (this.#state !== "queued") return;
    this.#state = "sent";
    this.#sent.resolve();
  }

  async write(piece: string | Uint8Array): Promise<void> {
    const bytes = typeof piece === "string" ? Buffer.from(piece) : piece;
    await this.#sent.promise;
    for (let at = 0; at < bytes.length && this.#state === "sent"; at += maxChunk) {
      const chunk = bytes.subarray(at, at + maxChunk);
      const wait = this.#stdin.take(chunk.length);
      if (wait !== undefined) await wait;
      if (this.#state === "sent") this.#out.send(frame(send.stdin, this.id, chunk));
    }
  }

  end(): void {
    void this.#sent.promise.then(() => {
      if (this.#state === "sent") this.#out.send(frame(send.stdin, this.id));
    });
  }

  cancel(): void {
    if (this.#state === "queued") this.fail(new GaolError("canceled", "gaol: the request was canceled", { status: 499 }));
    else if (this.#state === "sent") this.#out.send(frame(send.cancel, this.id));
  }

  keepAlive(yes: boolean): void {
    if (this.#state !== "ended") this.#setAlive(yes);
  }

  #setAlive(yes: boolean): void {
    if (this.#keepsAlive === yes) return;
    this.#keepsAlive = yes;
    this.#out.keepAlive(yes);
  }

  /** Cancels the request because of an error, which the result is rejected with. */
  abort(reason: unknown): void {
    if (this.#state === "queued") return this.fail(reason);
    this.#failure ??= { reason };
    this.cancel();
  }

  readonly #abort = (): void => this.abort(this.#options.signal?.reason);
  readonly #cancel = (): void => this.cancel();

  /** Ends the request because the connection has ended. */
  lose(error: ConnectionError): void {
    this.fail(this.#state === "sent" ? error.afterSending() : error);
  }

  /** Ends the request without a result. */
  fail(error: unknown): void {
    this.#finish(() => {
      this.#result.reject(error);
      this.#started.reject(error);
    });
  }

  #finish(settle: () => void): void {
    if (this.#state === "ended") return;
    this.#state = "ended";
    this.#options.signal?.removeEventListener("abort", this.#abort);
    this.#options.cancelBy?.removeEventListener("abort", this.#cancel);
    this.#sent.resolve();
    this.#stdin.stop();
    this.#setAlive(false);
    settle();
    this.#out.ended();
  }

  /** Handles a frame of the server. */
  receive(f: Frame): void {
    switch (f.kind) {
      case receive.result:
        return this.#succeed(parseJSON(f.body));
      case receive.error:
        return this.fail(this.#failure?.reason ?? problem(f.body));
      case receive.credit:
        return this.#stdin.add(parseCredit(f.body));
      case receive.stdout:
        return this.#deliver(stream.stdout, f.body.length, () => this.#options.onStdout?.(f.body));
      case receive.stderr:
        return this.#deliver(stream.stderr, f.body.length, () => this.#options.onStderr?.(f.body));
      case receive.event:
        return this.#event(parseObject(f.body), f.body.length);
    }
  }

  #succeed(value: unknown): void {
    if (this.#failure !== undefined) return this.fail(this.#failure.reason);
    this.#finish(() => {
      this.#result.resolve(value);
      this.#started.reject(new GaolError("closed", "gaol: it has ended before it has started", { status: 410 }));
    });
  }

  #event(event: Record<string, unknown>, size: number): void {
    if (typeof event["event"] !== "string") throw new FrameError("an event without a name");
    const started = event["event"] === "started";
    if (started) this.#started.resolve(event["data"]);
    this.#deliver(stream.events, size, () => (started ? undefined : this.#options.onEvent?.(event as unknown as SessionEvent)));
  }

  /** Passes a piece on. The server gets credit for it when it was processed. */
  #deliver(of: 1 | 2 | 3, size: number, handle: () => unknown): void {
    this.#debts[of].received(size);
    let done: unknown;
    try {
      done = handle();
    } catch (err) {
      this.abort(err);
    }
    if (!isPromise(done)) return this.#processed(of, size);
    done.then(
      () => this.#processed(of, size),
      (err: unknown) => {
        this.abort(err);
        this.#processed(of, size);
      },
    );
  }

  #processed(of: 1 | 2 | 3, size: number): void {
    const due = this.#debts[of].processed(size);
    if (due > 0 && this.#state === "sent") this.#out.send(creditFrame(this.id, of, due));
  }
}

/** Parses the body of an error frame: a problem, as in the HTTP API. */
export function problem(body: Uint8Array): GaolError {
  const p = parseObject(body);
  if (typeof p["code"] !== "string") throw new FrameError("an error without a code");
  return problemError(p["code"], p);
}

/** Returns the error of a problem. */
export function problemError(code: string, p: Record<string, unknown>): GaolError {
  const status = typeof p["status"] === "number" ? p["status"] : 0;
  const detail = typeof p["detail"] === "string" && p["detail"] !== "" ? p["detail"] : `${code} (status ${status})`;
  return new GaolError(code, detail.startsWith("gaol: ") ? detail : `gaol: ${detail}`, {
    status,
    ...(typeof p["retryAfterMs"] === "number" && { retryAfterMs: p["retryAfterMs"] }),
    errors: invalidFields(p["errors"]),
  });
}

function invalidFields(list: unknown): InvalidField[] {
  if (!Array.isArray(list)) return [];
  return list.flatMap((e: unknown) => {
    const { message, location, value } = (e ?? {}) as Record<string, unknown>;
    if (typeof message !== "string") return [];
    return [{ message, ...(typeof location === "string" && { location }), ...(value !== undefined && { value }) }];
  });
}
