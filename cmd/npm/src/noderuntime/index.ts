export type { BindingDefinition, BindingInput, HostToolExample } from "./bindings.js";
export type { NodeRuntimeExecOptions, NodeRuntimeExecResult, NodeRuntimeRunResult } from "./execution.js";
export type { VirtualDirEntry } from "./directories.js";
export type { NodeRuntimeFetchInput, NodeRuntimeFetchResponse } from "./fetch.js";
export type { NodeRuntimeListener, NodeRuntimeListenerQuery, NodeRuntimeWaitForListenerOptions } from "./listeners.js";
export { NodeRuntime } from "./noderuntime.js";
export type { HostDirectoryMount, JsRuntimeOptions, NodeModulesMount, NodeRuntimeBootTiming, NodeRuntimeBootTimingPhase, NodeRuntimeCreateOptions } from "./options.js";
export type {
  FsPermissionRule, FsPermissions, PatternPermissionRule, PatternPermissions, PermissionMode, Permissions as NodeRuntimePermissions, RulePermissions,
} from "./permissions.js";
export type { NodeRuntimeProcess, NodeRuntimeSpawnOptions } from "./process.js";
export type { NodeRuntimeResidentRunner, NodeRuntimeResidentRunnerExecOptions, NodeRuntimeResidentRunnerOptions } from "./resident.js";
export type { NodeRuntimeResourceSnapshot } from "./resources.js";
export { Sidecar, type SidecarSpawnOptions } from "./sidecar.js";
