import { accessSync, constants } from "node:fs";
import path from "node:path";
import { ConnectionError } from "../errors.js";

/**
 * Returns the path of the gaol program: the one given, that of the package for this platform, or `gaol`
 * on PATH.
 */
export function findBinary(given: string | undefined, searchPath: string | undefined = process.env["PATH"]): string {
  const found = given ?? ofPackage() ?? onPath(searchPath ?? "");
  if (found !== undefined && isExecutable(found)) return path.resolve(found);
  if (given !== undefined) throw new ConnectionError("no_server", `gaol: cannot execute ${given}`);
  const missing = `@gaol/${process.platform}-${process.arch}`;
  throw new ConnectionError("no_server", `gaol: no server runs, and no program was found to start one: install ${missing}, or set GAOL_BIN to the path of gaol`);
}

function ofPackage(): string | undefined {
  try {
    return require.resolve(`@gaol/${process.platform}-${process.arch}/bin/gaol`);
  } catch {
    return undefined;
  }
}

/** Relative folders of PATH are skipped: the program runs as root. */
function onPath(searchPath: string): string | undefined {
  return searchPath
    .split(path.delimiter)
    .filter((folder) => path.isAbsolute(folder))
    .map((folder) => path.join(folder, "gaol"))
    .find(isExecutable);
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
