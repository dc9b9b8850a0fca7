import { sharedConnection } from "./connection/connection.js";
import type { RequestOptions, Session } from "./connection/session.js";
import { ConnectionError } from "./errors.js";
import { isObject } from "./names.js";
import { results, shapes, type Operations } from "./operations.js";
import type { OnConnection } from "./options.js";

type Method = keyof Operations;

/** The input and the result of an operation. */
export type Params<M extends Method> = Operations[M]["params"];
export type Result<M extends Method> = Operations[M]["result"];

/** Performs an operation of the server. */
export async function perform<M extends Method>(session: Session, method: M, params: Params<M>, options?: RequestOptions): Promise<Result<M>> {
  return decode(results[method], await session.request(method, params, options), method) as Result<M>;
}

/** Performs an operation on the connection that options choose. */
export async function performOn<M extends Method>(o: OnConnection, method: M, params: Params<M>, options?: RequestOptions): Promise<Result<M>> {
  return perform(await sessionOf(o), method, params, options);
}

/** Returns the session that options choose. */
export function sessionOf(o: OnConnection): Promise<Session> {
  return (o.connection ?? sharedConnection()).session();
}

const is = (type: string) => (value: unknown): boolean => typeof value === type;
const scalars: Readonly<Record<string, (value: unknown) => boolean>> = { string: is("string"), number: is("number"), boolean: is("boolean"), object: isObject };

/**
 * Returns a value that the server has sent as its generated type has it: with dates, bytes, and the known fields only. It
 * throws a {@link ConnectionError} for other values.
 */
export function decode(shape: string, value: unknown, what: string): unknown {
  if (shape === "any") return value;
  if (shape.endsWith("|null")) return value === null ? null : decode(shape.slice(0, -"|null".length), value, what);
  if (shape.endsWith("[]")) {
    const list = value ?? []; // an empty list of Go may be null
    return Array.isArray(list) ? list.map((v) => decode(shape.slice(0, -"[]".length), v, what)) : refuse(what);
  }
  if (shape === "date" || shape === "bytes") {
    if (typeof value !== "string") return refuse(what);
    return shape === "date" ? new Date(value) : new Uint8Array(Buffer.from(value, "base64"));
  }
  const check = scalars[shape];
  if (check !== undefined) return check(value) ? value : refuse(what);
  return isObject(value) ? Object.fromEntries(fieldsOf(shape, value, what)) : refuse(what);
}

function fieldsOf(type: string, object: Record<string, unknown>, what: string): [string, unknown][] {
  return Object.entries(shapes[type] ?? refuse(type)).flatMap(([name, shape]): [string, unknown][] => {
    if (name.startsWith("...")) return fieldsOf(shape, object, what);
    const key = name.replace("?", "");
    if (key !== name && object[key] === undefined) return [];
    return [[key, decode(shape, object[key], `${what}: ${key}`)]];
  });
}

function refuse(what: string): never {
  throw new ConnectionError("protocol", `gaol: the server has sent an invalid result: ${what}`);
}
