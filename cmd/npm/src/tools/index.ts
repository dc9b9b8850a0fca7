export { sandboxTools, type SandboxTool, type SandboxTools, type Tool, type ToolCallOptions } from "./tools.js";
export type { DirectoryEntry, Encoding, ToolArguments, ToolName, ToolResults } from "./types.js";
