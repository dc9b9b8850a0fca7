import { advice, type Names } from "../names.js";
import { fields, type SnippetFile, type SnippetRunIn } from "../operations.js";
import { connectionNames } from "../optionnames.js";
import type { OnConnection } from "../options.js";

/**
 * A snippet: the text of `src/main.ts`, or 1 to 10 files that have at most 200,000 bytes together. One is
 * `src/main.ts`, which runs; the others are imported by it.
 */
export type SnippetInput =
  | string
  | { readonly source: string; readonly files?: undefined; readonly timeoutMs?: number | undefined }
  | { readonly files: readonly SnippetFile[]; readonly source?: undefined; readonly timeoutMs?: number | undefined };

/** Code that connects a framework: an ES module. */
export interface SnippetAdapter {
  name: string;
  code: string;
}

/** Options of {@link runInSandbox}. */
export interface SnippetOptions extends OnConnection {
  /** Wall-clock time of the snippet in milliseconds: 100 to 10,000, by default 5,000. The nearest allowed value is used. */
  timeoutMs?: number | undefined;

  /** Ends the snippet, whose result then contains the error `sandbox: aborted by caller signal`. */
  signal?: AbortSignal | undefined;

  /** What reads the framework's state: `none` (the exports of the snippet), `directive`, or your own on a server of this program alone. By default the server's. */
  adapter?: string | SnippetAdapter | undefined;

  /**
   * The folder with the packages that snippets may import, on a server of this program alone. By default the nearest
   * `node_modules` of the working directory; `""` is none. Other servers use their operator's folder.
   */
  nodeModules?: string | undefined;

  /** Check the lint rules of the adapter. By default true; false is for servers of this program alone. */
  lint?: boolean | undefined;

  /** Allow the public internet, if the server does. By default there is no network. */
  network?: "public" | undefined;

  /** Called with each of the logs as it is printed. The snippet waits while the returned promise is pending. */
  onLog?: ((line: string) => unknown) | undefined;
}

const inputNames = { source: true, files: true, timeoutMs: true } satisfies Names<Exclude<SnippetInput, string>>;
const adapterNames = { name: true, code: true } satisfies Names<SnippetAdapter>;
const optionNames = {
  ...connectionNames, timeoutMs: true, signal: true, adapter: true, nodeModules: true, lint: true, network: true, onLog: true,
} satisfies Names<SnippetOptions>;

/** A mistake of the caller, which is a result. */
export class InputError extends Error {}

/** Returns the parameters of a request without nodeModules. It throws an {@link InputError} for what JSON would change. */
export function snippetParams(input: SnippetInput, o: SnippetOptions): SnippetRunIn {
  checkNames(o, optionNames, "options");
  const { source, files, timeoutMs } = typeof input === "string" ? { source: input } : (checkNames(input, inputNames, "input"), input);
  if (source !== undefined) checkText(source, "source");
  if (files !== undefined) checkFiles(files);
  if (o.adapter !== undefined && typeof o.adapter !== "string") checkAdapter(o.adapter);
  if (o.network !== undefined && o.network !== "public") throw new InputError('network: want "public" or nothing');
  const adapter = typeof o.adapter === "object" ? { adapter: o.adapter.name, adapterCode: o.adapter.code } : { adapter: o.adapter };
  return {
    source,
    files: files?.map(copyFile),
    timeoutMs: milliseconds(o.timeoutMs ?? timeoutMs),
    ...adapter,
    noLint: o.lint === false || undefined,
    permissions: o.network,
  };
}

function checkNames(value: unknown, names: object, what: string): void {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new InputError(`${what}: want an object`);
  for (const name of Object.keys(value)) {
    if (!Object.hasOwn(names, name)) throw new InputError(`${what}: unknown field ${JSON.stringify(name)}${advice(name, Object.keys(names))}`);
  }
}

function checkFiles(files: unknown): void {
  if (!Array.isArray(files)) throw new InputError("files: want a list");
  for (const [i, file] of files.entries()) {
    checkNames(file, fields.SnippetFile, `files[${i}]`);
    checkText((file as SnippetFile).path, `files[${i}].path`);
    checkText((file as SnippetFile).source, `files[${i}].source`);
  }
}

function checkAdapter(adapter: SnippetAdapter): void {
  checkNames(adapter, adapterNames, "adapter");
  checkText(adapter.name, "adapter.name");
  checkText(adapter.code, "adapter.code");
}

/** Checks that a value is text that UTF-8 can have. */
function checkText(value: unknown, what: string): void {
  if (typeof value !== "string") throw new InputError(`${what}: want a string`);
  if (/\p{Surrogate}/u.test(value)) throw new InputError(`${what}: half of a surrogate pair`);
}

function copyFile({ path, source }: SnippetFile): SnippetFile {
  return { path, source };
}

/** Returns a time limit as requests have it. The server rounds it to an allowed one. */
function milliseconds(timeoutMs: number | undefined): number | undefined {
  if (timeoutMs === undefined) return undefined;
  if (typeof timeoutMs !== "number" || Number.isNaN(timeoutMs)) throw new InputError("timeoutMs: want a number");
  return Math.ceil(Math.min(Math.max(timeoutMs, 0), mostTimeout));
}

/** More than servers allow. */
const mostTimeout = 60_000;
