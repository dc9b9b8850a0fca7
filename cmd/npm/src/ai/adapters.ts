import { GaolError } from "../errors.js";
import type { JSONSchema } from "../schema.js";
import type { Tool } from "../tools/tools.js";

/** Tools with any inputs. */
type Tools = Iterable<Tool<never>>;

/**
 * The schema of an input in the form of Standard Schema and Standard JSON Schema, which both SDKs accept. It accepts
 * every value: the tools validate their inputs themselves, and their errors are for the model.
 */
export interface InputSchema {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: "gaol";
    readonly validate: (value: unknown) => { value: unknown };
    readonly jsonSchema: {
      readonly input: (options?: unknown) => Record<string, unknown>;
      readonly output: (options?: unknown) => Record<string, unknown>;
    };
  };
}

function standard(schema: JSONSchema): InputSchema {
  const { $schema: _, ...plain } = schema; // both SDKs expect another draft, whose keywords are the same here
  const copy = (): Record<string, unknown> => structuredClone(plain);
  return { "~standard": { version: 1, vendor: "gaol", validate: (value) => ({ value }), jsonSchema: { input: copy, output: copy } } };
}

/** A tool as the Vercel AI SDK has it. */
export interface AISDKTool {
  description: string;
  inputSchema: InputSchema;
  execute(input: unknown, options: { abortSignal?: AbortSignal | undefined }): Promise<unknown>;
}

/** Returns tools for `tools` of the Vercel AI SDK's `generateText` and `streamText`. */
export function aiSDKTools(tools: Tools): Record<string, AISDKTool> {
  return Object.fromEntries([...tools].map((t) => [t.name, aiSDKTool(t)]));
}

function aiSDKTool(t: Tool<never>): AISDKTool {
  return {
    description: t.description,
    inputSchema: standard(t.inputSchema),
    execute: (input, { abortSignal }) => t.execute(input as never, { signal: abortSignal }),
  };
}

/** The options of a tool as `tool` of the OpenAI Agents SDK takes them. */
export interface AgentsToolOptions {
  name: string;
  description: string;
  parameters: { type: "object"; properties: Record<string, never>; required: string[]; additionalProperties: true };
  strict: false;
  execute(input: unknown, context?: unknown, details?: { signal?: AbortSignal | undefined }): Promise<unknown>;
  errorFunction(context: unknown, error: unknown): string;
}

/** Returns options for `tool` of the OpenAI Agents SDK: `agentsTools(tools).map((o) => tool(o))`. */
export function agentsTools(tools: Tools): AgentsToolOptions[] {
  return [...tools].map((t) => {
    const { $schema: _, ...parameters } = t.inputSchema;
    return {
      name: t.name,
      description: t.description,
      parameters: structuredClone(parameters) as never,
      strict: false,
      execute: (input, _context, details) => t.execute(input as never, { signal: details?.signal }),
      errorFunction: (_context, error) => errorText(error),
    };
  });
}

/** Returns the parts of an error that a model can use. */
function errorText(error: unknown): string {
  if (error instanceof GaolError) return `Error: ${error.message} (${error.code})`;
  return "Error: the tool could not be called";
}
