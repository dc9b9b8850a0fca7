import { isObject } from "../names.js";
import type { JSONSchema } from "../schema.js";
import { anything, invalid, list, oneOf, record, text } from "./validate.js";

/** Returns why a value does not match, or undefined. */
type Test = (value: unknown, place: string) => string | undefined;

/** Compiles the value of one keyword. */
type Keyword = (value: unknown, schema: JSONSchema, place: string, depth: number) => Test;

/** Keywords that do not restrict values. */
const annotations = new Set([
  "$schema", "$id", "$comment", "title", "description", "default", "examples", "format", "deprecated", "readOnly", "writeOnly",
]);

/** The depth up to which schemas are compiled. */
const maxDepth = 32;

/**
 * Compiles a JSON Schema. It throws for keywords that it does not know, because ignoring them would accept
 * what the schema refuses. `pattern` is one of them: guests choose the text, and the time that matching
 * takes has no useful bound.
 */
export function compileSchema(schema: unknown, place: string, depth = 0): Test {
  if (schema === true) return () => undefined;
  if (schema === false) return (_, at) => `${at}: not allowed`;
  if (typeof schema !== "object" || schema === null || Array.isArray(schema)) throw invalid(place, "not a JSON Schema", schema);
  if (depth > maxDepth) throw invalid(place, `deeper than ${maxDepth} schemas`);
  const tests = Object.entries(schema)
    .filter(([name]) => !annotations.has(name))
    .map(([name, value]) => {
      const keyword = Object.hasOwn(keywords, name) ? keywords[name] : undefined;
      if (keyword === undefined) throw invalid(`${place}.${name}`, "this keyword is not supported; check it in the handler, or use zod", value);
      return keyword(value, schema as JSONSchema, `${place}.${name}`, depth + 1);
    });
  return (value, at) => first(tests, (test) => test(value, at));
}

function first<T>(items: Iterable<T>, find: (item: T) => string | undefined): string | undefined {
  for (const item of items) {
    const found = find(item);
    if (found !== undefined) return found;
  }
  return undefined;
}

const typeName = oneOf("null", "boolean", "integer", "number", "string", "array", "object");

const keywords: Record<string, Keyword> = {
  type: (value, _schema, place): Test => {
    const types = list(typeName)(Array.isArray(value) ? value : [value], place);
    return (v, at) => (types.some((t) => hasType(v, t)) ? undefined : `${at}: expected ${types.join(" or ")}`);
  },
  enum: (value, _schema, place): Test => {
    const values = list(anything)(value, place);
    return (v, at) => (values.some((e) => equal(e, v)) ? undefined : `${at}: not one of ${JSON.stringify(values)}`);
  },
  const: (wanted): Test => (v, at) => (equal(wanted, v) ? undefined : `${at}: expected ${JSON.stringify(wanted)}`),
  minimum: bound((n: number) => n, (n, limit) => n >= limit, "is less than"),
  maximum: bound((n: number) => n, (n, limit) => n <= limit, "is more than"),
  exclusiveMinimum: bound((n: number) => n, (n, limit) => n > limit, "is not more than"),
  exclusiveMaximum: bound((n: number) => n, (n, limit) => n < limit, "is not less than"),
  multipleOf: bound((n: number) => n, (n, of) => Number.isInteger(n / of), "is not a multiple of"),
  minLength: bound((s: string) => [...s].length, (n, limit) => n >= limit, "is shorter than"),
  maxLength: bound((s: string) => [...s].length, (n, limit) => n <= limit, "is longer than"),
  minItems: bound((a: unknown[]) => a.length, (n, limit) => n >= limit, "has fewer items than"),
  maxItems: bound((a: unknown[]) => a.length, (n, limit) => n <= limit, "has more items than"),
  required: (value, _schema, place): Test => {
    const names = list(text)(value, place);
    return (v, at) => (isObject(v) ? first(names, (n) => (Object.hasOwn(v, n) ? undefined : `${at}.${n}: missing required property`)) : undefined);
  },
  properties: (value, _schema, place, depth): Test => {
    const tests = Object.entries(record(anything)(value, place)).map(([n, s]) => [n, compileSchema(s, `${place}.${n}`, depth)] as const);
    return (v, at) => (isObject(v) ? first(tests, ([n, test]) => (Object.hasOwn(v, n) ? test(v[n], `${at}.${n}`) : undefined)) : undefined);
  },
  additionalProperties: (value, schema, place, depth): Test => {
    const test = value === false ? (_: unknown, at: string) => `${at}: unexpected property` : compileSchema(value, place, depth);
    const named = new Set(Object.keys((schema["properties"] as object | undefined) ?? {}));
    return (v, at) => (isObject(v) ? first(Object.keys(v), (n) => (named.has(n) ? undefined : test(v[n], `${at}.${n}`))) : undefined);
  },
  propertyNames: (value, _schema, place, depth): Test => {
    const test = compileSchema(value, place, depth);
    return (v, at) => (isObject(v) ? first(Object.keys(v), (n) => test(n, `${at}.${n}`)) : undefined);
  },
  items: (value, _schema, place, depth): Test => {
    const test = compileSchema(value, place, depth);
    return (v, at) => (Array.isArray(v) ? first(v.entries(), ([i, item]) => test(item, `${at}[${i}]`)) : undefined);
  },
  anyOf: combined((matches) => matches > 0, "matches none of anyOf"),
  oneOf: combined((matches) => matches === 1, "does not match exactly one of oneOf"),
  allOf: combined((matches, of) => matches === of, "does not match all of allOf"),
};

function bound<V extends number | string | unknown[]>(measure: (v: V) => number, holds: (n: number, limit: number) => boolean, why: string): Keyword {
  return (limit, _schema, place): Test => {
    if (typeof limit !== "number") throw invalid(place, "want a number", limit);
    const kind = /Length/.test(place) ? "string" : /Items/.test(place) ? "array" : "number";
    return (v, at) => (hasType(v, kind) && !holds(measure(v as V), limit) ? `${at}: ${why} ${limit}` : undefined);
  };
}

function combined(holds: (matches: number, of: number) => boolean, why: string): Keyword {
  return (value, _schema, place, depth): Test => {
    const tests = list(anything)(value, place).map((s, i) => compileSchema(s, `${place}[${i}]`, depth));
    return (v, at) => (holds(tests.filter((test) => test(v, at) === undefined).length, tests.length) ? undefined : `${at}: ${why}`);
  };
}

function hasType(value: unknown, type: string): boolean {
  switch (type) {
    case "null": return value === null;
    case "array": return Array.isArray(value);
    case "object": return isObject(value);
    case "integer": return Number.isInteger(value);
    default: return typeof value === type;
  }
}

function equal(a: unknown, b: unknown): boolean {
  if (Array.isArray(a)) return Array.isArray(b) && a.length === b.length && a.every((v, i) => equal(v, b[i]));
  if (!isObject(a)) return a === b;
  if (!isObject(b)) return false;
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((n) => Object.hasOwn(b, n) && equal(a[n], b[n]));
}
