export type { SnippetAdapter, SnippetFile, SnippetInput, SnippetOptions } from "./input.js";
export type { SnippetOutput } from "./output.js";
export { runInSandbox } from "./run.js";
