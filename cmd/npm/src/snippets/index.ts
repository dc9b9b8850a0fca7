export type { SnippetFile, SnippetOutput } from "../operations.js";
export type { SnippetAdapter, SnippetInput, SnippetOptions } from "./input.js";
export { runInSandbox } from "./run.js";
