import type { Commands } from "../commands.js";
import { type Connection, sharedConnection } from "../connection/connection.js";
import type { Session } from "../connection/session.js";
import { GaolError } from "../errors.js";
import { hostFunction } from "../functions.js";
import { checkOptions } from "../names.js";
import { Sandbox } from "../sandbox.js";
import { type BindingDefinition, bindingDefinitions, type Bindings, maxBindingTimeoutMs, newBindings } from "./bindings.js";
import { execResult, type NodeRuntimeExecOptions, type NodeRuntimeExecResult, type NodeRuntimeRunResult, programOptions, runOptions } from "./execution.js";
import { fetchFrom, type NodeRuntimeFetchInput, type NodeRuntimeFetchResponse } from "./fetch.js";
import { keepSandbox } from "./keep.js";
import { type Listeners, newListeners, type NodeRuntimeListener, type NodeRuntimeListenerQuery, type NodeRuntimeWaitForListenerOptions } from "./listeners.js";
import { guestPath, type NodeRuntimeBootTimingPhase, type NodeRuntimeCreateOptions, parseCreateOptions, sandboxOptions } from "./options.js";
import { type NodeRuntimeProcess, type NodeRuntimeSpawnOptions, spawnProcess, startProcess } from "./process.js";
import { findPrograms } from "./programs.js";
import { newResidentRunner, type NodeRuntimeResidentRunner, type NodeRuntimeResidentRunnerOptions } from "./resident.js";
import { type NodeRuntimeResourceSnapshot, resourceSnapshot } from "./resources.js";
import { allowsBinding, programNames, translate } from "./translate.js";
import { listDir, type VirtualDirEntry } from "./directories.js";

/** A runtime that exists. */
interface Parts {
  readonly session: Session;
  readonly sandbox: Sandbox;
  readonly bindings: Bindings;
  readonly listeners: Listeners;
  readonly stopRenewal: () => void;
}

/**
 * A sandbox for untrusted programs, with the API of secure-exec's NodeRuntime: each program is a fresh process
 * in it, and files persist between programs. The kernel enforces its permissions.
 */
export class NodeRuntime {
  readonly #parts: Parts;
  #disposed = false;

  private constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Creates a runtime. Unknown options are an error, and so are permissions that the kernel cannot enforce. */
  static async create(options: NodeRuntimeCreateOptions = {}): Promise<NodeRuntime> {
    return new NodeRuntime(await createParts(parseCreateOptions(options)));
  }

  /** Executes an ES module, and returns the value that it has passed to `__return`. */
  async run<T = unknown>(code: string, options: NodeRuntimeExecOptions = {}): Promise<NodeRuntimeRunResult<T>> {
    const result = await this.#live().sandbox.run<T>(code, { ...runOptions(options), ...programOptions() });
    return { ...execResult(result), value: (result.exitCode === 0 ? result.value : undefined) as T };
  }

  /** Executes an ES module. */
  async exec(code: string, options: NodeRuntimeExecOptions = {}): Promise<NodeRuntimeExecResult> {
    return execResult(await this.#live().sandbox.exec(code, { ...runOptions(options), ...programOptions() }));
  }

  /** Executes a command, such as `ls`. */
  async execCommand(command: string, args: string[] = [], options: NodeRuntimeExecOptions = {}): Promise<NodeRuntimeExecResult> {
    return execResult(await this.#live().sandbox.command(command, args, runOptions(options)));
  }

  /** Starts an ES module as a process that may live longer, and returns when it has started. */
  async spawn(code: string, options: NodeRuntimeSpawnOptions = {}): Promise<NodeRuntimeProcess> {
    const { session, sandbox } = this.#live();
    return spawnProcess(session, sandbox.id, { code, ...programOptions() }, options);
  }

  /** Starts a command as a process, and returns immediately. */
  spawnCommand(command: string, args: string[] = [], options: NodeRuntimeSpawnOptions = {}): NodeRuntimeProcess {
    const { session, sandbox } = this.#live();
    return startProcess(session, sandbox.id, { command, args }, options).process;
  }

  /** Starts a process that executes many small programs, which share its memory. */
  async createResidentRunner(options: NodeRuntimeResidentRunnerOptions = {}): Promise<NodeRuntimeResidentRunner> {
    checkOptions("createResidentRunner", options, {});
    return newResidentRunner((code, o) => this.spawn(code, o));
  }

  /** Sends an HTTP request to a server of the guest. */
  async fetch(port: number, input: NodeRuntimeFetchInput): Promise<NodeRuntimeFetchResponse> {
    return fetchFrom(this.#live().sandbox, port, input);
  }

  /** Returns a listener if one is known, and looks for new ones in the background. */
  findListener(query: NodeRuntimeListenerQuery): NodeRuntimeListener | null {
    return this.#live().listeners.find(query);
  }

  /** Waits until a process of the guest accepts connections on a port. */
  async waitForListener(query: NodeRuntimeListenerQuery, options: NodeRuntimeWaitForListenerOptions = {}): Promise<NodeRuntimeListener> {
    return this.#live().listeners.wait(query, options);
  }

  /** Adds bindings, also for programs that are in progress. */
  async registerBindings(bindings: Record<string, BindingDefinition>): Promise<void> {
    const live = this.#live();
    const names = live.bindings.add(bindingDefinitions(bindings, "bindings"));
    await live.sandbox.addCommands(commandsOf(live.bindings, names));
  }

  /** Calls a binding as a program would, with the same checks. */
  async callBinding(name: string, input: unknown = {}): Promise<unknown> {
    return this.#live().bindings.call(name, input);
  }

  /** Writes a file, and creates missing folders on the way to it. */
  async writeFile(path: string, content: string | Uint8Array): Promise<void> {
    await this.#live().sandbox.files.write(guestPath(path, "path"), content, { createParents: true });
  }

  /** Reads a file. */
  async readFile(path: string): Promise<Uint8Array> {
    return this.#live().sandbox.files.read(guestPath(path, "path"), { maxBytes: Infinity });
  }

  /** Returns the names in a folder. */
  async readDir(path: string): Promise<string[]> {
    return (await listDir(this.#live().sandbox, path)).map((entry) => entry.name);
  }

  /** Lists a folder with the kinds of its entries. */
  async readDirWithTypes(path: string): Promise<VirtualDirEntry[]> {
    return listDir(this.#live().sandbox, path);
  }

  /** Returns the sandbox's current usage. */
  async getResourceSnapshot(): Promise<NodeRuntimeResourceSnapshot> {
    return resourceSnapshot(this.#live().sandbox);
  }

  /** Ends all that runs in the sandbox, and deletes it. It may be called again. */
  dispose(): Promise<void> {
    this.#disposed = true;
    this.#parts.stopRenewal();
    return this.#parts.sandbox.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }

  #live(): Parts {
    if (this.#disposed) throw new GaolError("closed", "gaol: the runtime is disposed", { status: 410 });
    return this.#parts;
  }
}

async function createParts(o: NodeRuntimeCreateOptions): Promise<Parts> {
  const timed = stopwatch(o);
  const session = await timed("connect", () => sharedConnection().session());
  const permissions = o.permissions ?? {};
  const programs = await timed("permissions", () => findPrograms(session, programNames(permissions)));
  const bindings = newBindings((name) => allowsBinding(permissions, name));
  const names = bindings.add(o.bindings ?? {});
  const sandbox = await timed("create", () => Sandbox.create({
    ...sandboxOptions(o),
    connection: only(session),
    permissions: translate(permissions, programs),
    commands: commandsOf(bindings, names),
    globals: { callBinding: hostFunction({ async: true }, (name, { args }) => bindings.call(name, args[1])) },
    calls: { timeoutMs: maxBindingTimeoutMs },
  }));
  try {
    return { session, sandbox, bindings, listeners: newListeners(sandbox), stopRenewal: await keepSandbox(sandbox) };
  } catch (error) {
    await sandbox.close();
    throw error;
  }
}

/** A connection that is never made again: the sandbox would not be on the next one. */
function only(session: Session): Connection {
  const close = (): Promise<void> => Promise.resolve();
  return { session: () => Promise.resolve(session), close, [Symbol.asyncDispose]: close };
}

/** Returns a function that reports how long something takes. */
function stopwatch(o: NodeRuntimeCreateOptions) {
  return async <T>(phase: NodeRuntimeBootTimingPhase, act: () => Promise<T>): Promise<T> => {
    const start = performance.now();
    const result = await act();
    o.onBootTiming?.({ phase, durationMs: performance.now() - start });
    return result;
  };
}

function commandsOf(bindings: Bindings, names: string[]): Commands {
  return Object.fromEntries(names.map((name) => [name, ({ args }) => bindings.command(name, args)]));
}
