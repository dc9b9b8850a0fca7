import type { Sandbox } from "../sandbox.js";

/** What a sandbox uses. Fields that the kernel does not count are 0. */
export interface NodeRuntimeResourceSnapshot {
  runningProcesses: number;
  exitedProcesses: number;
  fdTables: number;
  openFds: number;
  pipes: number;
  pipeBufferedBytes: number;
  ptys: number;
  ptyBufferedInputBytes: number;
  ptyBufferedOutputBytes: number;
  sockets: number;
  socketListeners: number;
  socketConnections: number;
  socketBufferedBytes: number;
  socketDatagramQueueLen: number;
  queueSnapshots: {
    name: string;
    category: string;
    depth: number;
    highWater: number;
    capacity: number;
    fillPercent: number;
  }[];
  /** Memory of all processes. gaol adds it. */
  memoryBytes: number;
  /** Files of the sandbox on disk. gaol adds it. */
  diskBytes: number;
  /** Files and folders of the sandbox. gaol adds it. */
  inodes: number;
}

const counted = [
  "runningProcesses", "exitedProcesses", "openFds", "pipes", "ptys", "sockets", "socketListeners", "socketConnections",
  "memoryBytes", "diskBytes", "inodes",
] as const;

/** Asks the server what a sandbox uses. */
export async function resourceSnapshot(sandbox: Sandbox): Promise<NodeRuntimeResourceSnapshot> {
  const usage = await sandbox.usage();
  const known = Object.fromEntries(counted.map((name) => [name, usage[name]])) as Record<(typeof counted)[number], number>;
  return {
    fdTables: known.runningProcesses, // each process has one
    pipeBufferedBytes: 0, ptyBufferedInputBytes: 0, ptyBufferedOutputBytes: 0,
    socketBufferedBytes: 0, socketDatagramQueueLen: 0, queueSnapshots: [],
    ...known,
  };
}
