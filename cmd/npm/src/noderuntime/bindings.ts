import { GaolError } from "../errors.js";
import { helpText, kebabCase, parseCommandLine } from "./commandline.js";
import { compileSchema } from "./jsonschema.js";
import { isStandardSchema, type JSONSchema, jsonSchema, type Schema, validate } from "../schema.js";
import { anyObject, anything, callback, type Check, integer, invalid, list, record, shape, text } from "./validate.js";

/** An example of a binding's input, for people and models. */
export interface HostToolExample {
  description: string;
  input: unknown;
}

/** The input of a binding's handler, which has passed its schema. Handlers state its type: it is any, as in secure-exec. */
export type BindingInput = any;

/** A function of the host that sandboxed programs can call. */
export interface BindingDefinition {
  /** Its description. `NAME --help` shows it in the sandbox. */
  description: string;
  /** The JSON Schema of its input, or a schema of zod. */
  inputSchema: object;
  /** Called on the host. Its result, which may be a promise, is converted to JSON for the program. */
  handler: (input: BindingInput) => unknown;
  /** How long a call may take, in milliseconds: by default 30,000, at most 300,000. */
  timeoutMs?: number;
  examples?: HostToolExample[];
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

interface Binding {
  name: string;
  schema: JSONSchema; // for flags and --help
  description: string;
  examples: HostToolExample[];
  allowed: boolean;
  call(input: unknown): Promise<unknown>;
}

/** The bindings of a runtime. */
export interface Bindings {
  /** Adds bindings, and returns the names of their commands. It adds all or none. */
  add(definitions: Record<string, BindingDefinition>): string[];
  /** Calls a binding for a program, which is not trusted. */
  call(name: unknown, input: unknown): Promise<unknown>;
  /** Calls a binding by its command, and returns the command's output. */
  command(name: string, args: readonly string[]): Promise<string>;
}

const maxBindings = 256;

/** Returns the bindings of a runtime, none at first. The function returns the bindings that programs may call. */
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
    async command(wanted, args) {
      const binding = find(wanted);
      if (args.length === 1 && args[0] === "--help") return helpText(wanted, binding, binding.schema);
      const result = await binding.call(parseCommandLine(wanted, args, binding.schema));
      return `${JSON.stringify({ ok: true, result })}\n`;
    },
  };
}

function compile(key: string, d: BindingDefinition, allowed: boolean): Binding {
  const schema = d.inputSchema as Schema;
  const parse = isStandardSchema(schema)
    ? (input: unknown) => validate(schema, input, `input of ${key}`)
    : jsonParser(schema, `bindings[${JSON.stringify(key)}].inputSchema`, key);
  const { handler, timeoutMs = 30_000 } = d;
  return {
    name: key, schema: jsonSchema(schema) ?? {}, description: d.description, examples: d.examples ?? [], allowed,
    async call(input) {
      const checked = await parse(input ?? {});
      const result = await withTimeout(async () => await handler(checked), timeoutMs, key);
      return JSON.parse(JSON.stringify(result) ?? "null") as unknown; // throws for values that have no JSON
    },
  };
}

/** Returns a function that checks by a JSON Schema. The server does not know the schemas of bindings. */
function jsonParser(schema: JSONSchema, place: string, key: string): (input: unknown) => unknown {
  const test = compileSchema(schema, place);
  return (input) => {
    const why = test(input, "$");
    if (why !== undefined) throw Object.assign(new TypeError(`input of ${key}: ${why}`), { code: "ERR_ARGUMENTS" });
    return input;
  };
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
