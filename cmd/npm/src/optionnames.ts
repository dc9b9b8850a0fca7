import type { Names } from "./names.js";
import type { CallLimits, CellOptions, CommandOptions, ContextOptions, EvaluateLimits, EvaluateOptions, Limits, Mount, OnConnection, ProgramOptions, RunOptions, SandboxOptions, SpawnOptions, TimeLimit, TreeOptions } from "./options.js";
import type { PathRule, PatternRule, Permissions, Rule } from "./permissions.js";

/** Names of options. Functions reject all others. */
export const connectionNames = { connection: true } satisfies Names<OnConnection>;
export const signalNames = { signal: true } satisfies Names<Pick<TimeLimit, "signal">>;
const limitNames = {
  memoryBytes: true, cpus: true, cpuTimeMs: true, pids: true, files: true, diskBytes: true, inodes: true, outputBytes: true, valueBytes: true,
} satisfies Names<Limits>;
const callNames = { calls: true, concurrent: true, argumentsBytes: true, resultBytes: true, timeoutMs: true } satisfies Names<CallLimits>;
export const treeNames = {
  image: true, snapshot: true, files: true, limits: limitNames, isolation: true, readOnly: true, hostname: true, bigInts: true,
  mounts: { source: true, target: true, access: true } satisfies Names<Mount>, nodeModules: { hostPath: true, guestPath: true },
} satisfies Names<TreeOptions>;

const ruleNames = { mode: true, operations: true } satisfies Names<Rule<never>>;
const pathScope = { default: true, rules: { ...ruleNames, paths: true } satisfies Names<PathRule<never>> };
const patternScope = { default: true, rules: { ...ruleNames, patterns: true } satisfies Names<PatternRule<never>> };
const permissionNames = {
  fs: pathScope, network: patternScope, childProcess: patternScope, process: { default: true, rules: ruleNames }, env: patternScope,
} satisfies Names<Permissions>;

const processNames = { permissions: permissionNames, env: true, cwd: true } satisfies Names<Pick<ProgramOptions, "permissions" | "env" | "cwd">>;
const timeNames = { timeoutMs: true, signal: true } satisfies Names<TimeLimit>;
const streamNames = { stdin: true, onStdout: true, onStderr: true } satisfies Names<Omit<RunOptions, keyof ProgramOptions | keyof TimeLimit>>;
const spawnOnlyNames = { ...timeNames, events: true, terminal: { rows: true, cols: true, term: true } } satisfies Names<Omit<SpawnOptions, keyof ProgramOptions>>;
export const programNames = { ...processNames, name: true, format: true, args: true } satisfies Names<ProgramOptions>;
export const commandNames = { ...processNames, ...timeNames, ...streamNames } satisfies Names<CommandOptions>;
export const runNames = { ...programNames, ...commandNames } satisfies Names<RunOptions>;
export const spawnCommandNames = { ...processNames, ...spawnOnlyNames } satisfies Names<Omit<SpawnOptions, "name" | "format" | "args">>;
export const spawnNames = { ...programNames, ...spawnOnlyNames } satisfies Names<SpawnOptions>;

const evaluateLimitNames = { maxCalls: true, maxOutput: true, maxLogs: true, maxLogLength: true } satisfies Names<EvaluateLimits>;
export const cellNames = { ...evaluateLimitNames, ...timeNames, globals: true, onLog: true } satisfies Names<CellOptions>;
export const evaluateNames = { ...cellNames, ...processNames } satisfies Names<EvaluateOptions>;
export const contextNames = { ...processNames, globals: true, lastValue: true, idleTimeoutMs: true } satisfies Names<ContextOptions>;
export const sandboxNames = {
  ...treeNames, ...connectionNames, ...processNames, ...signalNames, idleTimeoutMs: true, lifetimeMs: true, detached: true,
  globals: true, calls: callNames, commands: true, hostPorts: true,
} satisfies Names<SandboxOptions>;
