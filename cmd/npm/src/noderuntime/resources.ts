import type { ResourceUsage } from "../operations.js";
import type { Sandbox } from "../sandbox.js";

/** The usage of a sandbox. Fields that the kernel does not count are 0. gaol adds `memoryBytes`, `diskBytes` and `files`. */
export interface NodeRuntimeResourceSnapshot extends Omit<ResourceUsage, "truncated"> {
  fdTables: number;
  pipeBufferedBytes: number;
  ptyBufferedInputBytes: number;
  ptyBufferedOutputBytes: number;
  socketBufferedBytes: number;
  socketDatagramQueueLen: number;
  queueSnapshots: { name: string; category: string; depth: number; highWater: number; capacity: number; fillPercent: number }[];
}

/** Asks the server for the usage of a sandbox. */
export async function resourceSnapshot(sandbox: Sandbox): Promise<NodeRuntimeResourceSnapshot> {
  const { truncated: _, ...usage } = await sandbox.usage();
  return {
    ...usage,
    fdTables: usage.runningProcesses, // each process has one
    pipeBufferedBytes: 0, ptyBufferedInputBytes: 0, ptyBufferedOutputBytes: 0,
    socketBufferedBytes: 0, socketDatagramQueueLen: 0, queueSnapshots: [],
  };
}
