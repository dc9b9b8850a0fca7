import { sharedConnection, type Connection } from "./connection/connection.js";
import { checkOptions } from "./names.js";
import { connectionNames } from "./optionnames.js";
import type { OnConnection } from "./options.js";
import { asList, asNumber, asObject, asText } from "./parse.js";

/** A copy of a sandbox's folders. */
export interface SnapshotInfo {
  name: string;

  /** Bytes of its files. */
  size: number;
}

/** Parses the description of a snapshot. */
export function parseSnapshot(value: unknown): SnapshotInfo {
  const s = asObject(value, "snapshot");
  return { name: asText(s["name"], "snapshot"), size: asNumber(s["size"], "snapshot") };
}

/** Returns the connection to use. */
export function connectionOf(o: OnConnection): Connection {
  return o.connection ?? sharedConnection();
}

/** Lists your snapshots. */
export async function listSnapshots(options: OnConnection = {}): Promise<SnapshotInfo[]> {
  const list = await (await connectionOf(checkOptions("listSnapshots", options, connectionNames)).session()).request("listSnapshots");
  return asList(asObject(list, "list of snapshots")["snapshots"], "list of snapshots").map(parseSnapshot);
}

/** Removes a snapshot. */
export async function removeSnapshot(name: string, options: OnConnection = {}): Promise<void> {
  await (await connectionOf(checkOptions("removeSnapshot", options, connectionNames)).session()).request("removeSnapshot", { name });
}
