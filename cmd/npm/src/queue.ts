/** A queue between a producer that waits and one consumer. */
export interface Queue<T> {
  /** Adds a value. The promise resolves when the consumer has taken it. */
  push(value: T): Promise<void>;

  /** Ends the queue, after its values. */
  end(): void;

  /** Ends the queue with an error, after its values. */
  fail(reason: unknown): void;

  readonly values: AsyncIterableIterator<T>;
}

/** Returns a queue. onReturn is called if the consumer leaves early; later values are dropped. */
export function newQueue<T>(onReturn: () => void): Queue<T> {
  type Waiter = { resolve(step: IteratorResult<T>): void; reject(reason: unknown): void };
  const items: { value: T; taken(): void }[] = [];
  const waiters: Waiter[] = [];
  let over: ((w: Waiter) => void) | undefined;
  const finish = (settle: (w: Waiter) => void): void => {
    if (over !== undefined) return;
    over = settle;
    for (const w of waiters.splice(0)) settle(w);
  };
  const done = (w: Waiter): void => w.resolve({ done: true, value: undefined });
  const values: AsyncIterableIterator<T> = {
    next: () =>
      new Promise((resolve, reject) => {
        const item = items.shift();
        if (item !== undefined) {
          item.taken();
          resolve({ done: false, value: item.value });
        } else if (over !== undefined) over({ resolve, reject });
        else waiters.push({ resolve, reject });
      }),
    return() {
      for (const item of items.splice(0)) item.taken();
      finish(done);
      over = done;
      onReturn();
      return Promise.resolve({ done: true, value: undefined });
    },
    [Symbol.asyncIterator]: () => values,
  };
  return {
    push(value) {
      if (over !== undefined) return Promise.resolve();
      const waiter = waiters.shift();
      if (waiter !== undefined) {
        waiter.resolve({ done: false, value });
        return Promise.resolve();
      }
      return new Promise((taken) => items.push({ value, taken }));
    },
    end: () => finish(done),
    fail: (reason) => finish((w) => w.reject(reason)),
    values,
  };
}
