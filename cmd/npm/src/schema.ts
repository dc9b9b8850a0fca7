import { simplify } from "./simplify.js";

/** Anything that validates as Standard Schema describes it: a schema of zod, valibot, arktype and others. */
export interface StandardSchema<Output = unknown> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined;
  };
}

/** The result of a validation. */
export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly { readonly message: string; readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined }[] };

/** A JSON Schema. Servers check simple patterns, but not `patternProperties`, `format`, and references without an end. */
export type JSONSchema = { readonly [keyword: string]: unknown };

/** The schema of an input. */
export type Schema<T = unknown> = StandardSchema<T> | JSONSchema;

/** Reports whether a schema can validate. */
export function isStandardSchema(schema: Schema): schema is StandardSchema {
  const standard = (schema as { "~standard"?: unknown })["~standard"];
  return typeof standard === "object" && standard !== null && typeof (standard as { validate?: unknown }).validate === "function";
}

/**
 * Returns the JSON Schema for the server to check, and the keywords that are not checked. Of a library's schema there may be
 * none: then only this program validates.
 */
export function serverSchema(schema: Schema): { schema?: JSONSchema; unchecked: string[] } {
  if (!isStandardSchema(schema)) return simplify(schema, true);
  const converted = jsonSchema(schema);
  try {
    const simple = converted && simplify(converted).schema;
    return { unchecked: [], ...(simple && JSON.stringify(simple).length <= maxSchema && { schema: simple }) };
  } catch {
    return { unchecked: [] }; // it is too large
  }
}

/** The most characters of a schema. The server accepts 16 KiB. */
const maxSchema = 15 << 10;

/** Returns a schema as JSON Schema, or undefined if it cannot be one: for example, JSON has no dates. */
export function jsonSchema(schema: Schema): JSONSchema | undefined {
  if (!isStandardSchema(schema)) return schema;
  const standard = schema["~standard"] as { jsonSchema?: { input?(o: { target: string }): JSONSchema } };
  const zod = schema as { toJSONSchema?(o: { io: string }): JSONSchema };
  try {
    return standard.jsonSchema?.input?.({ target: "draft-2020-12" }) ?? zod.toJSONSchema?.({ io: "input" });
  } catch {
    return undefined;
  }
}

/** Validates a value from a sandboxed program. The error's code is the server's for invalid arguments. */
export async function validate(schema: Schema, value: unknown, what: string): Promise<unknown> {
  if (!isStandardSchema(schema)) return value; // the server has validated it
  const result = await schema["~standard"].validate(value);
  if (result.issues === undefined) return result.value;
  const issues = result.issues.slice(0, 5).map(({ path, message }) => `${pathText(path)}${message}`);
  throw Object.assign(new TypeError(`${what}: ${issues.join("; ")}`), { code: "ERR_ARGUMENTS" });
}

function pathText(path: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined): string {
  const names = (path ?? []).map((part) => String(typeof part === "object" ? part.key : part));
  return names.length === 0 ? "" : `${names.join(".")}: `;
}
