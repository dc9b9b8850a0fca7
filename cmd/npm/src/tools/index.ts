export type { ToolArguments, ToolName, ToolResults } from "./definitions.js";
export { sandboxTools, type DirectoryEntry, type Encoding, type SandboxTool, type SandboxTools, type Tool, type ToolCallOptions } from "./tools.js";
