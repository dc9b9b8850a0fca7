// Runs the program of the page, one at a time.
import { ApiError, run, type Request, type Result } from "./api.js";
import { askToken } from "./dialogs.js";
import { byId } from "./dom.js";
import { say } from "./notice.js";
import type { Output } from "./output.js";
import { duration } from "./text.js";

/** Runs programs, and shows what they do. */
export class Runner {
  /** The token, in memory only. */
  token = "";

  readonly #output: Output;
  readonly #onToken: () => void;
  readonly #canAsk: boolean;
  #running: AbortController | undefined;
  #began = 0;

  /** A page in a frame does not ask for a token: it could be drawn over. */
  constructor(output: Output, canAsk: boolean, onToken: () => void) {
    this.#output = output;
    this.#canAsk = canAsk;
    this.#onToken = onToken;
    byId("stop").addEventListener("click", () => this.stop());
  }

  stop(): void {
    this.#running?.abort();
  }

  /** Runs a program. It returns undefined if that has no result. A run in progress continues. */
  async run(program: Request): Promise<Result | undefined> {
    if (this.#running !== undefined) {
      return undefined;
    }
    const controller = new AbortController();
    this.#setRunning(controller);
    this.#began = performance.now();
    this.#output.start();
    say("Running.");
    try {
      return await this.#attempt(program, controller.signal);
    } catch (error) {
      if (controller.signal.aborted) {
        this.#output.abort("stopped", `After ${duration(performance.now() - this.#began)}. Its output so far is kept.`);
        say("Stopped.");
      } else {
        const why = error instanceof ApiError ? error.message : `The page failed: ${String(error)}`;
        this.#output.abort("failed", why);
        say(why);
      }
      return undefined;
    } finally {
      this.#setRunning(undefined);
    }
  }

  // The server may want a token, and may reject one.
  async #attempt(program: Request, signal: AbortSignal): Promise<Result> {
    for (;;) {
      try {
        return await run(program, this.token, signal, (line) => this.#output.line(line));
      } catch (error) {
        if (!(error instanceof ApiError) || error.status !== 401) {
          throw error;
        }
        if (!this.#canAsk) {
          throw new ApiError(401, `${error.message} Open it in the playground to enter one.`);
        }
        this.#output.pause("Waiting for the token.");
        const token = await askToken(this.token !== "");
        if (token === undefined) {
          throw error;
        }
        this.token = token;
        this.#began = performance.now();
        this.#output.start();
        this.#onToken();
      }
    }
  }

  #setRunning(controller: AbortController | undefined): void {
    this.#running = controller;
    byId("run").setAttribute("aria-disabled", String(controller !== undefined));
    byId("stop").setAttribute("aria-disabled", String(controller === undefined));
  }
}
