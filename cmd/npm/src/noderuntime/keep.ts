import type { Sandbox } from "../sandbox.js";

/** The longest time between two renewals: a timer takes no more. */
const maxDelay = 0x7fffffff;

/**
 * Renews a sandbox before the server deletes it for lack of use, as long as this process lives and until the
 * returned function is called. The timer does not keep the process alive.
 */
export async function keepSandbox(sandbox: Sandbox): Promise<() => void> {
  const { created, expires } = await sandbox.info();
  const delay = Math.min((expires.getTime() - created.getTime()) / 3, maxDelay);
  const timer = setInterval(() => {
    sandbox.renew().catch(() => clearInterval(timer)); // it is gone
  }, delay);
  timer.unref();
  return () => clearInterval(timer);
}
