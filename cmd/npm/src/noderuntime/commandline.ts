import { setOwn } from "../names.js";
import type { JSONSchema } from "../schema.js";
import type { BindingDefinition, HostToolExample } from "./bindings.js";

/** Converts the name of a field or a binding to that of a flag or a command: `fullPage` is `full-page`. */
export function kebabCase(name: string): string {
  return name.replace(/([a-z0-9])([A-Z])/g, "$1-$2").replace(/([A-Z]+)([A-Z][a-z])/g, "$1-$2").toLowerCase();
}

/**
 * Parses the arguments of a binding's command: `--json '{…}'`, or a flag for each field of the schema. The first
 * may repeat the command's name. Errors are for the guest.
 */
export function parseCommandLine(name: string, args: readonly string[], schema: JSONSchema): unknown {
  const rest = args[0] === name ? args.slice(1) : args;
  if (rest.length === 0) return {};
  if (rest.length === 2 && rest[0] === "--json") return parseJson("--json", rest[1] ?? "");
  return parseFlags(rest, schema);
}

function parseJson(from: string, json: string): unknown {
  try {
    return JSON.parse(json) as unknown;
  } catch (error) {
    throw new Error(`${from}: invalid JSON: ${(error as Error).message}`);
  }
}

function parseFlags(args: readonly string[], schema: JSONSchema): unknown {
  const fields = flagsOf(schema);
  const input: Record<string, unknown> = {};
  for (let i = 0; i < args.length; i++) {
    const arg = args[i] ?? "";
    if (!arg.startsWith("--")) throw new Error(`unexpected argument ${JSON.stringify(arg)}`);
    const flag = arg.slice(2);
    const negated = flag.startsWith("no-") && !fields.has(flag);
    const field = fields.get(negated ? flag.slice(3) : flag);
    if (field === undefined || (negated && field.type !== "boolean")) throw new Error(`unknown flag ${arg}`);
    if (field.type === "boolean") {
      setOwn(input, field.name, !negated);
      continue;
    }
    const text = args[++i];
    if (text === undefined) throw new Error(`${arg} needs a value`);
    const value = parseValue(arg, field.type === "array" ? field.itemType : field.type, text);
    const earlier = Object.hasOwn(input, field.name) ? (input[field.name] as unknown[]) : [];
    setOwn(input, field.name, field.type === "array" ? [...earlier, value] : value);
  }
  return input;
}

interface Flag {
  name: string;
  type: unknown;
  itemType: unknown;
}

function flagsOf(schema: JSONSchema): Map<string, Flag> {
  const fields = (schema["properties"] ?? {}) as Record<string, JSONSchema>;
  return new Map(
    Object.entries(fields).map(([name, field]) => {
      const items = field["items"] as JSONSchema | undefined;
      return [kebabCase(name), { name, type: field["type"], itemType: items?.["type"] }];
    }),
  );
}

function parseValue(flag: string, type: unknown, text: string): unknown {
  if (type !== "integer" && type !== "number") return type === "object" ? parseJson(flag, text) : text;
  const number = text.trim() === "" ? NaN : Number(text);
  if (!Number.isFinite(number) || (type === "integer" && !Number.isInteger(number))) {
    throw new Error(`${flag} expects ${type === "integer" ? "an integer" : "a number"}, got ${JSON.stringify(text)}`);
  }
  return number;
}

/** Returns the text of a command's --help. */
export function helpText(name: string, about: Pick<BindingDefinition, "description"> & { examples: HostToolExample[] }, schema: JSONSchema): string {
  const required = new Set((schema["required"] ?? []) as string[]);
  const fields = Object.entries((schema["properties"] ?? {}) as Record<string, JSONSchema>).map(([field, s]) => {
    const type = typeof s["type"] === "string" ? s["type"] : "value";
    const note = [s["description"], required.has(field) ? "(required)" : ""].filter(Boolean).join(" ");
    return `  --${kebabCase(field)}${type === "boolean" ? "" : ` <${type}>`}  ${note}`.trimEnd();
  });
  const examples = about.examples.map((e) => `  ${e.description}: ${name} --json '${JSON.stringify(e.input).replaceAll("'", "'\\''")}'`);
  const part = (title: string, lines: string[]): string[] => (lines.length === 0 ? [] : ["", `${title}:`, ...lines]);
  return [about.description, "", `Usage: ${name} --json '{...}', or flags`, ...part("Flags", fields), ...part("Examples", examples), ""].join("\n");
}
