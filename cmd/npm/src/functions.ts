import type { Handler, Session } from "./connection/session.js";
import { encodable } from "./connection/values.js";
import { checkOptions, setOwn, type Names } from "./names.js";
import type { FunctionDeclaration } from "./operations.js";
import { isStandardSchema, serverSchema, validate, type JSONSchema, type Schema } from "./schema.js";

/** The second argument of a host function. */
export interface CallContext {
  /** Aborted when the program no longer waits for the result. */
  readonly signal: AbortSignal;

  /** All arguments, of which the input is the first. No schema has checked the others. */
  readonly args: readonly unknown[];
}

/** Options of {@link hostFunction}. */
export interface HostFunctionOptions<T> {
  /**
   * The schema of the input, the function's only argument. The server checks it before it calls the function, and
   * this program checks it again, if it is a schema of a library such as zod. {@link HostFunction.unchecked} lists the
   * keywords of a JSON Schema, such as that of an MCP server's tool, that are not checked.
   */
  input?: Schema<T>;

  /** In programs, the function returns a promise. By default a call blocks the program until its result. */
  async?: boolean;
}

const definition = Symbol("gaol.hostFunction");

interface Definition {
  schema: JSONSchema | undefined; // of the array of arguments
  async: boolean;
  call: Handler;
}

/** A function with a schema that sandboxed programs can call. {@link hostFunction} makes one. */
export interface HostFunction {
  /** Keywords of a JSON Schema that neither the server nor this package checks, such as `format`. The function must. */
  readonly unchecked: readonly string[];
  readonly [definition]: Definition;
}

/**
 * Returns a function of this program that sandboxed programs can call, as a part of `globals`. Its input comes
 * from the sandboxed program: without a schema, check it like a stranger's request. Programs get the message
 * and the `code` of errors.
 */
export function hostFunction<T>(options: HostFunctionOptions<T>, call: (input: T, context: CallContext) => unknown): HostFunction {
  const { input } = checkOptions("hostFunction", options, { input: true, async: true } satisfies Names<HostFunctionOptions<T>>);
  const { schema, unchecked } = input === undefined ? { unchecked: [] } : serverSchema(input);
  return {
    unchecked,
    [definition]: {
      schema: input && argumentsSchema(isStandardSchema(input) ? 0 : 1, schema),
      async: options.async ?? false,
      call: async (args, signal) => call((input === undefined ? args[0] : await validate(input, args[0], "argument 1")) as T, { signal, args }),
    },
  };
}

/** Returns the schema of the arguments of a function with one input. Libraries decide themselves whether it may be missing. */
function argumentsSchema(least: 0 | 1, schema: JSONSchema | undefined): JSONSchema {
  return { type: "array", maxItems: 1, ...(least > 0 && { minItems: least }), ...(schema !== undefined && { prefixItems: [schema] }) };
}

/** The parts of a request that declare variables and functions. The caller releases the functions. */
export interface Declarations {
  globals: Record<string, unknown>;
  functions: FunctionDeclaration[];
  release(): void;
}

/** Variables of sandboxed programs: values, functions, and objects that have both. */
export type Globals = Readonly<Record<string, unknown>>;

/** How deep functions may be inside objects. */
const maxDepth = 16;

/** Makes the functions of variables callable, and returns their declarations. */
export function declare(session: Session, globals: Globals = {}): Declarations {
  const functions: FunctionDeclaration[] = [];
  const release = (): void => functions.forEach((f) => session.unregister(f.id));
  try {
    const values = split(globals, [], (path, d) => {
      functions.push({ id: session.register(d.call), path, ...(d.async && { async: true }), ...(d.schema && { schema: d.schema }) });
    });
    return { globals: values, functions, release };
  } catch (err) {
    release();
    throw err;
  }
}

/** Returns the values without functions, which it passes to add. */
function split(object: object, path: string[], add: (path: string[], d: Definition) => void): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(object) as [string, unknown][]) {
    const at = [...path, name];
    if (typeof value === "function") add(at, plain(value as (...args: unknown[]) => unknown));
    else if (isHostFunction(value)) add(at, value[definition]);
    else if (isPlainObject(value) && at.length < maxDepth) setOwn(values, name, split(value, at, add));
    else if (value !== undefined) setOwn(values, name, encodable(value));
  }
  return values;
}

function isHostFunction(value: unknown): value is HostFunction {
  return typeof value === "object" && value !== null && definition in value;
}

function isPlainObject(value: unknown): value is object {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return (prototype === Object.prototype || prototype === null) && !("toJSON" in value);
}

/** A function without a schema gets all arguments, and no context. */
function plain(f: (...args: unknown[]) => unknown): Definition {
  return { schema: undefined, async: false, call: (args) => f(...args) };
}
