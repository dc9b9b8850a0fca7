import { setTimeout as pause } from "node:timers/promises";
import { GaolError } from "../errors.js";
import { checkOptions, type Names } from "../names.js";
import type { Listener } from "../operations.js";
import type { Sandbox } from "../sandbox.js";
import { invalid } from "./validate.js";

/** Which listener to look for. */
export interface NodeRuntimeListenerQuery {
  /** A TCP port. */
  port: number;
  /** The address that it must be bound to. By default any. */
  host?: string;
  /** Not supported: unix sockets are not listed. */
  path?: string;
}

/** A port on which a process of the guest accepts connections. */
export interface NodeRuntimeListener {
  /** Empty: the kernel does not report the process. */
  processId: string;
  host?: string;
  port?: number;
  path?: string;
}

/** Options of {@link NodeRuntime.waitForListener}. */
export interface NodeRuntimeWaitForListenerOptions {
  /** How long to wait, in milliseconds. By default 10,000. */
  timeoutMs?: number;
  /** Ends the wait. */
  signal?: AbortSignal;
  /** How long to wait between looks for a listener on a certain host, in milliseconds. By default 50. */
  pollIntervalMs?: number;
}

const waitNames = { timeoutMs: true, signal: true, pollIntervalMs: true } satisfies Names<NodeRuntimeWaitForListenerOptions>;

/** The listeners of a sandbox. */
export interface Listeners {
  /** Returns the listener that the last look has found, and looks again in the background. */
  find(query: NodeRuntimeListenerQuery): NodeRuntimeListener | null;
  wait(query: NodeRuntimeListenerQuery, options: NodeRuntimeWaitForListenerOptions): Promise<NodeRuntimeListener>;
}

/** Returns the listeners of a sandbox. */
export function newListeners(sandbox: Sandbox): Listeners {
  let known: Listener[] = [];
  let looking: Promise<void> | undefined;
  const look = async (): Promise<void> => void (known = await sandbox.listeners());
  const found = (query: NodeRuntimeListenerQuery): NodeRuntimeListener | null => {
    const match = known.find((l) => l.port === query.port && hostMatches(l.address, query.host));
    return match === undefined ? null : { processId: "", host: match.address === "all" ? "0.0.0.0" : match.address, port: match.port };
  };
  return {
    find(query) {
      checkQuery(query);
      looking ??= look().catch(() => undefined).finally(() => (looking = undefined));
      return found(query);
    },
    async wait(query, options) {
      const { timeoutMs = 10_000, signal = new AbortController().signal, pollIntervalMs = 50 } = checkOptions("waitForListener", options, waitNames);
      checkQuery(query);
      const deadline = Date.now() + timeoutMs;
      for (;;) {
        const left = Math.max(1, deadline - Date.now());
        if (await sandbox.waitForListener(query.port, { timeoutMs: left, signal })) await look();
        const match = found(query);
        if (match !== null) return match;
        if (Date.now() >= deadline) throw new GaolError("timeout", `Timed out after ${timeoutMs}ms waiting for a listener on port ${query.port}`);
        await pause(pollIntervalMs, undefined, { signal }).catch(() => signal.throwIfAborted()); // it listens on another address, or has just stopped
      }
    },
  };
}

function checkQuery(query: NodeRuntimeListenerQuery): void {
  if (query.path !== undefined) throw invalid("path", "unix sockets are not listed", query.path);
  if (!Number.isInteger(query.port) || query.port < 1 || query.port > 65535) throw invalid("port", "want a port", query.port);
}

function hostMatches(address: string, host: string | undefined): boolean {
  const all = ["all", "0.0.0.0", "::"];
  const local = ["127.0.0.1", "::1", "localhost"];
  return host === undefined || host === address || [all, local].some((same) => same.includes(host) && same.includes(address));
}
