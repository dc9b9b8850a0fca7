import { warnOnce } from "./options.js";

/** Options of {@link Sidecar.spawn}. None has an effect. */
export interface SidecarSpawnOptions {
  [option: string]: unknown;
}

/**
 * A process that secure-exec's runtimes share. It has no effect: each runtime of gaol is a sandbox of its
 * own, which the kernel separates from all others.
 */
export class Sidecar {
  /** Returns a sidecar. It starts nothing. */
  static spawn(_options: SidecarSpawnOptions = {}): Sidecar {
    warnOnce("Sidecar");
    return new Sidecar();
  }

  /** Does nothing. */
  dispose(): Promise<void> {
    return Promise.resolve();
  }
}
