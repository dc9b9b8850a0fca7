import type { Session } from "./connection/session.js";

/** A call of a command by a sandboxed program. All of it is the program's text. */
export interface CommandCall {
  readonly args: readonly string[];
  readonly stdin: string;

  /** Aborted when the program no longer waits for the result. */
  readonly signal: AbortSignal;
}

/** What a command prints, and its exit status. */
export interface CommandOutput {
  stdout?: string;
  stderr?: string;
  exitCode?: number;
}

/**
 * A command on the PATH of sandboxed programs that calls this program. It returns its standard output, or all of
 * its output. An error is printed on standard error, with the exit status 1.
 */
export type CommandHandler = (call: CommandCall) => string | CommandOutput | void | Promise<string | CommandOutput | void>;

/** Commands by name. */
export type Commands = Readonly<Record<string, CommandHandler>>;

/** Makes commands callable, and returns their declarations. The caller releases them. */
export function declareCommands(session: Session, commands: Commands = {}): { list: { id: number; name: string }[]; release(): void } {
  const list = Object.entries(commands).map(([name, handler]) => ({ name, id: session.register((args, signal) => answer(handler, args[0], signal)) }));
  return { list, release: () => list.forEach((c) => session.unregister(c.id)) };
}

async function answer(handler: CommandHandler, call: unknown, signal: AbortSignal): Promise<Required<CommandOutput>> {
  const { args, stdin } = (call ?? {}) as { args?: unknown; stdin?: unknown };
  const texts = Array.isArray(args) ? args.map(String) : [];
  try {
    const output = (await handler({ args: texts, stdin: typeof stdin === "string" ? stdin : "", signal })) ?? "";
    const { stdout = "", stderr = "", exitCode = 0 } = typeof output === "string" ? { stdout: output } : output;
    return { stdout, stderr, exitCode };
  } catch (err) {
    return { stdout: "", stderr: `${err instanceof Error ? err.message : String(err)}\n`, exitCode: 1 };
  }
}
