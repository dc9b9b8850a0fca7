const bytesKey = "\u0000bytes";
const dateKey = "\u0000date";

/**
 * Returns the JSON of a value for sandboxed programs, as JSON.stringify does, except that byte arrays and
 * Dates arrive as what they are. Undefined, functions and symbols become null.
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
  const original = (this as Record<string, unknown>)[key];
  if (original instanceof Date) return { [dateKey]: original.toISOString() };
  if (original instanceof ArrayBuffer) return { [bytesKey]: Buffer.from(original).toString("base64") };
  if (ArrayBuffer.isView(original)) {
    return { [bytesKey]: Buffer.from(original.buffer, original.byteOffset, original.byteLength).toString("base64") };
  }
  return value;
}
