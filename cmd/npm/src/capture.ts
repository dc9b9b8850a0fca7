/** Output that was captured. */
export interface Captured {
  bytes: Uint8Array;
  truncated: boolean;
}

/** Keeps output up to a limit. */
export interface Capture {
  add(piece: Uint8Array): unknown;
  end(): Captured;
}

/** Returns a capture that passes all output on, too, even beyond the limit. */
export function newCapture(limit: number, onPiece?: (piece: Uint8Array) => unknown): Capture {
  const pieces: Uint8Array[] = [];
  let size = 0;
  let truncated = false;
  return {
    add(piece) {
      const kept = piece.subarray(0, limit - size);
      truncated ||= kept.length < piece.length;
      if (kept.length > 0) pieces.push(kept);
      size += kept.length;
      return onPiece?.(piece);
    },
    end: () => ({ bytes: concat(pieces, size), truncated }),
  };
}

/** Returns one array with the content of several. */
export function concat(pieces: readonly Uint8Array[], size: number): Uint8Array {
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}
