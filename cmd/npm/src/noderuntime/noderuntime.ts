import { declareCommands } from "../commands.js";
import { sharedConnection } from "../connection/connection.js";
import type { Session } from "../connection/session.js";
import { ConnectionError, GaolError } from "../errors.js";
import { type BindingDefinition, bindingDefinitions, type Bindings, maxBindingTimeoutMs, newBindings } from "./bindings.js";
import { type Box, execute, type NodeRuntimeExecOptions, type NodeRuntimeExecResult, type NodeRuntimeRunResult, programParams } from "./execution.js";
import { listDir, readFile, type VirtualDirEntry, writeFile } from "./files.js";
import { keepSandbox } from "./keep.js";
import { type Listeners, newListeners, type NodeRuntimeListener, type NodeRuntimeListenerQuery, type NodeRuntimeWaitForListenerOptions } from "./listeners.js";
import { createParams, type NodeRuntimeBootTimingPhase, type NodeRuntimeCreateOptions, parseCreateOptions } from "./options.js";
import { type NodeRuntimeProcess, type NodeRuntimeSpawnOptions, spawnProcess, startProcess } from "./process.js";
import { findPrograms } from "./programs.js";
import { newResidentRunner, type NodeRuntimeResidentRunner, type NodeRuntimeResidentRunnerOptions } from "./resident.js";
import { type NodeRuntimeResourceSnapshot, resourceSnapshot } from "./resources.js";
import { allowsBinding, programNames, translate } from "./translate.js";

/** A runtime that exists, with what is in this process. */
interface Parts {
  readonly box: Box;
  readonly bindings: Bindings;
  readonly listeners: Listeners;
  /** Forgets what create has registered, and stops its timer. */
  readonly release: (() => void)[];
}

/**
 * A sandbox for untrusted programs, with the API of secure-exec's NodeRuntime: each program is a fresh process
 * in it, and files persist between programs. The kernel enforces its permissions.
 */
export class NodeRuntime {
  readonly #parts: Parts;
  #disposed: Promise<void> | undefined;

  private constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Creates a runtime. Unknown options are an error, and so are permissions that the kernel cannot enforce. */
  static async create(options: NodeRuntimeCreateOptions = {}): Promise<NodeRuntime> {
    return new NodeRuntime(await createParts(parseCreateOptions(options)));
  }

  /** Executes an ES module, and returns what it has passed to `__return`. */
  async run<T = unknown>(code: string, options: NodeRuntimeExecOptions = {}): Promise<NodeRuntimeRunResult<T>> {
    return execute<T>(this.#box(), "run", programParams(code), options);
  }

  /** Executes an ES module. */
  async exec(code: string, options: NodeRuntimeExecOptions = {}): Promise<NodeRuntimeExecResult> {
    return execute(this.#box(), "exec", programParams(code), options);
  }

  /** Executes a command, such as `ls`. */
  async execCommand(command: string, args: string[] = [], options: NodeRuntimeExecOptions = {}): Promise<NodeRuntimeExecResult> {
    return execute(this.#box(), "command", { command, args }, options);
  }

  /** Starts an ES module as a process that may live longer, and returns when it has started. */
  async spawn(code: string, options: NodeRuntimeSpawnOptions = {}): Promise<NodeRuntimeProcess> {
    return spawnProcess(this.#box(), programParams(code), options);
  }

  /** Starts a command as a process, and returns at once. */
  spawnCommand(command: string, args: string[] = [], options: NodeRuntimeSpawnOptions = {}): NodeRuntimeProcess {
    return startProcess(this.#box(), { command, args }, options).process;
  }

  /** Starts a process that executes many small programs, which share its memory. */
  async createResidentRunner(_options: NodeRuntimeResidentRunnerOptions = {}): Promise<NodeRuntimeResidentRunner> {
    return newResidentRunner((code, o) => this.spawn(code, o));
  }

  /** Returns a listener if one is known, and looks for new ones in the background. */
  findListener(query: NodeRuntimeListenerQuery): NodeRuntimeListener | null {
    this.#box();
    return this.#parts.listeners.find(query);
  }

  /** Waits until a process of the guest accepts connections on a port. */
  async waitForListener(query: NodeRuntimeListenerQuery, options: NodeRuntimeWaitForListenerOptions = {}): Promise<NodeRuntimeListener> {
    this.#box();
    return this.#parts.listeners.wait(query, options);
  }

  /** Adds bindings, also for programs that are in progress. */
  async registerBindings(bindings: Record<string, BindingDefinition>): Promise<void> {
    const box = this.#box();
    const names = this.#parts.bindings.add(bindingDefinitions(bindings, "bindings"));
    const commands = declareBindings(box.session, this.#parts.bindings, names);
    this.#parts.release.push(commands.release);
    await box.session.request("addCommands", { sandbox: box.id, commands: commands.list });
  }

  /** Calls a binding as a program would, with the same checks. */
  async callBinding(name: string, input: unknown = {}): Promise<unknown> {
    this.#box();
    return this.#parts.bindings.call(name, input);
  }

  /** Writes a file, and creates missing folders on the way to it. */
  async writeFile(path: string, content: string | Uint8Array): Promise<void> {
    await writeFile(this.#box(), path, content);
  }

  /** Reads a file. */
  async readFile(path: string): Promise<Uint8Array> {
    return readFile(this.#box(), path);
  }

  /** Returns the names in a folder. */
  async readDir(path: string): Promise<string[]> {
    return (await listDir(this.#box(), path)).map((entry) => entry.name);
  }

  /** Returns what is in a folder. */
  async readDirWithTypes(path: string): Promise<VirtualDirEntry[]> {
    return listDir(this.#box(), path);
  }

  /** Returns what the sandbox uses now. */
  async getResourceSnapshot(): Promise<NodeRuntimeResourceSnapshot> {
    return resourceSnapshot(this.#box());
  }

  /** Ends all that runs in the sandbox, and deletes it. It may be called again. */
  dispose(): Promise<void> {
    return (this.#disposed ??= dispose(this.#parts));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }

  #box(): Box {
    if (this.#disposed !== undefined) throw new GaolError("closed", "gaol: the runtime is disposed");
    return this.#parts.box;
  }
}

async function createParts(o: NodeRuntimeCreateOptions): Promise<Parts> {
  const timed = stopwatch(o);
  const session = await timed("connect", () => sharedConnection().session());
  const permissions = o.permissions ?? {};
  const programs = await timed("permissions", () => findPrograms(session, programNames(permissions)));
  const bindings = newBindings((name) => allowsBinding(permissions, name));
  const commands = declareBindings(session, bindings, bindings.add(o.bindings ?? {}));
  const call = session.register(([name, input]) => bindings.call(name, input));
  const release = [commands.release, () => session.unregister(call)];
  try {
    const params = {
      ...createParams(o),
      ...(o.permissions && { permissions: translate(permissions, programs) }),
      ...(commands.list.length > 0 && { commands: commands.list }),
      functions: [{ id: call, path: ["callBinding"], async: true }],
      calls: { timeoutMs: maxBindingTimeoutMs },
    };
    const info = await timed("create", () => session.request("create", params));
    const box = { session, id: (info as { id: string }).id };
    return { box, bindings, listeners: newListeners(box), release: [...release, keepSandbox(box, info)] };
  } catch (error) {
    for (const undo of release) undo();
    throw error;
  }
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

function declareBindings(session: Session, bindings: Bindings, names: string[]): ReturnType<typeof declareCommands> {
  return declareCommands(session, Object.fromEntries(names.map((name) => [name, ({ args, stdin }) => bindings.command(name, args, stdin)])));
}

async function dispose({ box, release }: Parts): Promise<void> {
  try {
    await box.session.request("close", { sandbox: box.id });
  } catch (error) {
    const gone = error instanceof ConnectionError || (error instanceof GaolError && ["not_found", "closed"].includes(error.code));
    if (!gone) throw error;
  } finally {
    for (const undo of release) undo();
  }
}
