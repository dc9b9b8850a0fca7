import type { Commands } from "./commands.js";
import type { Globals } from "./functions.js";
import { checkOptions, pick, type Names } from "./names.js";
import type { SnapshotInfo } from "./operations.js";
import { connectionNames, evaluateNames, runNames, treeNames } from "./optionnames.js";
import type { EvaluateOptions, OnConnection, RunOptions, TreeOptions } from "./options.js";
import { sessionOf, performOn } from "./perform.js";
import { fleetList, type Evaluation, type FleetList, type RunResult } from "./result.js";
import { defaultOutput, makeEvaluation, makeRun, treeParams } from "./runs.js";
import { Sandbox } from "./sandbox.js";

/** Options of {@link run}: of a run, and of its sandbox. */
export type RunOnceOptions = RunOptions & TreeOptions & OnConnection & { globals?: Globals; commands?: Commands };

/** Options of {@link evaluate}: of an evaluation, and of its sandbox. */
export type EvaluateOnceOptions = EvaluateOptions & TreeOptions & OnConnection;

const hostNames = { globals: true, commands: true } as const;
const sandboxNames = { ...treeNames, ...connectionNames, ...hostNames, permissions: runNames.permissions, signal: true } as const;
const runOnceNames = { ...runNames, ...sandboxNames } satisfies Names<RunOnceOptions>;
const evaluateOnceNames = { ...evaluateNames, ...treeNames, ...connectionNames } satisfies Names<EvaluateOnceOptions>;

/** Runs a program in a new sandbox, which is closed afterwards. */
export async function run<T = unknown>(code: string, options: RunOnceOptions = {}): Promise<RunResult<T>> {
  const { globals, commands, limits } = checkOptions("run", options, runOnceNames);
  if (globals === undefined && commands === undefined) {
    return makeRun(await sessionOf(options), "run", { code, ...treeParams(options) }, options, limits?.outputBytes || defaultOutput);
  }
  const sandbox = await Sandbox.create(pick(options, sandboxNames));
  try {
    return await sandbox.run<T>(code, { ...pick(options, runNames), permissions: undefined }); // the sandbox has them
  } finally {
    await sandbox.close();
  }
}

/** Evaluates code, as models write it, in a new sandbox, which is closed afterwards. */
export async function evaluate<T = unknown>(code: string, options: EvaluateOnceOptions = {}): Promise<Evaluation<T>> {
  checkOptions("evaluate", options, evaluateOnceNames);
  return makeEvaluation(await sessionOf(options), "evaluate", { code, ...treeParams(options) }, options);
}

/** Lists your snapshots. */
export async function listSnapshots(options: OnConnection = {}): Promise<FleetList<SnapshotInfo>> {
  const { snapshots, missing } = await performOn(checkOptions("listSnapshots", options, connectionNames), "listSnapshots", {});
  return fleetList(snapshots, missing);
}

/** Removes a snapshot. */
export async function removeSnapshot(name: string, options: OnConnection = {}): Promise<void> {
  await performOn(checkOptions("removeSnapshot", options, connectionNames), "deleteSnapshot", { name });
}
