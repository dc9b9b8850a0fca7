import path from "node:path";
import { GaolError } from "../errors.js";
import type { Sandbox } from "../sandbox.js";
import { guestPath } from "./options.js";

/** An entry of a folder. */
export interface VirtualDirEntry {
  name: string;
  isDirectory: boolean;
  isSymbolicLink?: boolean;
}

/** The most files of a folder that the server lists. */
const maxFiles = 10_000;

/** Lists a folder. */
export async function listDir(sandbox: Sandbox, dir: string): Promise<VirtualDirEntry[]> {
  const at = guestPath(dir, "path");
  const { files, truncated } = await sandbox.files.list(at, { limit: maxFiles });
  if (truncated) throw new GaolError("too_large", `gaol: ${at} has more than ${maxFiles} files, or paths that are too long`, { status: 413 });
  return files.map((f) => ({ name: path.posix.basename(f.path), isDirectory: f.type === "folder", isSymbolicLink: f.type === "link" }));
}
