import path from "node:path";
import type { SandboxOptions } from "../options.js";
import { type BindingDefinition, bindingDefinitions } from "./bindings.js";
import { type Permissions, permissions } from "./permissions.js";
import type { Sidecar } from "./sidecar.js";
import { anyObject, bytes, callback, type Check, either, flag, integer, invalid, list, oneOf, record, shape, text } from "./validate.js";

/** A folder of the host that the guest sees. */
export interface HostDirectoryMount {
  /** Where the guest sees it: an absolute path. */
  guestPath: string;
  /** The folder of the host. */
  hostPath: string;
  /** Whether the guest can only read it. By default it is so. */
  readOnly?: boolean;
}

/** A folder of packages of the host, which the guest can only read. */
export interface NodeModulesMount {
  /** The folder `node_modules` of the host. */
  hostPath: string;
  /** Where the guest sees it. By default `/tmp/node_modules`, where programs find the packages. */
  guestPath?: string;
}

/** The time that one part of {@link NodeRuntime.create} took. */
export interface NodeRuntimeBootTiming {
  phase: NodeRuntimeBootTimingPhase;
  durationMs: number;
}

/** `connect` includes the start of a server, if there was none. */
export type NodeRuntimeBootTimingPhase = "connect" | "permissions" | "create";

/** Settings of secure-exec's JavaScript engine, which gaol does not have: programs run in Node. */
export interface JsRuntimeOptions {
  platform?: "node";
  moduleResolution?: "node";
  /** Has no effect: time is not rounded. */
  highResolutionTime?: boolean;
}

/** Options of {@link NodeRuntime.create}. */
export interface NodeRuntimeCreateOptions {
  /** Environment variables of all programs. */
  env?: Record<string, string>;
  /** The working directory of programs. By default `/workspace`. */
  cwd?: string;
  /** What programs may do. Omitted scopes have their default: everything inside the sandbox, with its own localhost, and no other host. */
  permissions?: Permissions;
  /** Files to write before programs run: paths in the sandbox with contents. */
  files?: Record<string, string | Uint8Array>;
  /**
   * What confines the sandbox: a name that the server allows, such as `native` or `runc`. A server that this process has
   * started also takes `crun`, and `oci=/path` of an OCI runtime. By default the server's choice.
   */
  isolation?: string;
  /** Folders of the host that programs see. The server must allow them; a server that this process has started does. */
  mounts?: HostDirectoryMount[];
  /** A folder of packages of the host that programs can import. */
  nodeModules?: string | NodeModulesMount;
  /** Functions of this process that programs can call, by `callBinding(name, input)` or as a command. */
  bindings?: Record<string, BindingDefinition>;
  /** Ports of the host's localhost that programs reach as theirs, if the permissions allow connections to them. */
  loopbackExemptPorts?: number[];
  /** Receives the times that the parts of `create` took. */
  onBootTiming?: (timing: NodeRuntimeBootTiming) => void;
  jsRuntime?: JsRuntimeOptions;
  /** Has no effect: each runtime is a separate sandbox. */
  sidecar?: Sidecar;
  /** Has no effect: the programs of the sandbox are its image's. */
  commandsDir?: string;
  /** Has no effect, as `commandsDir`. */
  wasmCommandDirs?: string[];
}

const content: Check<string | Uint8Array> = (value, place) => (typeof value === "string" ? value : bytes(value, place));

/** Accepts a path in the sandbox, relative to /, and returns it absolute and in its shortest form. */
export const guestPath: Check<string> = (value, place) => {
  const given = text(value, place);
  if (given === "") throw invalid(place, "empty");
  return path.posix.resolve("/", given);
};

/** Accepts a folder of this machine, relative to the working directory. */
const hostPath: Check<string> = (value, place) => {
  const given = text(value, place);
  if (given === "") throw invalid(place, "empty");
  return path.resolve(given);
};

const port = integer(1, 65535);

/** Accepts files, by path in the sandbox. */
const files: Check<Record<string, string | Uint8Array>> = (value, place) =>
  Object.fromEntries(Object.entries(record(content)(value, place)).map(([name, c]) => [guestPath(name, place), c]));

const check = shape({
  env: record(text),
  cwd: guestPath,
  permissions,
  files,
  isolation: text,
  mounts: list(shape({ guestPath, hostPath, readOnly: flag }, ["guestPath", "hostPath"])),
  nodeModules: either(hostPath, shape({ hostPath, guestPath }, ["hostPath"])),
  bindings: bindingDefinitions,
  loopbackExemptPorts: list(port),
  onBootTiming: callback,
  jsRuntime: shape({ platform: oneOf("node"), moduleResolution: oneOf("node"), highResolutionTime: flag }),
  sidecar: anyObject,
  commandsDir: text,
  wasmCommandDirs: list(text),
});

const withoutEffect = ["sidecar", "commandsDir", "wasmCommandDirs"] as const;
const warned = new Set<string>();

/** Checks the options of create. Unknown ones are an error. */
export function parseCreateOptions(options: NodeRuntimeCreateOptions): NodeRuntimeCreateOptions {
  const checked = check(options, "") as NodeRuntimeCreateOptions;
  for (const name of withoutEffect) {
    if (checked[name] !== undefined) warnOnce(`option ${name}`);
  }
  return checked;
}

/** Warns, once for each name, that something of secure-exec's has no effect. */
export function warnOnce(name: string): void {
  if (warned.has(name)) return;
  warned.add(name);
  process.emitWarning(`NodeRuntime: ${name} has no effect in gaol`, { code: "GAOL_NO_EFFECT" });
}

/** Where `nodeModules` is mounted by default. */
const defaultModules = "/tmp/node_modules";

/** Returns the options of a sandbox, except options that need a connection. */
export function sandboxOptions(o: NodeRuntimeCreateOptions): SandboxOptions {
  const { env, cwd, files, isolation, mounts, nodeModules } = o;
  return {
    env, cwd, files, isolation, hostPorts: o.loopbackExemptPorts,
    mounts: mounts?.map((m) => ({ source: m.hostPath, target: m.guestPath, access: m.readOnly === false ? "rw" : "ro" })),
    nodeModules: nodeModules && { guestPath: defaultModules, ...(typeof nodeModules === "string" ? { hostPath: nodeModules } : nodeModules) },
  };
}
