import type { Commands } from "./commands.js";
import { makeEvaluation } from "./evaluations.js";
import type { Globals } from "./functions.js";
import { newCapture } from "./capture.js";
import { checkOptions, pick, type Names } from "./names.js";
import { connectionNames, evaluateNames, programNames, runNames, treeNames } from "./optionnames.js";
import type { EvaluateOptions, OnConnection, RunOptions, SandboxOptions, TreeOptions } from "./options.js";
import { parseRun } from "./parse.js";
import type { Evaluation, RunResult } from "./result.js";
import { defaultOutput, isLongest, timeLimit } from "./runs.js";
import { Sandbox } from "./sandbox.js";
import { connectionOf } from "./snapshots.js";
import { treeParams } from "./tree.js";

/** Options of {@link run}: those of a run, and of its sandbox. */
export type RunOnceOptions = RunOptions & TreeOptions & OnConnection & { globals?: Globals; commands?: Commands };

/** Options of {@link evaluate}: those of an evaluation, and of its sandbox. */
export type EvaluateOnceOptions = EvaluateOptions & TreeOptions & OnConnection;

const sandboxNames = { ...treeNames, ...connectionNames, permissions: runNames.permissions, signal: true } satisfies Names<TreeOptions & OnConnection & Pick<RunOptions, "permissions" | "signal">>;
const runOnceNames = { ...runNames, ...sandboxNames, globals: true, commands: true } satisfies Names<RunOnceOptions>;
const evaluateOnceNames = { ...evaluateNames, ...sandboxNames } satisfies Names<EvaluateOnceOptions>;

/** Runs a program in a sandbox of its own, which is gone afterwards. */
export async function run<T = unknown>(code: string, options: RunOnceOptions = {}): Promise<RunResult<T>> {
  const { stdin, onStdout, onStderr, globals, commands, timeoutMs } = checkOptions("run", options, runOnceNames);
  const streams = onStdout || onStderr || (stdin !== undefined && typeof stdin !== "string");
  if (streams || globals || commands || isLongest(timeoutMs)) {
    const inherited = { ...pick(options, runNames), permissions: undefined }; // the sandbox has them
    return inSandbox({ ...pick(options, sandboxNames), globals, commands }, (sandbox) => sandbox.run<T>(code, inherited));
  }
  const limit = options.limits?.outputBytes || defaultOutput;
  const stdout = newCapture(limit);
  const stderr = newCapture(limit);
  const session = await connectionOf(options).session();
  const params = { code, stdin, ...pick(options, programNames), ...timeLimit(options), ...treeParams(options) };
  const value = await session.request("runOnce", params, { signal: options.signal, onStdout: stdout.add, onStderr: stderr.add });
  return parseRun<T>(value, stdout.end(), stderr.end());
}

/** Evaluates code, as models write it, in a sandbox of its own, which is gone afterwards. */
export async function evaluate<T = unknown>(code: string, options: EvaluateOnceOptions = {}): Promise<Evaluation<T>> {
  const { permissions, env, cwd } = checkOptions("evaluate", options, evaluateOnceNames);
  const session = await connectionOf(options).session();
  return makeEvaluation<T>(session, "evaluateOnce", { code, permissions, env, cwd, ...treeParams(options) }, options);
}

/** Calls a function with a sandbox that exists during the call. */
async function inSandbox<R>(o: SandboxOptions, use: (sandbox: Sandbox) => Promise<R>): Promise<R> {
  const sandbox = await Sandbox.create(o);
  try {
    return await use(sandbox);
  } finally {
    await sandbox.close();
  }
}
