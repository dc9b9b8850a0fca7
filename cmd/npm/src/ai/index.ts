export { aiSDKTools, agentsTools, type AgentsToolOptions, type AISDKTool, type InputSchema } from "./adapters.js";
export { codeTool, type CodeInput, type CodeToolOptions } from "./code.js";
