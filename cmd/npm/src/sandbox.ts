import type { Duplex } from "node:stream";
import { declareCommands, type CommandDeclaration, type Commands } from "./commands.js";
import type { Session } from "./connection/session.js";
import { startContext, type Context } from "./context.js";
import { ConnectionError, GaolError } from "./errors.js";
import { evaluateLimits, makeEvaluation } from "./evaluations.js";
import { newFiles, type Files } from "./files.js";
import { follow, type RunStream } from "./follow.js";
import { declare } from "./functions.js";
import { checkOptions, pick } from "./names.js";
import * as names from "./optionnames.js";
import type { CommandOptions, ContextOptions, EvaluateOptions, OnConnection, RunOptions, SandboxOptions, SpawnOptions } from "./options.js";
import { asList, asNumber, asObject, asText, parseEvaluation, parseRun } from "./parse.js";
import { dial, fetchPort, parseListeners, type Listener } from "./ports.js";
import { startProcess, type Process } from "./process.js";
import type { Evaluation, RunResult } from "./result.js";
import { defaultOutput, makeRun, milliseconds, timeLimit } from "./runs.js";
import { connectionOf, parseSnapshot, type SnapshotInfo } from "./snapshots.js";
import { treeParams } from "./tree.js";

/** Describes a sandbox. */
export interface SandboxInfo {
  id: string;
  created: Date;

  /** When it is deleted, unless it is used before. */
  expires: Date;

  /** When it is deleted at the latest. */
  lifetimeEnd: Date;

  /** What confines it, as {@link SandboxOptions} has it. */
  isolation: string;

  /** Active runs, processes and contexts. */
  processes: number;

  /** Rules that the server's kernel does not enforce. */
  missing: string[];
}

/** What the active runs, processes and contexts of a sandbox have at one moment. */
export interface ResourceUsage {
  /** Processes, with all descendants. */
  runningProcesses: number;

  /** Processes and contexts of the HTTP API that have ended and are kept. */
  exitedProcesses: number;
  openFds: number;
  sockets: number;
  socketListeners: number;
  socketConnections: number;
  pipes: number;
  ptys: number;
  memoryBytes: number;
  diskBytes: number;
  inodes: number;

  /** There are more descriptors than were counted. */
  truncated: boolean;
}

/** What a sandbox has in this program. */
interface Parts {
  id: string;
  missing: readonly string[];
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
    this.id = parts.id;
    this.missing = parts.missing;
    this.files = newFiles(parts.session, parts.id);
  }

  /** Creates a sandbox. The caller closes it. */
  static async create(options: SandboxOptions = {}): Promise<Sandbox> {
    const session = await connectionOf(checkOptions("Sandbox.create", options, names.sandboxNames)).session();
    const functions = declare(session, options.globals);
    const commands = options.commands && declareCommands(session, options.commands);
    const release = (): void => {
      functions.release();
      for (const c of commands ?? []) session.unregister(c.id);
    };
    try {
      const { permissions, env, cwd, detached, calls, hostPorts, idleTimeoutMs, lifetimeMs } = options;
      const params = {
        ...{ ...treeParams(options), permissions, env, cwd, detached, calls, hostPorts },
        ...{ idleTimeoutMs: milliseconds("idleTimeoutMs", idleTimeoutMs), lifetimeMs: milliseconds("lifetimeMs", lifetimeMs) },
        ...functions.params,
        commands,
      };
      const info = parseInfo(await create(session, params, options.signal));
      return new Sandbox({
        id: info.id,
        missing: info.missing,
        session: detached === true ? () => connectionOf(options).session() : () => Promise.resolve(session),
        outputBytes: options.limits?.outputBytes || defaultOutput,
        detached: detached === true,
        release,
      });
    } catch (err) {
      release();
      throw err;
    }
  }

  /** Returns a sandbox that was created elsewhere, such as a detached one. It fails if there is none. */
  static async get(id: string, options: OnConnection = {}): Promise<Sandbox> {
    const session = () => connectionOf(options).session();
    checkOptions("Sandbox.get", options, names.connectionNames);
    const { missing } = parseInfo(await (await session()).request("get", { sandbox: id }));
    return new Sandbox({ id, missing, session, outputBytes: defaultOutput, detached: true, release: () => undefined });
  }

  /** Describes your sandboxes, the oldest first. */
  static async list(options: OnConnection = {}): Promise<SandboxInfo[]> {
    const list = await (await connectionOf(checkOptions("Sandbox.list", options, names.connectionNames)).session()).request("list");
    return asList(asObject(list, "list of sandboxes")["sandboxes"], "list of sandboxes").map(parseInfo);
  }

  /** Runs a program in a new process. Its value is what it passes to `__return`. */
  async run<T = unknown>(code: string, options: RunOptions = {}): Promise<RunResult<T>> {
    return makeRun<T>(await this.#session(), "run", { sandbox: this.id, code }, checkOptions("run", options, names.runNames), this.#parts.outputBytes);
  }

  /** Runs a program that has no value. */
  async exec(code: string, options: RunOptions = {}): Promise<RunResult<never>> {
    return makeRun(await this.#session(), "exec", { sandbox: this.id, code }, checkOptions("exec", options, names.runNames), this.#parts.outputBytes);
  }

  /** Runs a program of the image, or the path of one in the sandbox. */
  async command(command: string, args: readonly string[] = [], options: CommandOptions = {}): Promise<RunResult<never>> {
    return makeRun(await this.#session(), "command", { sandbox: this.id, command }, { ...checkOptions("command", options, names.commandNames), args }, this.#parts.outputBytes);
  }

  /** Evaluates code as models write it: its value is that of the last expression. */
  async evaluate<T = unknown>(code: string, options: EvaluateOptions = {}): Promise<Evaluation<T>> {
    const { permissions, env, cwd } = checkOptions("evaluate", options, names.evaluateNames);
    return makeEvaluation<T>(await this.#session(), "evaluate", { sandbox: this.id, code, permissions, env, cwd }, options);
  }

  /** Starts `run` and returns its events. */
  followRun<T = unknown>(code: string, options: RunOptions = {}): RunStream<RunResult<T>> {
    return this.#follow("run", { code }, checkOptions("followRun", options, names.runNames));
  }

  /** Starts `exec` and returns its events. */
  followExec(code: string, options: RunOptions = {}): RunStream<RunResult<never>> {
    return this.#follow("exec", { code }, checkOptions("followExec", options, names.runNames));
  }

  /** Starts `command` and returns its events. */
  followCommand(command: string, args: readonly string[] = [], options: CommandOptions = {}): RunStream<RunResult<never>> {
    return this.#follow("command", { command }, { ...checkOptions("followCommand", options, names.commandNames), args });
  }

  /** Starts `evaluate` and returns its events. The result has no logs. */
  followEvaluate<T = unknown>(code: string, options: Omit<EvaluateOptions, "onLog"> = {}): RunStream<Evaluation<T>> {
    const { onLog: _, ...known } = names.evaluateNames;
    const { permissions, env, cwd } = checkOptions("followEvaluate", options, known);
    let release = (): void => undefined;
    const params = (session: Session): object => {
      const functions = declare(session, options.globals);
      release = functions.release;
      return { sandbox: this.id, code, permissions, env, cwd, ...functions.params, ...evaluateLimits(options) };
    };
    return follow(this.#session(), { method: "evaluate", params, parse: parseEvaluation<T>, release: () => release() }, options);
  }

  #follow<T>(method: string, program: object, o: RunOptions): RunStream<RunResult<T>> {
    const params = { sandbox: this.id, ...program, ...pick(o, names.programNames), ...timeLimit(o), stdinStream: o.stdin === undefined ? undefined : true };
    const none = { bytes: new Uint8Array(), truncated: false };
    return follow(this.#session(), { method, params: () => params, parse: (value) => parseRun<T>(value, none, none) }, o);
  }

  /** Starts a program of the image as a process that can be talked to. */
  async spawn(command: string, args: readonly string[] = [], options: Omit<SpawnOptions, "name" | "format" | "args"> = {}): Promise<Process> {
    return startProcess(await this.#session(), { sandbox: this.id, command }, { ...checkOptions("spawn", options, names.spawnCommandNames), args });
  }

  /** Starts a Node program as a process that can be talked to. */
  async spawnCode(code: string, options: SpawnOptions = {}): Promise<Process> {
    return startProcess(await this.#session(), { sandbox: this.id, code }, checkOptions("spawnCode", options, names.spawnNames));
  }

  /** Starts a process that keeps the declarations of the cells that it evaluates. */
  async createContext(options: ContextOptions = {}): Promise<Context> {
    return startContext(await this.#session(), this.id, options);
  }

  /** Adds commands to the PATH of all programs, also of those that run, or replaces them. The sandbox must have been created with `commands`. */
  async addCommands(commands: Commands): Promise<void> {
    const session = await this.#session();
    const list = declareCommands(session, commands);
    const release = (c: CommandDeclaration): void => session.unregister(c.id);
    try {
      await session.request("addCommands", { sandbox: this.id, commands: list });
    } catch (err) {
      list.forEach(release);
      throw err;
    }
    for (const c of list) {
      this.#added.get(c.name)?.();
      this.#added.set(c.name, () => release(c));
    }
  }

  /** Lists the addresses on which programs listen. */
  async listeners(): Promise<Listener[]> {
    return parseListeners(await (await this.#session()).request("listeners", { sandbox: this.id }));
  }

  /** Waits until a program listens on a port. It reports whether one does; false means that the time is over. */
  async waitForListener(port: number, options: { timeoutMs?: number; signal?: AbortSignal } = {}): Promise<boolean> {
    const { timeoutMs, signal } = checkOptions("waitForListener", options, { timeoutMs: true, signal: true });
    const params = { sandbox: this.id, port, timeoutMs: milliseconds("timeoutMs", timeoutMs) };
    const found = await (await this.#session()).request("waitForListener", params, { signal });
    return asObject(found, "listener")["listening"] === true;
  }

  /** Connects to a server of a program. */
  async dial(port: number, options: { signal?: AbortSignal } = {}): Promise<Duplex> {
    return dial(await this.#session(), this.id, port, checkOptions("dial", options, names.signalNames).signal);
  }

  /** Sends an HTTP request to a server of a program. Redirects are not followed, and bodies are not decompressed. */
  async fetch(port: number, input: string | URL | Request, init?: RequestInit): Promise<Response> {
    return fetchPort(async (signal) => dial(await this.#session(), this.id, port, signal), port, input, init);
  }

  /** Takes a snapshot of the home folder, /workspace and the working directory. */
  async snapshot(name: string, options: { signal?: AbortSignal } = {}): Promise<SnapshotInfo> {
    const { signal } = checkOptions("snapshot", options, names.signalNames);
    return parseSnapshot(await (await this.#session()).request("snapshot", { sandbox: this.id, name }, { signal }));
  }

  /** Counts and measures what the sandbox uses. */
  async usage(): Promise<ResourceUsage> {
    return asObject(await (await this.#session()).request("usage", { sandbox: this.id }), "usage") as unknown as ResourceUsage;
  }

  /** Describes the sandbox, without renewing it. */
  async info(): Promise<SandboxInfo> {
    return parseInfo(await (await this.#session()).request("get", { sandbox: this.id }));
  }

  /** Restarts the idle timeout. */
  async renew(): Promise<SandboxInfo> {
    return parseInfo(await (await this.#session()).request("renew", { sandbox: this.id }));
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
      await (await this.#parts.session()).request("close", { sandbox: this.id });
    } catch (err) {
      const ended = (err instanceof GaolError && err.code === "not_found") || (err instanceof ConnectionError && !this.#parts.detached);
      if (!ended) throw err;
    } finally {
      for (const release of [this.#parts.release, ...this.#added.values()]) release();
    }
  }

  #session(): Promise<Session> {
    if (this.#closing !== undefined) return Promise.reject(new GaolError("closed", "gaol: the sandbox is closed", { status: 410 }));
    return this.#parts.session();
  }
}

/** Creates a sandbox. One whose creation was canceled too late is closed. */
async function create(session: Session, params: object, signal: AbortSignal | undefined): Promise<unknown> {
  signal?.throwIfAborted();
  const r = session.open("create", params);
  const cancel = (): void => r.cancel();
  signal?.addEventListener("abort", cancel, { once: true });
  try {
    const info = await r.result;
    if (signal?.aborted) await session.request("close", { sandbox: parseInfo(info).id });
    signal?.throwIfAborted();
    return info;
  } catch (err) {
    throw signal?.aborted ? signal.reason : err;
  } finally {
    signal?.removeEventListener("abort", cancel);
  }
}

function parseInfo(value: unknown): SandboxInfo {
  const info = asObject(value, "sandbox");
  const date = (name: string): Date => new Date(asText(info[name], "sandbox"));
  return {
    id: asText(info["id"], "sandbox"),
    created: date("created"),
    expires: date("expires"),
    lifetimeEnd: date("lifetimeEnd"),
    isolation: asText(info["isolation"], "sandbox"),
    processes: asNumber(info["processes"], "sandbox"),
    missing: info["missing"] === undefined ? [] : (asList(info["missing"], "sandbox") as string[]),
  };
}
