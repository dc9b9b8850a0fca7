import type { NodeRuntimePermissions } from "gaol";
import { fsOperations, networkOperations, endpoints, paths, programs, resolved, variables } from "./random.mjs";

/** A question to gaol's policy, and secure-exec's answer: scope, operation, resource, allowed. */
export type Decision = [scope: string, operation: string, resource: string, allowed: boolean];

interface Rule {
  mode: "allow" | "deny";
  operations?: string[];
  paths?: string[];
  patterns?: string[];
}

/** Matches as secure-exec does, character by character. */
export function matches(pattern: string, value: string): boolean {
  if (pattern === "") return value === "";
  if (!pattern.startsWith("*")) {
    const one = value !== "" && (pattern[0] === "?" ? value[0] !== "/" : pattern[0] === value[0]);
    return one && matches(pattern.slice(1), value.slice(1));
  }
  const rest = pattern.replace(/^\*+/, "");
  const crosses = pattern.length - rest.length > 1;
  for (let end = 0; ; end++) {
    if (matches(rest, value.slice(end))) return true;
    if (end === value.length || (value[end] === "/" && !crosses)) return false;
  }
}

/** The last rule that matches decides, else the default. */
function decide(scope: NodeRuntimePermissions[keyof NodeRuntimePermissions], byDefault: boolean, does: (rule: Rule) => boolean): boolean {
  if (scope === undefined) return byDefault;
  if (typeof scope === "string") return scope === "allow";
  return ((scope.rules as Rule[]).findLast(does)?.mode ?? scope.default ?? "deny") === "allow";
}

function names(rule: Rule, operations: string[]): boolean {
  return rule.operations === undefined || rule.operations.includes("*") || rule.operations.some((op) => operations.includes(op));
}

function covers(patterns: string[] | undefined, value: string, expand: (pattern: string) => string[]): boolean {
  return (patterns ?? ["*"]).some((p) => p === "*" || p === "**" || expand(p).some((e) => matches(e, value)));
}

/** gaol's operations for one of secure-exec's. */
const inGaol: Record<string, string[]> = { read: ["read", "execute"], write: ["write", "chmod"], fetch: ["fetch", "connect"], http: ["fetch", "connect"] };

/** P/** is also P itself: gaol cannot separate a folder from its content. */
const withFolder = (pattern: string): string[] => [pattern, pattern.replace(/\/\*\*$/, "") || "/"];

function fsDecisions(p: NodeRuntimePermissions): Decision[] {
  return paths.flatMap((path) => {
    const allowed = new Map(fsOperations.map((op) => [op, decide(p.fs, true, (r) => names(r, [op]) && covers(r.paths, path, withFolder))]));
    const any = [...allowed.values()].includes(true);
    const asked = fsOperations.filter((op) => !any || (op !== "stat" && op !== "readlink")); // these come with any other operation
    return asked.flatMap((op) => (inGaol[op] ?? [op]).map((o): Decision => ["fs", o, path, allowed.get(op) === true]));
  });
}

/** A host alone is its ports and its look-up, and localhost's addresses are the same as localhost. */
function withScheme(pattern: string): string[] {
  const local = (text: string): string => text.replace("127.0.0.1", "localhost");
  if (pattern.includes("://")) return [local(pattern)];
  const [host = "", port = "*"] = pattern.split(":");
  return [local(`tcp://${host}:${port}`), ...(/^[0-9.]+$/.test(host) ? [] : [`dns://${host}`])];
}

function networkDecisions(p: NodeRuntimePermissions): Decision[] {
  return endpoints.filter((endpoint) => isComparable(p, endpoint)).flatMap((endpoint) =>
    networkOperations.filter((op) => (op === "dns") === endpoint.startsWith("dns:")).flatMap((op) => {
      const same = op === "fetch" || op === "http" ? ["fetch", "http"] : [op]; // a connection is a connection
      const resource = endpoint.replace("127.0.0.1", "localhost");
      const allowed = decide(p.network, false, (r) => names(r, same) && covers(r.patterns, resource, withScheme));
      return (inGaol[op] ?? [op]).map((o): Decision => ["network", o, endpoint, allowed]);
    }),
  );
}

/**
 * gaol's rules about connections also decide look-ups. And with one that denies a name it is stricter about
 * addresses: they are not names, and a guest could go around the rule.
 */
function isComparable(p: NodeRuntimePermissions, endpoint: string): boolean {
  if (typeof p.network !== "object") return true;
  const rules = p.network.rules as Rule[];
  if (endpoint.startsWith("dns:")) return rules.every((r) => (r.patterns ?? ["*"]).every((pattern) => pattern.startsWith("dns:") || (/^\*+$/.test(pattern) && names(r, ["dns"]))));
  return !rules.some((r) => r.mode === "deny") || !/\d+\.\d+/.test(endpoint.replace("127.0.0.1", ""));
}

/** Returns what secure-exec decides. */
export function decisions(p: NodeRuntimePermissions): Decision[] {
  const program = (path: string): boolean =>
    decide(p.childProcess, true, (r) => names(r, ["spawn"]) && covers(r.patterns, path, (n) => [resolved.get(n) ?? n]));
  const variable = (name: string): boolean => decide(p.env, true, (r) => names(r, ["read"]) && covers(r.patterns, name, (n) => [n]));
  return [
    ...(p.fs === undefined ? [] : fsDecisions(p)),
    ...(p.network === undefined ? [] : networkDecisions(p)),
    ...(p.childProcess === undefined ? [] : programs.map((path): Decision => ["childProcess", "spawn", path, program(path)])),
    ...(p.env === undefined ? [] : variables.map((name): Decision => ["env", "read", name, variable(name)])),
  ];
}
