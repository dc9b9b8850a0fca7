import { window } from "../operations.js";
import { FrameError } from "./frames.js";

/** The credit of a stream's sender. */
export interface Credit {
  /** Waits until some credit is left, and uses n bytes. Undefined means that it need not wait. */
  take(n: number): Promise<void> | undefined;

  /** Adds credit that the receiver has returned. */
  add(n: number): void;

  /** Makes all that wait continue: nothing more is sent. */
  stop(): void;
}

/** Returns the credit of a new stream. A frame may be sent while any credit is left. */
export function newCredit(): Credit {
  let left: number = window;
  let stopped = false;
  const waiting: (() => void)[] = []; // in the order of their frames
  const take = (n: number): Promise<void> | undefined => {
    if (stopped) return undefined;
    if (left > 0 && waiting.length === 0) {
      left -= n;
      return undefined;
    }
    return new Promise((resolve) => {
      waiting.push(() => {
        left -= n;
        resolve();
      });
    });
  };
  const wake = (): void => {
    while (waiting.length > 0 && (left > 0 || stopped)) waiting.shift()?.();
  };
  return {
    take,
    add(n) {
      if (left + n > window) throw new FrameError("more credit than was used");
      left += n;
      wake();
    },
    stop() {
      stopped = true;
      wake();
    },
  };
}

/** The receiving end of a stream: it decides when to return credit. */
export interface Debt {
  /** Counts a piece that has arrived. */
  received(n: number): void;

  /** Counts a piece that was processed. It returns for how many bytes to return credit: none, until there are some more. */
  processed(n: number): number;
}

/** Returns the receiving end of a new stream. */
export function newDebt(): Debt {
  let used = 0; // bytes for which no credit was returned
  let done = 0; // bytes of these that were processed
  return {
    received(n) {
      if (used >= window) throw new FrameError("bytes without credit");
      used += n;
    },
    processed(n) {
      done += n;
      if (done < window / 4) return 0;
      const due = done;
      done = 0;
      used -= due;
      return due;
    },
  };
}
