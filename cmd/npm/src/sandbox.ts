import type { Duplex } from "node:stream";
import { declareCommands, type Commands } from "./commands.js";
import type { RequestOptions, Session } from "./connection/session.js";
import { startContext, type Context } from "./context.js";
import { ConnectionError, GaolError } from "./errors.js";
import { newFiles, type Files } from "./files.js";
import { follow, type RunStream } from "./follow.js";
import { declare } from "./functions.js";
import { checkOptions, pick } from "./names.js";
import { fields, type CommandDeclaration, type Listener, type Operations, type ResourceUsage, type SandboxInfo as Info, type SandboxRequest, type SnapshotInfo } from "./operations.js";
import * as names from "./optionnames.js";
import type { Cancelable, CommandOptions, ContextOptions, EvaluateOptions, OnConnection, RunOptions, SandboxOptions, SpawnOptions } from "./options.js";
import { perform, performOn, sessionOf, type Params, type Result } from "./perform.js";
import { dial, fetchPort } from "./ports.js";
import { startProcess, type Process } from "./process.js";
import { fleetList, type Evaluation, type FleetList, type RunResult } from "./result.js";
import { defaultOutput, evaluationRequest, makeEvaluation, makeRun, milliseconds, runParams, runResult, treeParams, type RunMethod } from "./runs.js";

/** Describes a sandbox. */
export type SandboxInfo = Required<Info>;

/** The state of a sandbox in this program. */
interface Parts {
  info: SandboxInfo;
  session: () => Promise<Session>;
  outputBytes: number;
  detached: boolean;
  release: () => void;
}

/**
 * A sandbox on the server: a file tree, in which programs run. It ends when it is closed, and with the connection,
 * unless it is detached. Its methods may be called at the same time.
 */
export class Sandbox {
  /** Its name on the server. */
  readonly id: string;

  /** The parts of its permissions that the server's kernel does not enforce. */
  readonly missing: readonly string[];

  /** Its files. */
  readonly files: Files;

  readonly #parts: Parts;
  readonly #added = new Map<string, () => void>(); // commands, with what unregisters them
  #closing: Promise<void> | undefined;

  private constructor(parts: Parts) {
    this.#parts = parts;
    this.id = parts.info.id;
    this.missing = parts.info.missing;
    this.files = newFiles(parts.session, this.id);
  }

  /** Creates a sandbox. The caller closes it. */
  static async create(options: SandboxOptions = {}): Promise<Sandbox> {
    const session = await sessionOf(checkOptions("Sandbox.create", options, names.sandboxNames));
    const { globals, functions, release: releaseFunctions } = declare(session, options.globals);
    const commands = options.commands && declareCommands(session, options.commands);
    const release = (): void => {
      releaseFunctions();
      for (const c of commands ?? []) session.unregister(c.id);
    };
    try {
      const { detached = false, calls } = options;
      const params = { ...sandboxParams(options), globals };
      return new Sandbox({
        info: await create(session, params, { detached, host: { functions, commands, calls } }, options.signal),
        session: detached ? () => sessionOf(options) : () => Promise.resolve(session),
        outputBytes: options.limits?.outputBytes || defaultOutput,
        detached,
        release,
      });
    } catch (err) {
      release();
      throw err;
    }
  }

  /** Returns a sandbox that was created elsewhere, such as a detached one. It fails if there is none. */
  static async get(id: string, options: OnConnection = {}): Promise<Sandbox> {
    const session = (): Promise<Session> => sessionOf(options);
    const info = complete(await performOn(checkOptions("Sandbox.get", options, names.connectionNames), "getSandbox", { sandbox: id }));
    return new Sandbox({ info, session, outputBytes: defaultOutput, detached: true, release: () => undefined });
  }

  /** Describes your sandboxes, the oldest first. */
  static async list(options: OnConnection = {}): Promise<FleetList<SandboxInfo>> {
    const { sandboxes, missing } = await performOn(checkOptions("Sandbox.list", options, names.connectionNames), "listSandboxes", {});
    return fleetList(sandboxes.map(complete), missing);
  }

  /** Runs a program in a new process. Its value is the argument of `__return`. */
  run<T = unknown>(code: string, options: RunOptions = {}): Promise<RunResult<T>> {
    return this.#run("run", "runIn", { code }, options);
  }

  /** Runs a program without a value. */
  exec(code: string, options: RunOptions = {}): Promise<RunResult<never>> {
    return this.#run("exec", "execIn", { code }, options);
  }

  /** Runs a program of the image, or the path of one in the sandbox. */
  command(command: string, args: readonly string[] = [], options: CommandOptions = {}): Promise<RunResult<never>> {
    return this.#run("command", "commandIn", { command, args }, options);
  }

  async #run<T>(name: string, method: RunMethod, program: object, o: RunOptions): Promise<RunResult<T>> {
    checkOptions(name, o, method === "commandIn" ? names.commandNames : names.runNames);
    return makeRun(await this.#session(), method, { sandbox: this.id, ...program }, o, this.#parts.outputBytes);
  }

  /** Evaluates code as models write it: its value is that of the last expression. */
  async evaluate<T = unknown>(code: string, options: EvaluateOptions = {}): Promise<Evaluation<T>> {
    checkOptions("evaluate", options, names.evaluateNames);
    return makeEvaluation(await this.#session(), "evaluateIn", { sandbox: this.id, code }, options);
  }

  /** Starts `run` and returns its events. */
  followRun<T = unknown>(code: string, options: RunOptions = {}): RunStream<RunResult<T>> {
    return this.#follow("followRun", "runIn", { code }, options);
  }

  /** Starts `exec` and returns its events. */
  followExec(code: string, options: RunOptions = {}): RunStream<RunResult<never>> {
    return this.#follow("followExec", "execIn", { code }, options);
  }

  /** Starts `command` and returns its events. */
  followCommand(command: string, args: readonly string[] = [], options: CommandOptions = {}): RunStream<RunResult<never>> {
    return this.#follow("followCommand", "commandIn", { command, args }, options);
  }

  #follow<T>(name: string, method: RunMethod, program: object, o: RunOptions): RunStream<RunResult<T>> {
    checkOptions(name, o, method === "commandIn" ? names.commandNames : names.runNames);
    const { stdin, signal } = o;
    const params = runParams({ sandbox: this.id, ...program }, o);
    return follow(this.#session(), method, () => ({ params, options: { stdin, signal } }), (run) => runResult<T>(run));
  }

  /** Starts `evaluate` and returns its events. The result lacks logs. */
  followEvaluate<T = unknown>(code: string, options: Omit<EvaluateOptions, "onLog"> = {}): RunStream<Evaluation<T>> {
    const { onLog: _, ...known } = names.evaluateNames;
    checkOptions("followEvaluate", options, known);
    const prepare = (session: Session) => evaluationRequest(session, { sandbox: this.id, code }, options);
    return follow(this.#session(), "evaluateIn", prepare, (e) => e as Evaluation<T>);
  }

  /** Starts a program of the image as a process that can be talked to. */
  async spawn(command: string, args: readonly string[] = [], options: Omit<SpawnOptions, "name" | "format" | "args"> = {}): Promise<Process> {
    return startProcess(await this.#session(), this.id, { command, args }, checkOptions("spawn", options, names.spawnCommandNames));
  }

  /** Starts a Node program as a process that can be talked to. */
  async spawnCode(code: string, options: SpawnOptions = {}): Promise<Process> {
    return startProcess(await this.#session(), this.id, { code }, checkOptions("spawnCode", options, names.spawnNames));
  }

  /** Starts a process that keeps the declarations of the cells that it evaluates. */
  async createContext(options: ContextOptions = {}): Promise<Context> {
    return startContext(await this.#session(), this.id, options);
  }

  /** Adds commands to the PATH of all programs, including running ones, or replaces them. The sandbox must have been created with `commands`. */
  async addCommands(commands: Commands): Promise<void> {
    const session = await this.#session();
    const list = declareCommands(session, commands);
    const release = (c: CommandDeclaration): void => session.unregister(c.id);
    try {
      await this.#perform("addCommands", {}, { host: { commands: list } });
    } catch (err) {
      list.forEach(release);
      throw err;
    }
    for (const c of list) {
      this.#added.get(c.name)?.();
      this.#added.set(c.name, () => release(c));
    }
  }

  /** Lists the addresses on which programs listen. Addresses other than localhost's, and of all, cannot be reached. */
  async listeners(): Promise<Listener[]> {
    return (await this.#perform("listListeners", {})).listeners;
  }

  /** Waits until a program listens on a port. It reports whether one does; false means that the time is over. */
  async waitForListener(port: number, options: Cancelable & { timeoutMs?: number } = {}): Promise<boolean> {
    const { timeoutMs, signal } = checkOptions("waitForListener", options, { timeoutMs: true, signal: true });
    return (await this.#perform("waitForPort", { port, timeoutMs: milliseconds("timeoutMs", timeoutMs) }, { signal })).listening;
  }

  /** Connects to a server of a program. */
  async dial(port: number, options: Cancelable = {}): Promise<Duplex> {
    return dial(await this.#session(), this.id, port, checkOptions("dial", options, names.signalNames).signal);
  }

  /** Sends an HTTP request to a server of a program. Redirects are not followed, and bodies are not decompressed. */
  async fetch(port: number, input: string | URL | Request, init?: RequestInit): Promise<Response> {
    return fetchPort(async (signal) => dial(await this.#session(), this.id, port, signal), port, input, init);
  }

  /** Takes a snapshot of the home folder, /workspace and the working directory. */
  async snapshot(name: string, options: Cancelable = {}): Promise<SnapshotInfo> {
    return this.#perform("takeSnapshot", { name }, { signal: checkOptions("snapshot", options, names.signalNames).signal });
  }

  /** Returns the sandbox's usage. */
  usage(): Promise<ResourceUsage> {
    return this.#perform("getUsage", {});
  }

  /** Describes the sandbox, without renewing it. */
  async info(): Promise<SandboxInfo> {
    return complete(await this.#perform("getSandbox", {}));
  }

  /** Restarts the idle timeout. */
  async renew(): Promise<SandboxInfo> {
    return complete(await this.#perform("renewSandbox", {}));
  }

  /**
   * Stops all processes until {@link resume}. Meanwhile, whatever would start one fails with the code `paused`. Time limits of
   * runs do not include the pause; the sandbox's idle timeout and lifetime do.
   */
  async pause(): Promise<void> {
    await this.#perform("pauseSandbox", {});
  }

  /** Lets the processes of a paused sandbox continue. */
  async resume(): Promise<void> {
    await this.#perform("resumeSandbox", {});
  }

  /** Kills all that runs in the sandbox, and removes it with its files. Further calls return the promise of the first. */
  close(): Promise<void> {
    return (this.#closing ??= this.#close());
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    try {
      await perform(await this.#parts.session(), "deleteSandbox", { sandbox: this.id });
    } catch (err) {
      const ended = (err instanceof GaolError && ["not_found", "sandbox_lost"].includes(err.code)) || (err instanceof ConnectionError && !this.#parts.detached);
      if (!ended) throw err;
    } finally {
      for (const release of [this.#parts.release, ...this.#added.values()]) release();
    }
  }

  #session(): Promise<Session> {
    if (this.#closing !== undefined) return Promise.reject(new GaolError("closed", "gaol: the sandbox is closed", { status: 410 }));
    return this.#parts.session();
  }

  /** Performs an operation in the sandbox. */
  async #perform<M extends keyof Operations>(method: M, params: Omit<Params<M>, "sandbox">, options?: RequestOptions): Promise<Result<M>> {
    return perform(await this.#session(), method, { sandbox: this.id, ...params } as unknown as Params<M>, options);
  }
}

function sandboxParams(o: SandboxOptions): SandboxRequest {
  const times = { idleTimeoutMs: milliseconds("idleTimeoutMs", o.idleTimeoutMs), lifetimeMs: milliseconds("lifetimeMs", o.lifetimeMs) };
  return { ...pick(o as SandboxRequest, fields.SandboxRequest), ...treeParams(o), ...times };
}

/** Creates a sandbox. One whose creation was canceled too late is closed. */
async function create(session: Session, params: SandboxRequest, options: RequestOptions, signal: AbortSignal | undefined): Promise<SandboxInfo> {
  signal?.throwIfAborted();
  try {
    const info = await perform(session, "createSandbox", params, { ...options, cancelBy: signal });
    if (signal?.aborted) await perform(session, "deleteSandbox", { sandbox: info.id });
    signal?.throwIfAborted();
    return complete(info);
  } catch (err) {
    throw signal?.aborted ? signal.reason : err;
  }
}

/** Adds the fields that are absent if they are false or empty. */
function complete(info: Info): SandboxInfo {
  return { ...info, paused: info.paused ?? false, missing: info.missing ?? [] };
}
