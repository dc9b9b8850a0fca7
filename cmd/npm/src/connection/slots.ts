import { maxRequests } from "../operations.js";

/** The concurrent requests that the server accepts of one connection. */
export const limits = { requests: maxRequests, longLived: maxRequests - 32, bytes: 64 << 20 } as const;

/** A place in the queue. */
export interface Slot {
  /** Whether the request lasts as long as a process, context or connection. Some slots are kept free of these. */
  readonly longLived: boolean;

  /** The bytes of its body. */
  readonly bytes: number;

  /** Called when the request may be sent. */
  start(): void;
}

/** A queue for requests, in their order. */
export interface Slots {
  acquire(s: Slot): void;

  /** Gives a slot back, or leaves the queue. */
  release(s: Slot): void;
}

/** Returns a queue: the server ends the connection of a client that has more requests without a result. */
export function newSlots(): Slots {
  const waiting: Slot[] = [];
  const held = new Set<Slot>();
  let longLived = 0;
  let bytes = 0;
  const admit = (): void => {
    for (let i = 0; i < waiting.length; ) {
      const s = waiting[i] as Slot;
      if (held.size === limits.requests || bytes + s.bytes > limits.bytes) return;
      if (s.longLived && longLived === limits.longLived) {
        i++;
        continue;
      }
      waiting.splice(i, 1);
      held.add(s);
      bytes += s.bytes;
      if (s.longLived) longLived++;
      s.start();
    }
  };
  return {
    acquire(s) {
      waiting.push(s);
      admit();
    },
    release(s) {
      if (held.delete(s)) {
        bytes -= s.bytes;
        if (s.longLived) longLived--;
      } else {
        const at = waiting.indexOf(s);
        if (at >= 0) waiting.splice(at, 1);
      }
      admit();
    },
  };
}
