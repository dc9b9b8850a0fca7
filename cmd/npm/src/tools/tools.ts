import { checkOptions } from "../names.js";
import { connectionNames, signalNames } from "../optionnames.js";
import type { OnConnection } from "../options.js";
import { performOn } from "../perform.js";
import type { JSONSchema } from "../schema.js";
import { definitions, type ToolArguments, type ToolName, type ToolResults } from "./definitions.js";

/** The encoding of a file's content in JSON. */
export type Encoding = NonNullable<ToolArguments["sandbox_write_file"]["encoding"]>;

/** An entry of a folder. */
export type DirectoryEntry = ToolResults["sandbox_list_directory"]["entries"][number];

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
 * `not_directory`. A command that fails, or is killed, returns a result.
 */
export function sandboxTools(options: OnConnection = {}): SandboxTools {
  checkOptions("sandboxTools", options, connectionNames);
  const tools = definitions.map((d): SandboxTool => {
    const name = d.name as ToolName;
    const execute = async (input: object, o: ToolCallOptions = {}): Promise<never> => {
      const { signal } = checkOptions(name, o, signalNames);
      return (await performOn(options, "tool", { tool: name, arguments: input }, { signal })) as never;
    };
    return { ...d, name, execute };
  });
  return Object.fromEntries(tools.map((t) => [t.name, t])) as unknown as SandboxTools;
}
