import type { GaolError } from "../errors.js";
import { advice, invalid as invalidAt } from "../names.js";

/** Checks a value that a caller has given, and returns it with its type. */
export type Check<T> = (value: unknown, place: string) => T;

type Checks = Record<string, Check<unknown>>;
type Checked<C extends Checks> = { [K in keyof C]?: ReturnType<C[K]> };

/** The error about an invalid value at a place such as `permissions.fs.rules[0].mode`. */
export function invalid(place: string, why: string, value?: unknown): GaolError {
  return invalidAt(place, place === "" ? why : `${place}: ${why}`, why, value);
}

function checkType<T>(name: string, is: (value: unknown) => boolean): Check<T> {
  return (value, place) => {
    if (!is(value)) throw invalid(place, `want ${name}`, value);
    return value as T;
  };
}

export const text = checkType<string>("a string", (v) => typeof v === "string" && !v.includes("\0"));
export const flag = checkType<boolean>("true or false", (v) => typeof v === "boolean");
export const bytes = checkType<Uint8Array>("a Uint8Array", (v) => v instanceof Uint8Array);
export const callback = checkType<(...args: never[]) => unknown>("a function", (v) => typeof v === "function");
export const anyObject = checkType<object>("an object", (v) => typeof v === "object" && v !== null);
export const anything = checkType<unknown>("a value", () => true);

/** Accepts an absolute path without `.`, `..` and empty elements. */
export const absolutePath = checkType<string>(
  "an absolute path without . and ..",
  (v) => typeof v === "string" && isClean(v),
);

/** Reports whether a path is absolute and in its shortest form. */
export function isClean(path: string): boolean {
  if (path === "/") return true;
  if (!path.startsWith("/") || path.includes("\0")) return false;
  return path.slice(1).split("/").every((e) => e !== "" && e !== "." && e !== "..");
}

/** Accepts integers from min to max. */
export function integer(min: number, max: number = Number.MAX_SAFE_INTEGER): Check<number> {
  const name = max === Number.MAX_SAFE_INTEGER ? `an integer of at least ${min}` : `an integer from ${min} to ${max}`;
  return checkType<number>(name, (v) => Number.isSafeInteger(v) && (v as number) >= min && (v as number) <= max);
}

/** Accepts one of some strings. */
export function oneOf<const T extends string>(...values: T[]): Check<T> {
  return checkType<T>(values.map((v) => JSON.stringify(v)).join(" or "), (v) => values.includes(v as T));
}

/** Accepts what one of two checks does: the second, if the value is an object. */
export function either<A, B>(plain: Check<A>, object: Check<B>): Check<A | B> {
  return (value, place) => (isObject(value) ? object(value, place) : plain(value, place));
}

/** Accepts arrays. */
export function list<T>(item: Check<T>): Check<T[]> {
  return (value, place) => {
    if (!Array.isArray(value)) throw invalid(place, "want an array", value);
    return value.map((v, i) => item(v, `${place}[${i}]`));
  };
}

/** Accepts objects with any keys. */
export function record<T>(item: Check<T>): Check<Record<string, T>> {
  return (value, place) => {
    if (!isObject(value)) throw invalid(place, "want an object", value);
    return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, item(v, `${place}[${JSON.stringify(k)}]`)]));
  };
}

/** Accepts objects with no other keys than the checks. */
export function shape<C extends Checks>(checks: C, required: readonly (keyof C & string)[] = []): Check<Checked<C>> {
  return (value, place) => {
    if (!isObject(value)) throw invalid(place, "want an object", value);
    const known = new Map(Object.entries(checks));
    const result: Record<string, unknown> = {};
    for (const [key, v] of Object.entries(value)) {
      const check = known.get(key);
      if (check === undefined) throw invalid(join(place, key), `unknown${advice(key, [...known.keys()])}`, v);
      if (v !== undefined) result[key] = check(v, join(place, key));
    }
    for (const key of required) {
      if (result[key] === undefined) throw invalid(join(place, key), "missing");
    }
    return result as Checked<C>;
  };
}

function join(place: string, key: string): string {
  return place === "" ? key : `${place}.${key}`;
}

function isObject(value: unknown): value is object {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype || Object.getPrototypeOf(prototype) === null;
}
