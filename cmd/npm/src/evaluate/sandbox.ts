import type { Globals } from "../functions.js";
import { checkOptions, type Names } from "../names.js";
import { evaluate } from "../once.js";
import { connectionNames, evaluateNames, signalNames } from "../optionnames.js";
import type { Permissions } from "../operations.js";
import type { OnConnection } from "../options.js";
import type { Denial, GuestError } from "../result.js";
import { timeLimit } from "../runs.js";

/** Memory of one execution in MiB, with that of Node itself: the default of all servers. The kernel enforces it. */
export const SANDBOX_MEMORY_MB = 256;

/** Options of {@link createSandbox}. */
export interface CodeSandboxOptions extends OnConnection {
  /** Wall-clock time of one execution, in milliseconds. By default 30,000. 0 and Infinity mean the longest that the server allows. */
  timeoutMs?: number | undefined;

  /** Bytes of JSON that the result may have. By default 1 MiB. */
  maxOutputSize?: number | undefined;

  /** Calls of functions in one execution: at most 1,000, by default 50. */
  maxApiCalls?: number | undefined;

  /** The permissions of the code. By default everything inside its sandbox, without network but its own localhost. */
  permissions?: Permissions | undefined;

  /** What confines it: a name that the server allows, such as `native` or `runc`. By default the server's choice. */
  isolation?: string | undefined;
}

/** The result of an execution. */
export interface ExecutionResult<T = unknown> {
  /** The value of the last expression. Undefined if the code has none, or has failed. */
  result: T | undefined;

  /** Why the code has failed, as text for its author. Undefined if it has not. */
  error: string | undefined;

  /** The lines that it has printed: at most 100 of 1,000 characters. */
  logs: string[];
  durationMs: number;

  /** How many functions it has called. */
  apiCallCount: number;

  /** The operations that the permissions have denied. */
  denials: Denial[];
}

/** Executes code, as models write it, that can call functions of this program. */
export interface CodeSandbox {
  /** Executes code in a new sandbox. Code that fails returns a result, too; the promise is rejected if gaol fails. */
  execute<T = unknown>(code: string, options?: { signal?: AbortSignal | undefined }): Promise<ExecutionResult<T>>;
}

/** Names of the options of {@link createSandbox}. */
export const codeSandboxNames = {
  ...connectionNames, timeoutMs: true, maxOutputSize: true, maxApiCalls: true, permissions: evaluateNames.permissions, isolation: true,
} satisfies Names<CodeSandboxOptions>;

/** The most calls that results of evaluations list. */
const mostCalls = 1000;

const defaultCalls = 50;

/**
 * Returns a sandbox for code that uses some variables: values, functions, and objects that have both. To the
 * code, a function of this program is like any other: a call blocks it until the result. Each execution starts
 * without files and variables of earlier ones, and executions may take place at the same time.
 */
export function createSandbox(globals: Globals = {}, options: CodeSandboxOptions = {}): CodeSandbox {
  const { permissions, isolation, connection, timeoutMs } = checkOptions("createSandbox", options, codeSandboxNames);
  timeLimit({ timeoutMs }); // checks it now
  const maxOutput = positive("maxOutputSize", options.maxOutputSize, 16 << 20);
  const maxCalls = positive("maxApiCalls", options.maxApiCalls, mostCalls) ?? defaultCalls;
  return {
    async execute<T>(code: string, o: { signal?: AbortSignal | undefined } = {}): Promise<ExecutionResult<T>> {
      const { signal } = checkOptions("execute", o, signalNames);
      const e = await evaluate<T>(code, { globals, timeoutMs, maxOutput, maxCalls, permissions, isolation, connection, signal });
      return {
        result: e.value,
        error: e.error === null ? undefined : errorText(e.error),
        logs: e.logs.map((line) => line.text),
        durationMs: e.durationMs,
        apiCallCount: Math.min(e.calls.length, maxCalls), // later ones were refused
        denials: e.denials,
      };
    },
  };
}

/** Checks a limit. The server would take 0 for the default. */
function positive(name: string, value: number | undefined, most: number): number | undefined {
  if (value === undefined || (value > 0 && value <= most && Number.isInteger(value))) return value;
  throw new RangeError(`gaol: createSandbox: ${name}: ${String(value)} is not a number from 1 to ${most}`);
}

/** Describes an error with its causes and what denied it, and the lines of the code around it. */
function errorText({ name, message, text, frame }: GuestError): string {
  const described = text ?? (name === "" ? message : `${name}: ${message}`);
  return frame ? `${described}\n${frame}` : described;
}
