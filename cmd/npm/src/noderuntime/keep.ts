import type { Box } from "./execution.js";

/** The longest time between two renewals: a timer takes no more. */
const maxDelay = 0x7fffffff;

/**
 * Renews a sandbox before the server deletes it for lack of use, as long as this process lives and the
 * runtime is not disposed. It returns the function that stops that. The timer does not keep the process alive.
 */
export function keepSandbox(box: Box, info: unknown): () => void {
  const { created, expires } = info as { created: string; expires: string };
  const delay = Math.min((Date.parse(expires) - Date.parse(created)) / 3, maxDelay);
  if (!(delay > 0)) return () => undefined;
  const timer = setInterval(() => {
    box.session.request("renew", { sandbox: box.id }, { ref: false }).catch(() => clearInterval(timer)); // the sandbox is gone
  }, delay);
  timer.unref();
  return () => clearInterval(timer);
}
