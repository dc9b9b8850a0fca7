import type { Commands } from "./commands.js";
import { makeEvaluation } from "./evaluations.js";
import type { Globals } from "./functions.js";
import { newCapture } from "./capture.js";
import type { EvaluateOptions, OnConnection, RunOptions, SandboxOptions, TreeOptions } from "./options.js";
import { parseRun } from "./parse.js";
import type { Evaluation, RunResult } from "./result.js";
import { defaultOutput, programParams, timeLimit } from "./runs.js";
import { Sandbox } from "./sandbox.js";
import { connectionOf } from "./snapshots.js";
import { treeParams } from "./tree.js";

/** Options of {@link run}: those of a run, and of its sandbox. */
export type RunOnceOptions = RunOptions & TreeOptions & OnConnection & { globals?: Globals; commands?: Commands };

/** Options of {@link evaluate}: those of an evaluation, and of its sandbox. */
export type EvaluateOnceOptions = EvaluateOptions & TreeOptions & OnConnection;

/** Runs a program in a sandbox of its own, which is gone afterwards. */
export async function run<T = unknown>(code: string, options: RunOnceOptions = {}): Promise<RunResult<T>> {
  const { stdin, onStdout, onStderr, globals, commands, timeoutMs } = options;
  const streams = onStdout || onStderr || (stdin !== undefined && typeof stdin !== "string");
  if (streams || globals || commands || timeoutMs === Infinity) {
    return inSandbox({ globals, commands }, options, (sandbox) => sandbox.run<T>(code, withoutPermissions(options)));
  }
  const limit = options.limits?.outputBytes || defaultOutput;
  const stdout = newCapture(limit);
  const stderr = newCapture(limit);
  const session = await connectionOf(options).session();
  const params = { code, stdin, ...programParams(options), ...timeLimit(options), ...treeParams(options) };
  const value = await session.request("runOnce", params, { signal: options.signal, onStdout: stdout.add, onStderr: stderr.add });
  return parseRun<T>(value, stdout.end(), stderr.end());
}

/** Evaluates code, as models write it, in a sandbox of its own, which is gone afterwards. */
export async function evaluate<T = unknown>(code: string, options: EvaluateOnceOptions = {}): Promise<Evaluation<T>> {
  const { permissions, env, cwd } = options;
  const session = await connectionOf(options).session();
  return makeEvaluation<T>(session, "evaluateOnce", { code, permissions, env, cwd, ...treeParams(options) }, options);
}

/** Calls a function with a sandbox that exists during the call. */
async function inSandbox<R>(own: SandboxOptions, o: RunOnceOptions, use: (sandbox: Sandbox) => Promise<R>): Promise<R> {
  const { image, snapshot, isolation, files, limits, readOnly, hostname, mounts, nodeModules, connection, permissions, signal } = o;
  const tree = { image, snapshot, isolation, files, limits, readOnly, hostname, mounts, nodeModules };
  const sandbox = await Sandbox.create({ ...tree, connection, permissions, signal, ...own });
  try {
    return await use(sandbox);
  } finally {
    await sandbox.close();
  }
}

/** Returns options without permissions, which the sandbox has. */
function withoutPermissions<O extends object>(o: O): Omit<O, "permissions"> {
  return { ...o, permissions: undefined };
}
