export { createSandbox, SANDBOX_MEMORY_MB, type CodeSandbox, type CodeSandboxOptions, type ExecutionResult } from "./sandbox.js";
export { normalizeCode } from "./normalize.js";
