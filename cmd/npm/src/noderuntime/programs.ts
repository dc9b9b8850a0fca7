import type { Session } from "../connection/session.js";
import { GaolError } from "../errors.js";
import { perform } from "../perform.js";
import type { Programs } from "./translate.js";

/**
 * A program of the default image that finds other programs on PATH, and prints their paths without links:
 * the kernel decides by these.
 */
const finder = `
const { realpathSync } = require("node:fs");
const found = [];
for (const name of process.argv.slice(2)) {
  const candidates = name.includes("/") ? [name] : process.env.PATH.split(":").map((dir) => dir + "/" + name);
  for (const file of candidates) {
    try {
      found.push([name, realpathSync(file)]);
      break;
    } catch {}
  }
}
__return(found);
`;

/** Returns the paths of programs of the default image by their names and paths. */
export async function findPrograms(session: Session, names: string[]): Promise<Programs> {
  if (names.length === 0) return new Map();
  const result = await perform(session, "run", { code: finder, name: "find.cjs", args: names });
  if (result.exitCode !== 0) throw new GaolError("internal", `finding the programs of rules ended with status ${result.exitCode}`);
  return new Map(result.value as [string, string][]);
}
