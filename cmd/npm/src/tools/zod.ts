import { z } from "zod";
import { definitions, type ToolArguments, type ToolName, type ToolResults } from "./definitions.js";

/** The schemas of a tool. Input accepts the tool's arguments, and adds the defaults. */
export interface ToolSchemas<Name extends ToolName> {
  readonly input: z.ZodType<ToolArguments[Name], ToolArguments[Name]>;
  readonly output: z.ZodType<ToolResults[Name]>;
}

/** The schemas of all tools, by their names. They equal the schemas of the server's tools. */
export const schemas: { readonly [Name in ToolName]: ToolSchemas<Name> } = Object.fromEntries(
  definitions.map((d) => [d.name, { input: z.fromJSONSchema(d.inputSchema), output: z.fromJSONSchema(d.outputSchema) }]),
) as never;
