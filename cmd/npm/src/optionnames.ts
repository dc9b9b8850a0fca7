import type { Names } from "./names.js";
import { fields } from "./operations.js";
import type { Cancelable, CellOptions, CommandOptions, ContextOptions, EvaluateOptions, OnConnection, ProgramOptions, RunOptions, SandboxOptions, SpawnOptions, SubmitCommandOptions, SubmitOptions, TimeLimit, TreeOptions, WaitBatchRunOptions } from "./options.js";

/** Names of options. Functions reject all others. */
export const connectionNames = { connection: true } satisfies Names<OnConnection>;
export const signalNames = { signal: true } satisfies Names<Cancelable>;

const permissions = { permissions: fields.Permissions };
const timeNames = { timeoutMs: true, ...signalNames } satisfies Names<TimeLimit>;
const { code: _code, stdin: _stdin, timeoutMs: _timeoutMs, maxTimeout: _maxTimeout, ...program } = fields.Program;
export const programNames = { ...program, ...permissions } satisfies Names<ProgramOptions>;
export const runNames = { ...programNames, ...timeNames, stdin: true, onStdout: true, onStderr: true } satisfies Names<RunOptions>;
const { name: _name, format: _format, args: _args, ...command } = runNames;
export const commandNames = command satisfies Names<CommandOptions>;

const { code: _processCode, command: _command, whenFull: _whenFull, ...process } = fields.ProcessRequest;
export const spawnNames = { ...process, ...permissions, ...signalNames, events: true } satisfies Names<SpawnOptions>;
const { name: _processName, format: _processFormat, args: _processArgs, ...spawnCommand } = spawnNames;
export const spawnCommandNames = spawnCommand satisfies Names<Omit<SpawnOptions, "name" | "format" | "args">>;

const { code: _cellCode, form: _form, maxTimeout: _maxCell, ...cell } = fields.Cell;
export const cellNames = { ...cell, ...timeNames, maxCalls: true, onLog: true } satisfies Names<CellOptions>;
export const evaluateNames = { ...cellNames, ...permissions, env: true, cwd: true } satisfies Names<EvaluateOptions>;
const { maxIdleTimeout: _maxIdle, ...context } = fields.ContextRequest;
export const contextNames = { ...context, ...permissions } satisfies Names<ContextOptions>;

const { fileBytes: _fileBytes, hostPorts, ...tree } = fields.Tree;
export const treeNames = tree satisfies Names<TreeOptions>;
const { mounts: _mounts, ...batchTree } = treeNames;
export const submitNames = { key: true, ...programNames, timeoutMs: true, stdin: true, ...batchTree, ...connectionNames } satisfies Names<SubmitOptions>;
const { name: _batchName, format: _batchFormat, args: _batchArgs, ...submitCommand } = submitNames;
export const submitCommandNames = submitCommand satisfies Names<SubmitCommandOptions>;
export const waitNames = { ...timeNames, ...connectionNames } satisfies Names<WaitBatchRunOptions>;
const { fileBytes: _bytes, ...sandbox } = fields.SandboxRequest;
export const sandboxNames = {
  ...sandbox, hostPorts, ...permissions, ...connectionNames, ...signalNames, detached: true, calls: fields.CallLimits, commands: true,
} satisfies Names<SandboxOptions>;
