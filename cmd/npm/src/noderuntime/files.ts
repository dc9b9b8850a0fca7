import path from "node:path";
import { GaolError } from "../errors.js";
import type { Box } from "./execution.js";
import { guestPath } from "./options.js";

/** A file or folder in a folder. */
export interface VirtualDirEntry {
  name: string;
  isDirectory: boolean;
  isSymbolicLink?: boolean;
}

/** Writes a file, and creates missing folders. */
export async function writeFile(box: Box, file: string, content: string | Uint8Array): Promise<void> {
  await box.session.request("writeFile", { sandbox: box.id, path: guestPath(file, "path"), createParents: true }, { stdin: content });
}

/** Reads a file. */
export async function readFile(box: Box, file: string): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  await box.session.request("readFile", { sandbox: box.id, path: guestPath(file, "path") }, { onStdout: (piece) => void pieces.push(piece) });
  return new Uint8Array(Buffer.concat(pieces));
}

/** The most files of a folder that the server lists. */
const maxFiles = 10_000;

interface Listed {
  path: string;
  type: string;
}

/** Lists a folder. */
export async function listDir(box: Box, dir: string): Promise<VirtualDirEntry[]> {
  const at = guestPath(dir, "path");
  const list = (await box.session.request("listFiles", { sandbox: box.id, path: at, limit: maxFiles })) as { files: Listed[]; truncated: boolean };
  if (list.truncated) throw new GaolError("too_large", `gaol: ${at} has more than ${maxFiles} files, or paths that are too long`, { status: 413 });
  return list.files.map((f) => ({ name: path.posix.basename(f.path), isDirectory: f.type === "folder", isSymbolicLink: f.type === "link" }));
}
