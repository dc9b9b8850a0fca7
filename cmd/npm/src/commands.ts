import type { Session } from "./connection/session.js";
import { checkOptions, type Names } from "./names.js";
import type { CommandCall as Call, CommandDeclaration, CommandResult } from "./operations.js";
import { decode } from "./perform.js";

/** A call of a command by a sandboxed program. All of it is the program's text. */
export interface CommandCall extends Readonly<Call> {
  /** Aborted when the program no longer waits for the result. */
  readonly signal: AbortSignal;
}

/** The output of a command, and its exit status. */
export type CommandOutput = Partial<CommandResult>;

/**
 * A command on the PATH of sandboxed programs that calls this program. It returns its standard output, or all of
 * its output. An error is printed on standard error, with the exit status 1.
 */
export type CommandHandler = (call: CommandCall) => string | CommandOutput | void | Promise<string | CommandOutput | void>;

/** A command, and whether it reads its standard input to the end before the call. By default it does not touch the input. */
export interface HostCommand {
  stdin?: boolean;
  run: CommandHandler;
}

/** Commands by name. */
export type Commands = Readonly<Record<string, CommandHandler | HostCommand>>;

const commandNames = { stdin: true, run: true } satisfies Names<HostCommand>;

/** Makes commands callable, and returns their declarations. The caller unregisters them. */
export function declareCommands(session: Session, commands: Commands): CommandDeclaration[] {
  return Object.entries(commands).map(([name, command]) => {
    const { stdin, run }: HostCommand = typeof command === "function" ? { run: command } : checkOptions(`command ${name}`, command, commandNames);
    return { name, id: session.register((args, signal) => answer(run, args[0], signal)), ...(stdin && { stdin }) };
  });
}

async function answer(handler: CommandHandler, call: unknown, signal: AbortSignal): Promise<CommandResult> {
  try {
    const output = (await handler({ ...(decode("CommandCall", call, "call") as Call), signal })) ?? "";
    const { stdout = "", stderr = "", exitCode = 0 } = typeof output === "string" ? { stdout: output } : output;
    return { stdout, stderr, exitCode };
  } catch (err) {
    return { stdout: "", stderr: `${err instanceof Error ? err.message : String(err)}\n`, exitCode: 1 };
  }
}
