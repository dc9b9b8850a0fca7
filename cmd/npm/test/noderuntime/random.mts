import type { NodeRuntimePermissions } from "gaol";

/** Numbers that are the same in each run: a linear congruential generator. */
export function newRandom(seed: number): { below(n: number): number; pick<T>(items: readonly T[]): T; some<T>(items: readonly T[], most: number): T[] } {
  let state = seed >>> 0;
  const below = (n: number): number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * n);
  };
  const pick = <T,>(items: readonly T[]): T => items[below(items.length)] as T;
  return { below, pick, some: (items, most) => Array.from({ length: 1 + below(most) }, () => pick(items)) };
}

export type Random = ReturnType<typeof newRandom>;

export const fsOperations = ["read", "write", "stat", "readdir", "create_dir", "rm", "rename", "symlink", "readlink", "truncate"];
export const networkOperations = ["fetch", "http", "dns", "listen"];

const folders = ["/", "/a", "/a/b", "/a/b/c", "/ab", "/d/e"];

/** Paths that rules and questions are about. */
export const paths = ["/a", "/a/b", "/a/b/c", "/a/b/c/f.txt", "/a/x", "/a/x/y", "/ab", "/ab/f", "/d", "/d/e", "/d/e/f", "/f.txt"];

/** Patterns that translate accepts, and some that it does not. */
const pathPatterns = [...folders.map((f) => `${f === "/" ? "" : f}/**`), ...paths, "*", "/a/*", "/a/**/f", "/a/b?", "/ab**", "a/b", "**/f", "/a//b", "/a/../b"];

const hosts = ["example.com", "api.example.com", "deep.api.example.com", "other.test", "93.184.216.34", "127.0.0.1", "localhost"];
const networkPatterns = [
  "*", "tcp://*:443", "tcp://*", "dns://*", "dns://*.example.com", "tcp://api-*.example.com:443", "tcp://example.com:80*", "tcp://example.com", "https://example.com/x",
  ...["example.com", "*.example.com", "api.example.com", "other.test", "93.184.216.34", "localhost"].flatMap((h) => [h, `${h}:443`, `tcp://${h}:80`, `tcp://${h}:*`]),
  ...["example.com", "api.example.com", "other.test"].map((h) => `dns://${h}`),
];

/** Resources of the network. */
export const endpoints = [...hosts.flatMap((h) => [`tcp://${h}:80`, `tcp://${h}:443`]), ...hosts.filter((h) => /[a-z]/.test(h)).map((h) => `dns://${h}`)];

export const variables = ["PATH", "API_KEY", "API_URL", "HOME", "A", ""].filter(Boolean);
const variablePatterns = ["*", "**", "API_*", "A?I_KEY", "PATH", "A*", "*_KEY"];
export const programs = ["/usr/bin/git", "/usr/bin/dash", "/usr/local/bin/node", "/opt/tool"];
const programPatterns = ["git", "dash", "node", "/opt/tool", "/usr/bin/**", "*"];

/** The programs that names in rules are. */
export const resolved: ReadonlyMap<string, string> = new Map([["git", "/usr/bin/git"], ["dash", "/usr/bin/dash"], ["node", "/usr/local/bin/node"], ["/opt/tool", "/opt/tool"], ["cat", "/usr/bin/busybox"]]);

const modes = ["allow", "deny"] as const;

/** Returns random permissions. */
export function randomPermissions(r: Random): NodeRuntimePermissions {
  const rules = (operations: readonly string[], key: "paths" | "patterns", patterns: readonly string[]) => {
    if (r.below(8) === 0) return r.pick(modes);
    const rule = () => ({
      mode: r.pick(modes),
      ...(r.below(3) > 0 && { operations: r.some([...operations, "*"], 3) }),
      ...(r.below(12) > 0 && { [key]: r.some(patterns, 3) }),
    });
    return { ...(r.below(2) > 0 && { default: r.pick(modes) }), rules: Array.from({ length: 1 + r.below(3) }, rule) };
  };
  const { fs, network, childProcess, env } = {
    fs: rules([...fsOperations, "mount_sensitive"], "paths", pathPatterns),
    network: rules(networkOperations, "patterns", networkPatterns),
    childProcess: rules(["spawn"], "patterns", programPatterns),
    env: rules(["read"], "patterns", variablePatterns),
  };
  return r.pick([{ fs }, { network }, { childProcess }, { env }, { fs, network, childProcess, env }]) as NodeRuntimePermissions;
}
