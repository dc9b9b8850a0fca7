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

/** A JSON Schema. Servers accept none with `$ref`, `$dynamicRef`, `pattern` and `patternProperties`. */
export type JSONSchema = { readonly [keyword: string]: unknown };

/** The schema of an input. */
export type Schema<T = unknown> = StandardSchema<T> | JSONSchema;

/** Reports whether a schema can validate. */
export function isStandardSchema(schema: Schema): schema is StandardSchema {
  const standard = (schema as { "~standard"?: unknown })["~standard"];
  return typeof standard === "object" && standard !== null && typeof (standard as { validate?: unknown }).validate === "function";
}

/**
 * Returns the JSON Schema for the server to check, or undefined if there is none: then only this program
 * validates.
 */
export function serverSchema(schema: Schema): JSONSchema | undefined {
  if (!isStandardSchema(schema)) return schema;
  try {
    const simple = simplify(toJSONSchema(schema));
    return JSON.stringify(simple).length <= maxSchema ? (simple as JSONSchema) : undefined;
  } catch {
    return undefined; // for example, JSON has no dates
  }
}

/** The most characters of a schema. The server accepts 16 KiB. */
const maxSchema = 15 << 10;

/** Converts a schema of a library that can do that: by Standard JSON Schema, or the method of zod. */
function toJSONSchema(schema: StandardSchema): unknown {
  const standard = schema["~standard"] as { jsonSchema?: { input?(o: { target: string }): unknown } };
  const zod = schema as { toJSONSchema?(o: { io: string }): unknown };
  const converted = standard.jsonSchema?.input?.({ target: "draft-2020-12" }) ?? zod.toJSONSchema?.({ io: "input" });
  if (converted === undefined) throw new TypeError("the schema has no JSON Schema");
  return converted;
}

/** Keywords without which a schema only accepts more. The server does not have them: their time has no useful bound, or they are not checked. */
const dropped = new Set(["$schema", "pattern", "format"]);

/** Keywords that the server does not have, or that refuse more when what they contain accepts more. */
const unsupported = new Set(["$ref", "$dynamicRef", "$defs", "definitions", "patternProperties", "not", "if", "contains"]);

/** Keywords whose values are data. */
const data = new Set(["enum", "const", "default", "examples", "required", "title", "description"]);

/** Removes what the server does not accept. It throws if the schema means nothing without it. */
function simplify(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(simplify);
  if (typeof schema !== "object" || schema === null) return schema;
  const simple: Record<string, unknown> = {};
  for (const [keyword, value] of Object.entries(schema)) {
    if (unsupported.has(keyword)) throw new TypeError(keyword);
    if (dropped.has(keyword)) continue;
    if (keyword === "properties" || keyword === "dependentSchemas") simple[keyword] = mapValues(value as object, simplify);
    else if (keyword === "oneOf") simple["anyOf"] = simplify(value); // two that accept more can both match
    else simple[keyword] = data.has(keyword) ? value : simplify(value);
  }
  return simple;
}

function mapValues(object: object, f: (value: unknown) => unknown): Record<string, unknown> {
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [name, f(value)]));
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
