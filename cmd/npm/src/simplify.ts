import { GaolError } from "./errors.js";
import { isObject } from "./names.js";
import type { JSONSchema } from "./schema.js";

/** A schema as the server accepts it. */
export interface Simplified {
  schema: JSONSchema;

  /** The keywords of the original that it lacks, in their order: it accepts what only they refuse. */
  unchecked: string[];
}

/** The most schemas in one, with all references replaced, and the most references. Schemas of tools come from other programs. */
const maxSchemas = 5000;
const maxReferences = 200;

/** Keywords of which the values are data, schemas, lists of schemas, or schemas by name. Annotations are dropped. */
const data = ["type", "enum", "const", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength",
  "minItems", "maxItems", "uniqueItems", "minContains", "maxContains", "minProperties", "maxProperties", "required", "dependentRequired"];
const schemas = ["items", "contains", "additionalProperties", "propertyNames", "if", "then", "else", "not", "unevaluatedItems", "unevaluatedProperties"];
const lists = ["prefixItems", "allOf", "anyOf", "oneOf"];
const maps = ["properties", "dependentSchemas"];

/** Keywords that are dropped: the server does not check them, or not as JavaScript does. */
const dropped = ["pattern", "patternProperties", "format", "$dynamicRef"];

/** Syntax in patterns of JavaScript that the server's patterns lack: look-around, references, other escapes, and large counts. */
const foreign = /\(\?(?!:)|\\[^dDwWbBnrt.\-/^$*+?()[\]{}|\\]|\{[^}]*\d{4}|\[\^?\]|\[[^\]]*\[/;

/**
 * Returns a schema that accepts all that the given one does, with keywords of the server only: references inside the
 * schema are replaced by their targets, draft 7's lists are converted to draft 2020-12, and annotations are dropped.
 * Of patterns, it keeps the ones the server matches as JavaScript does.
 */
export function simplify(root: JSONSchema, patterns = false): Simplified {
  const unchecked = new Set<string>();
  const open = new Set<object>(); // schemas around the current one: references to them have no end
  let count = 0;
  let references = 0;
  let losses = 0;
  const lose = (keyword: string): void => {
    unchecked.add(keyword);
    losses++;
  };
  const loses = <T>(f: () => T): [T, boolean] => {
    const before = losses;
    return [f(), losses > before];
  };

  function schema(value: unknown): unknown {
    if (!isObject(value)) return value;
    if (++count > maxSchemas) throw new GaolError("too_large", `gaol: a JSON Schema of more than ${maxSchemas} schemas`);
    if (open.has(value)) return lose("$ref"), {};
    open.add(value);
    const [simple, lossy] = loses(() => keywords(modern(value)));
    open.delete(value);
    return lossy ? monotone(simple) : simple;
  }

  function keywords(o: JSONSchema): Record<string, unknown> {
    const simple: Record<string, unknown> = {};
    for (const k of data) if (k in o) simple[k] = o[k];
    for (const k of lists) if (Array.isArray(o[k]) && k !== "oneOf") simple[k] = o[k].map(schema);
    for (const k of maps) if (isObject(o[k])) simple[k] = mapValues(o[k], schema);
    for (const k of dropped) {
      if (!(k in o)) continue;
      if (k === "pattern" && patterns && typeof o[k] === "string" && !foreign.test(o[k])) simple[k] = o[k];
      else lose(k);
    }
    for (const k of schemas) {
      if (!(k in o) || (k === "additionalProperties" && "patternProperties" in o)) continue; // it is about names without a pattern
      const [inner, lossy] = loses(() => schema(o[k]));
      if (lossy && (k === "not" || k === "if")) lose(k); // it would refuse more
      else simple[k] = inner;
      if (lossy && k === "contains" && "maxContains" in o) lose("maxContains"), delete simple["maxContains"];
    }
    if (!("if" in simple)) for (const k of ["then", "else"]) delete simple[k];
    if (Array.isArray(o["oneOf"])) both(simple, oneOf(o["oneOf"]));
    if ("$ref" in o) both(simple, reference(o["$ref"]));
    return simple;
  }

  /** Of schemas that accept more, two can match. */
  function oneOf(list: unknown[]): object {
    const [inner, lossy] = loses(() => list.map(schema));
    if (lossy) lose("oneOf");
    return lossy ? { anyOf: inner } : { oneOf: inner };
  }

  function reference(ref: unknown): unknown {
    const target = ++references > maxReferences ? undefined : resolve(root, ref);
    if (target !== undefined) return schema(target);
    lose("$ref");
    return true;
  }

  /** Removes what counts on the parts that are gone. */
  function monotone(simple: Record<string, unknown>): Record<string, unknown> {
    for (const k of ["unevaluatedItems", "unevaluatedProperties"]) if (k in simple) lose(k), delete simple[k];
    return simple;
  }

  return { schema: schema(root) as JSONSchema, unchecked: [...unchecked] };
}

/** Makes a schema require another one, too. Most keywords depend on those beside them, so that the two stay apart. */
function both(simple: Record<string, unknown>, other: unknown): void {
  const [only, ...more] = isObject(other) ? Object.keys(other) : [];
  const apart = more.length > 0 || (only !== "anyOf" && only !== "oneOf") || only in simple;
  if (Object.keys(simple).length > 0 && apart) simple["allOf"] = [...((simple["allOf"] as unknown[] | undefined) ?? []), other];
  else Object.assign(simple, other === false ? { not: {} } : other);
}

/** Translates the keywords of draft 7 that 2020-12 does not have. */
function modern(o: JSONSchema): JSONSchema {
  const { dependencies, additionalItems, ...rest } = o;
  const tuple = Array.isArray(o["items"]) && { prefixItems: o["items"], items: additionalItems ?? true };
  if (!isObject(dependencies)) return { ...rest, ...tuple };
  const [required, schemas] = [true, false].map((names) => Object.fromEntries(Object.entries(dependencies).filter(([, d]) => Array.isArray(d) === names)));
  return { dependentRequired: required, dependentSchemas: schemas, ...rest, ...tuple };
}

/** Returns the target of a reference inside a schema, or undefined. */
function resolve(root: unknown, ref: unknown): unknown {
  if (typeof ref !== "string" || !/^#(\/|$)/.test(ref)) return undefined;
  let at = root;
  for (const part of ref.split("/").slice(1)) {
    const name = unescape(part);
    if (name === undefined || typeof at !== "object" || at === null || !Object.hasOwn(at, name)) return undefined;
    at = (at as Record<string, unknown>)[name];
  }
  return at;
}

function unescape(part: string): string | undefined {
  try {
    return decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~");
  } catch {
    return undefined;
  }
}

function mapValues(object: object, f: (value: unknown) => unknown): Record<string, unknown> {
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [name, f(value)]));
}
