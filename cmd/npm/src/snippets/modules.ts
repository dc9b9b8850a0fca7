import { statSync } from "node:fs";
import path from "node:path";

/** Returns the nearest folder node_modules of a folder or of one above it, or undefined if there is none. */
export function nearestModules(folder: string): string | undefined {
  const modules = path.join(folder, "node_modules");
  if (statSync(modules, { throwIfNoEntry: false })?.isDirectory()) return modules;
  const parent = path.dirname(folder);
  return parent === folder ? undefined : nearestModules(parent);
}
