import { GaolError } from "../errors.js";
import { helpText, kebabCase, parseCommandLine } from "./commandline.js";
import { compileSchema, type JsonSchema } from "./jsonschema.js";
import { anyObject, anything, callback, type Check, integer, invalid, list, record, shape, text } from "./validate.js";

/** An example of a binding's input, for people and models. */
export interface BindingExample {
  description: string;
  input: unknown;
}

/** A schema of zod, or any other that implements Standard Schema and has a JSON Schema. */
export interface StandardSchema<Input = unknown> {
  readonly "~standard": {
    readonly validate: (value: unknown) => StandardResult<Input> | Promise<StandardResult<Input>>;
  };
  toJSONSchema?(): object;
}

/** What {@link StandardSchema} returns. */
export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly { readonly message: string; readonly path?: readonly unknown[] | undefined }[] };

/** The input of a binding's handler, which has passed its schema. Handlers state its type. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- secure-exec's type: handlers destructure it
export type BindingInput = any;

/** A function of the host that sandboxed programs can call. */
export interface BindingDefinition {
  /** What it does. `NAME --help` shows it in the sandbox. */
  description: string;
  /** The JSON Schema of its input, or a schema of zod. */
  inputSchema: object;
  /** Called on the host. What it returns, or resolves to, is converted to JSON for the program. */
  handler: (input: BindingInput) => unknown;
  /** How long a call may take, in milliseconds: by default 30,000, at most 300,000. */
  timeoutMs?: number;
  examples?: BindingExample[];
  /** More names for it. */
  commandAliases?: string[];
}

const name: Check<string> = (value, place) => {
  if (!/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/.test(text(value, place))) throw invalid(place, "want a name of letters, digits, - and _", value);
  return value as string;
};

/** The longest time that a call of a binding may take. */
export const maxBindingTimeoutMs = 300_000;

const definition = shape(
  {
    description: text,
    inputSchema: anyObject,
    handler: callback,
    timeoutMs: integer(0, maxBindingTimeoutMs),
    examples: list(shape({ description: text, input: anything }, ["description"])),
    commandAliases: list(name),
  },
  ["description", "inputSchema", "handler"],
);

/** Checks definitions of bindings. */
export const bindingDefinitions: Check<Record<string, BindingDefinition>> = (value, place) => {
  const checked = record(definition)(value, place);
  for (const key of Object.keys(checked)) name(key, `${place}[${JSON.stringify(key)}]`);
  return checked as Record<string, BindingDefinition>;
};

/** The call of a command in a sandbox, as the server sends it. */
export interface CommandCall {
  args: string[];
  stdin: string;
}

/** The reply to a {@link CommandCall}. */
export interface CommandResult {
  stdout: string;
  stderr: string;
  exitCode: number;
}

interface Binding {
  name: string;
  schema: JsonSchema;
  description: string;
  examples: BindingExample[];
  allowed: boolean;
  call(input: unknown): Promise<unknown>;
}

/** The bindings of a runtime. */
export interface Bindings {
  /** Adds bindings, and returns the names of their commands. It adds all or none. */
  add(definitions: Record<string, BindingDefinition>): string[];
  /** Calls a binding for a program, which is not trusted. */
  call(name: unknown, input: unknown): Promise<unknown>;
  /** Calls a binding by its command. */
  command(name: string, call: unknown): Promise<CommandResult>;
}

const maxBindings = 256;

/** Returns the bindings of a runtime, none at first. The function says which ones programs may call. */
export function newBindings(allows: (name: string) => boolean): Bindings {
  const named = new Map<string, Binding>();
  const find = (wanted: unknown): Binding => {
    const found = typeof wanted === "string" ? named.get(wanted) : undefined;
    if (found === undefined) throw new GaolError("not_found", `unknown binding ${JSON.stringify(wanted)?.slice(0, 100)}`);
    if (!found.allowed) throw new GaolError("forbidden", `blocked by binding.invoke policy for ${found.name}`);
    return found;
  };
  return {
    add(definitions) {
      const added = new Map<string, Binding>();
      const commands: string[] = [];
      for (const [key, d] of Object.entries(definitions)) {
        const binding = compile(key, d, allows(key));
        const aliases = [key, ...(d.commandAliases ?? [])];
        for (const alias of new Set([...aliases, ...aliases.map(kebabCase)])) {
          if (named.has(alias) || added.has(alias)) throw new GaolError("conflict", `binding already registered: ${alias}`);
          added.set(alias, binding);
        }
        commands.push(...new Set(aliases.map(kebabCase)));
      }
      if (new Set([...named.values(), ...added.values()]).size > maxBindings) throw invalid("bindings", `more than ${maxBindings}`);
      for (const [alias, binding] of added) named.set(alias, binding);
      return commands;
    },
    call: async (wanted, input) => await find(wanted).call(input),
    async command(wanted, call) {
      try {
        const binding = find(wanted);
        const { args, stdin } = call as CommandCall;
        if (args.length === 1 && args[0] === "--help") {
          return { stdout: helpText(wanted, binding, binding.schema), stderr: "", exitCode: 0 };
        }
        const result = await binding.call(parseCommandLine(wanted, args, stdin, binding.schema));
        return { stdout: `${JSON.stringify({ ok: true, result })}\n`, stderr: "", exitCode: 0 };
      } catch (error) {
        return { stdout: "", stderr: `${messageOf(error)}\n`, exitCode: 1 };
      }
    },
  };
}

function compile(key: string, d: BindingDefinition, allowed: boolean): Binding {
  const place = `bindings[${JSON.stringify(key)}].inputSchema`;
  const [schema, parse] = isStandard(d.inputSchema) ? standardSchema(d.inputSchema, place) : jsonSchema(d.inputSchema, place);
  const { handler, timeoutMs = 30_000 } = d;
  return {
    name: key, schema, description: d.description, examples: d.examples ?? [], allowed,
    async call(input) {
      const checked = await parse(input ?? {});
      const result = await withTimeout(async () => await handler(checked), timeoutMs, key);
      return JSON.parse(JSON.stringify(result) ?? "null") as unknown; // throws for values that have no JSON
    },
  };
}

type Parser = (input: unknown) => unknown;

function jsonSchema(schema: object, place: string): [JsonSchema, Parser] {
  const test = compileSchema(schema, place);
  const parse = (input: unknown): unknown => {
    const why = test(input, "$");
    if (why !== undefined) throw new GaolError("invalid", `invalid input at ${why}`);
    return input;
  };
  return [schema as JsonSchema, parse];
}

function isStandard(schema: object): schema is StandardSchema {
  return "~standard" in schema;
}

/** The JSON Schema is only for flags and --help: the schema itself checks the input. */
function standardSchema(schema: StandardSchema, place: string): [JsonSchema, Parser] {
  if (typeof schema.toJSONSchema !== "function") throw invalid(place, "want a JSON Schema, or a schema of zod 4 or later");
  const parse = async (input: unknown): Promise<unknown> => {
    const result = await schema["~standard"].validate(input);
    if (result.issues === undefined) return result.value;
    const [issue] = result.issues;
    throw new GaolError("invalid", `invalid input at ${["$", ...(issue?.path ?? []).map(String)].join(".")}: ${issue?.message ?? "refused"}`);
  };
  return [schema.toJSONSchema() as JsonSchema, parse];
}

async function withTimeout<T>(start: () => Promise<T>, ms: number, key: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new GaolError("timeout", `binding ${key} timed out after ${ms}ms`)), ms);
  });
  try {
    return await Promise.race([start(), late]);
  } finally {
    clearTimeout(timer);
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
