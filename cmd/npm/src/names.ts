import { GaolError } from "./errors.js";

/**
 * The names of the fields of O: `satisfies Names<O>` keeps a list of names in step with the type. Fields that are
 * objects, or lists of objects, can have the names of their fields.
 */
export type Names<O> = Readonly<Record<keyof O, true | object>>;

/** The error about an invalid value at a place such as `permissions.fs.rules[0].mode`. */
export function invalid(place: string, message: string, why: string, value?: unknown): GaolError {
  return new GaolError("invalid", message, { errors: [{ location: place, message: why, value }] });
}

/** Checks that options have known names only: a misspelled one would have no effect. It returns the options. */
export function checkOptions<O>(operation: string, options: O, names: object): O {
  if (typeof options !== "object" || options === null) {
    throw invalid("", `gaol: ${operation}: the options are not an object`, "want an object", options);
  }
  checkFields(operation, options, names, "");
  return options;
}

function checkFields(operation: string, o: object, names: object, prefix: string): void {
  for (const [name, value] of Object.entries(o) as [string, unknown][]) {
    const place = prefix + name;
    if (!Object.hasOwn(names, name)) {
      throw invalid(place, `gaol: ${operation}: unknown option ${JSON.stringify(place)}${advice(name, Object.keys(names))}`, "unknown", value);
    }
    const inner = (names as Record<string, true | object>)[name];
    if (typeof inner !== "object") continue;
    if (!Array.isArray(value)) checkInner(operation, value, inner, place);
    else value.forEach((v, i) => checkInner(operation, v, inner, `${place}[${i}]`));
  }
}

/** Checks a field that may have fields. The server checks other values. */
function checkInner(operation: string, value: unknown, names: object, place: string): void {
  if (typeof value === "object" && value !== null) checkFields(operation, value, names, `${place}.`);
}

/** Returns the fields with some names. */
export function pick<O extends object, K extends keyof O & string>(o: O, names: Readonly<Record<K, true | object>>): Pick<O, K> {
  return Object.fromEntries(Object.keys(names).map((name) => [name, o[name as K]])) as Pick<O, K>;
}

/** Reports whether a value is an object of JSON. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Assigns an own property, also if it is called __proto__. */
export function setOwn(object: object, name: string, value: unknown): void {
  Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
}

/** Returns what helps after an unknown name: the nearest of the known ones, or all of them. */
export function advice(name: string, known: readonly string[]): string {
  const most = Math.max(2, Math.floor(name.length / 3)); // typing errors
  const [given, begins] = [name.toLowerCase(), name.length >= 3]; // units are easily forgotten, as in memory
  const [nearest] = known
    .map((k) => ({ k, d: begins && k.toLowerCase().startsWith(given) ? 0 : distance(given, k.toLowerCase(), most) }))
    .filter(({ d }) => d <= most)
    .sort((a, b) => a.d - b.d);
  return nearest === undefined ? `; want ${known.join(", ")}` : `; did you mean ${JSON.stringify(nearest.k)}?`;
}

/** Returns the Levenshtein distance of two strings, or a number above the most if their lengths differ by more. */
function distance(a: string, b: string, most: number): number {
  if (Math.abs(a.length - b.length) > most) return most + 1; // a name can be of any length
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    row = next;
  }
  return row[b.length] as number;
}
