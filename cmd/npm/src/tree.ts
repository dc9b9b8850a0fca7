import { pick } from "./names.js";
import { treeNames } from "./optionnames.js";
import type { TreeOptions } from "./options.js";

/** Returns what a sandbox consists of as requests have it. */
export function treeParams(o: TreeOptions): object {
  if (o.bigInts && !("rawJSON" in JSON)) throw new TypeError("gaol: bigInts: JSON.parse of this version of Node loses digits; want Node 22");
  const files: [string, string][] = [];
  const fileBytes: [string, string][] = [];
  for (const [path, content] of Object.entries(o.files ?? {})) {
    if (typeof content === "string") files.push([path, content]);
    else fileBytes.push([path, Buffer.from(content).toString("base64")]);
  }
  const limits = o.limits && { ...o.limits, cpuTimeMs: o.limits.cpuTimeMs && Math.ceil(o.limits.cpuTimeMs) };
  return { ...pick(o, treeNames), limits, files: record(files), fileBytes: record(fileBytes) };
}

function record(entries: [string, string][]): object | undefined {
  return entries.length > 0 ? Object.fromEntries(entries) : undefined;
}
