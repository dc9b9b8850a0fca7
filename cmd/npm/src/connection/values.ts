const bytesKey = "\u0000bytes";
const dateKey = "\u0000date";
const bigIntKey = "\u0000bigint";

/**
 * Returns the JSON of a value for sandboxed programs, as JSON.stringify does, except that byte arrays, Dates and
 * BigInts arrive as BigInts. Undefined, functions and symbols become null.
 */
export function encode(value: unknown): string {
  return JSON.stringify(value, replace) ?? "null";
}

/** Returns the value that encode writes as JSON. */
export function encodable(value: unknown): unknown {
  return JSON.parse(encode(value)) as unknown;
}

// JSON.stringify calls toJSON of a Date or a Buffer before it calls a replacer, whose this is the holder.
function replace(this: unknown, key: string, value: unknown): unknown {
  if (typeof value === "bigint") return { [bigIntKey]: value.toString() };
  const original = (this as Record<string, unknown>)[key];
  if (original instanceof Date) return { [dateKey]: original.toISOString() };
  if (original instanceof ArrayBuffer) return { [bytesKey]: Buffer.from(original).toString("base64") };
  if (ArrayBuffer.isView(original)) {
    return { [bytesKey]: Buffer.from(original.buffer, original.byteOffset, original.byteLength).toString("base64") };
  }
  return value;
}

/** JSON.parse passes it the text of a number, except in Node 20. */
type Reviver = (key: string, value: unknown, context?: { source?: string }) => unknown;

/** Returns a BigInt for an integer that a number cannot hold. */
const revive: Reviver = (_, value, context) =>
  typeof value === "number" && context?.source !== undefined && /^-?\d+$/.test(context.source) && String(value) !== context.source ? BigInt(context.source) : value;

/** Parses JSON of the server. Integers that a number cannot hold are BigInts: sandboxes with `bigInts` send them. */
export function decode(text: string): unknown {
  return /\d{16}/.test(text) ? JSON.parse(text, revive) : JSON.parse(text); // a reviver takes several times as long
}
