import type { OpenOptions } from "./session.js";

/** Reports whether a value is a promise, of any realm or library. */
export function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && typeof (value as { then?: unknown }).then === "function";
}

/** Returns options whose functions are called one after the other for each stream, and a function that waits for them. */
export function ordered(options: OpenOptions): { options: OpenOptions; done(): Promise<void> } {
  const tails = new Set<PromiseLike<unknown>>();
  const inOrder = <T>(handle: ((value: T) => unknown) | undefined): ((value: T) => unknown) | undefined => {
    let tail: PromiseLike<unknown> | undefined;
    return handle && ((value) => {
      const result = tail === undefined ? handle(value) : tail.then(() => handle(value));
      if (!isPromise(result)) return undefined;
      const mine = result.then(ignore, ignore).then(() => {
        tails.delete(mine);
        if (tail === mine) tail = undefined;
      });
      tails.add(mine);
      tail = mine;
      return result;
    });
  };
  return {
    options: { ...options, onStdout: inOrder(options.onStdout), onStderr: inOrder(options.onStderr), onEvent: inOrder(options.onEvent) },
    done: async () => void (await Promise.all(tails)),
  };
}

const ignore = (): void => undefined;
