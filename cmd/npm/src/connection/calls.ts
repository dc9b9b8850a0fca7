import { maxCalls, maxFrame, send } from "../operations.js";
import { frame, FrameError, parseCall, type Frame } from "./frames.js";
import type { Handler } from "./session.js";
import { encode } from "./values.js";

/** Functions that sandboxed programs call, and their calls. */
export interface Calls {
  register(handler: Handler): number;
  unregister(id: number): void;

  /** Starts a call of the server. */
  call(f: Frame): void;

  /** Ends a call whose reply the server does not want any more. */
  abandon(id: number): void;

  /** Ends all calls. */
  stop(reason: Error): void;
}

/** Functions that ignore their signal run on after their call. At most this many run concurrently. */
const maxRunning = 2 * maxCalls;

/** Returns calls that reply by sendFrame. */
export function newCalls(sendFrame: (f: Uint8Array) => void): Calls {
  const handlers = new Map<number, Handler>();
  const live = new Map<number, AbortController>(); // calls that want a reply
  let running = 0;
  let last = 0;
  const run = async (id: number, handler: Handler, args: unknown[], control: AbortController): Promise<void> => {
    running++;
    const reply = await invoke(id, handler, args, control.signal);
    running--;
    if (live.get(id) !== control) return;
    live.delete(id);
    sendFrame(reply);
  };
  return {
    register(handler) {
      handlers.set(++last, handler);
      return last;
    },
    unregister: (id) => void handlers.delete(id),
    call(f) {
      if (live.has(f.id) || live.size >= maxCalls) throw new FrameError("too many calls");
      const { id, args } = parseCall(f.body);
      const handler = handlers.get(id);
      if (handler === undefined) return sendFrame(failure(f.id, new Error("the function is gone")));
      if (running >= maxRunning) return sendFrame(failure(f.id, new Error("too many calls are in progress")));
      const control = new AbortController();
      live.set(f.id, control);
      void run(f.id, handler, args, control);
    },
    abandon(id) {
      const control = live.get(id);
      live.delete(id);
      control?.abort(new Error("the reply is no longer wanted"));
    },
    stop(reason) {
      const all = [...live.values()];
      live.clear();
      for (const control of all) control.abort(reason);
    },
  };
}

/** Calls a function and returns the frame with its reply. */
async function invoke(id: number, handler: Handler, args: unknown[], signal: AbortSignal): Promise<Uint8Array> {
  let value: unknown;
  try {
    value = await handler(args, signal);
  } catch (err) {
    return failure(id, err);
  }
  try {
    const body = Buffer.from(encode(value));
    if (body.length > maxFrame) throw new Error("too large");
    return frame(send.answer, id, body);
  } catch {
    return failure(id, Object.assign(new Error("the result cannot be encoded as JSON, or is too large"), { code: "ERR_RESULT" }));
  }
}

/** The most characters of a failure's message and code. */
const maxMessage = 64 << 10;

/** Returns the frame for a function that has failed. Programs get the message and the code, nothing else. */
function failure(id: number, err: unknown): Uint8Array {
  const body = { message: "the function has failed", code: undefined as string | undefined };
  try {
    body.message = (err instanceof Error ? err.message : String(err)).slice(0, maxMessage);
    const code = err instanceof Error ? (err as { code?: unknown }).code : undefined;
    if (typeof code === "string") body.code = code.slice(0, maxMessage);
  } catch {
    // a getter of the error has thrown
  }
  return frame(send.failure, id, Buffer.from(JSON.stringify(body)));
}
