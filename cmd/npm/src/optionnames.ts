import type { Names } from "./names.js";
import type { CellOptions, CommandOptions, ContextOptions, EvaluateLimits, EvaluateOptions, OnConnection, ProgramOptions, RunOptions, SandboxOptions, SpawnOptions, TimeLimit, TreeOptions } from "./options.js";

/** Names of options. Functions reject all others. */
export const connectionNames = { connection: true } satisfies Names<OnConnection>;
export const signalNames = { signal: true } satisfies Names<Pick<TimeLimit, "signal">>;
export const treeNames = {
  image: true, snapshot: true, files: true, limits: true, isolation: true, readOnly: true, hostname: true, mounts: true, nodeModules: true,
} satisfies Names<TreeOptions>;

const processNames = { permissions: true, env: true, cwd: true } satisfies Names<Pick<ProgramOptions, "permissions" | "env" | "cwd">>;
const timeNames = { timeoutMs: true, signal: true } satisfies Names<TimeLimit>;
const streamNames = { stdin: true, onStdout: true, onStderr: true } satisfies Names<Omit<RunOptions, keyof ProgramOptions | keyof TimeLimit>>;
const spawnOnlyNames = { ...timeNames, events: true, terminal: true } satisfies Names<Omit<SpawnOptions, keyof ProgramOptions>>;
export const programNames = { ...processNames, name: true, format: true, args: true } satisfies Names<ProgramOptions>;
export const commandNames = { ...processNames, ...timeNames, ...streamNames } satisfies Names<CommandOptions>;
export const runNames = { ...programNames, ...commandNames } satisfies Names<RunOptions>;
export const spawnCommandNames = { ...processNames, ...spawnOnlyNames } satisfies Names<Omit<SpawnOptions, "name" | "format" | "args">>;
export const spawnNames = { ...programNames, ...spawnOnlyNames } satisfies Names<SpawnOptions>;

const limitNames = { maxCalls: true, maxOutput: true, maxLogs: true, maxLogLength: true } satisfies Names<EvaluateLimits>;
export const cellNames = { ...limitNames, ...timeNames, globals: true, onLog: true } satisfies Names<CellOptions>;
export const evaluateNames = { ...cellNames, ...processNames } satisfies Names<EvaluateOptions>;
export const contextNames = { ...processNames, globals: true, lastValue: true, idleTimeoutMs: true } satisfies Names<ContextOptions>;
export const sandboxNames = {
  ...treeNames, ...connectionNames, ...processNames, ...signalNames, idleTimeoutMs: true, lifetimeMs: true, detached: true,
  globals: true, calls: true, commands: true, hostPorts: true,
} satisfies Names<SandboxOptions>;
