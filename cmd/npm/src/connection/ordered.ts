import type { RequestOptions } from "./session.js";

/** Reports whether a value is a promise, of any realm or library. */
export function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && typeof (value as { then?: unknown }).then === "function";
}

/** Options whose functions are called one after the other for each stream. */
export interface Ordered {
  options: RequestOptions;

  /** Waits for the functions. It is rejected with the error of one. */
  done(): Promise<void>;
}

/** Returns options whose functions are called in order. */
export function ordered(options: RequestOptions): Ordered {
  const tails = new Set<Promise<unknown>>();
  const inOrder = <T>(handle: ((value: T) => unknown) | undefined): ((value: T) => unknown) | undefined => {
    let tail: Promise<unknown> | undefined;
    return handle && ((value) => {
      const result = tail === undefined ? handle(value) : tail.then(() => handle(value));
      if (!isPromise(result)) return undefined;
      const mine = Promise.resolve(result);
      if (tail !== undefined) tails.delete(tail);
      tails.add(mine);
      tail = mine;
      return mine;
    });
  };
  return {
    options: { ...options, onStdout: inOrder(options.onStdout), onStderr: inOrder(options.onStderr), onEvent: inOrder(options.onEvent) },
    done: async () => void (await Promise.all(tails)),
  };
}
