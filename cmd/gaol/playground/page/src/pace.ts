// Limits how often the DOM changes.

/** The shortest time between two changes, in milliseconds. */
const pause = 80;

/** The share of the time that changes may take is 1 / (1 + share). */
const share = 6;

/** Returns a function that calls change soon, and not too often. */
export function paced(change: () => void): () => void {
  let next = 0;
  let scheduled = false;
  const frame = (): void => {
    scheduled = false;
    const began = performance.now();
    change();
    next = performance.now() + Math.max(pause, share * (performance.now() - began));
  };
  return () => {
    if (!scheduled) {
      scheduled = true;
      setTimeout(frame, Math.max(0, next - performance.now()));
    }
  };
}
