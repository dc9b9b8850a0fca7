import { checkOptions } from "../names.js";
import { connectionNames, signalNames } from "../optionnames.js";
import type { OnConnection } from "../options.js";
import { asObject } from "../parse.js";
import type { JSONSchema } from "../schema.js";
import { connectionOf } from "../snapshots.js";
import { definitions } from "./definitions.js";
import type { ToolArguments, ToolName, ToolResults } from "./types.js";

/** Options of one call of a tool. */
export interface ToolCallOptions {
  /** Ends the call, and the command that it runs. The promise is rejected with the signal's reason. */
  signal?: AbortSignal | undefined;
}

/** A tool for models and workflow engines. */
export interface Tool<Input = unknown, Output = unknown> {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: JSONSchema;

  /** Calls the tool. It validates the input itself, strictly. */
  execute(input: Input, options?: ToolCallOptions): Promise<Output>;
}

/** A tool of sandboxes. */
export interface SandboxTool<Name extends ToolName = ToolName> extends Tool<ToolArguments[Name], ToolResults[Name]> {
  readonly name: Name;
  readonly outputSchema: JSONSchema;
}

/** The tools of sandboxes by their names. */
export type SandboxTools = { readonly [Name in ToolName]: SandboxTool<Name> };

/**
 * Returns the ten tools of sandboxes. They use the sandboxes of their connection, which end with it, and which all
 * callers on that connection share. Errors are `GaolError`s with the tools' codes, such as `invalid_argument` and
 * `not_directory`. A command that fails, or is killed, has a result.
 */
export function sandboxTools(options: OnConnection = {}): SandboxTools {
  checkOptions("sandboxTools", options, connectionNames);
  const tools = definitions.map((d): SandboxTool => {
    const name = d.name as ToolName;
    return { ...d, name, execute: (input: object, o?: ToolCallOptions) => call(name, input, options, o) };
  });
  return Object.fromEntries(tools.map((t) => [t.name, t])) as unknown as SandboxTools;
}

async function call<Name extends ToolName>(tool: Name, args: object, on: OnConnection, o: ToolCallOptions = {}): Promise<ToolResults[Name]> {
  const { signal } = checkOptions(tool, o, signalNames);
  const session = await connectionOf(on).session();
  const result = await session.request("tool", { tool, arguments: args }, { signal });
  return asObject(result, "result of a tool") as unknown as ToolResults[Name];
}
