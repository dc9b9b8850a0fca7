import { globMatches, hasWildcard, isAll } from "./glob.js";
import { networkPatterns } from "./network.js";
import type { FsPermissionRule, PatternPermissionRule, PermissionMode, Permissions, RulePermissions } from "./permissions.js";
import { invalid, isClean } from "./validate.js";
import type { Permissions as Policy } from "../operations.js";

export type { Policy };

/** A rule in gaol's language, which `gaol policy schema` describes. */
interface PolicyRule {
  mode: PermissionMode;
  operations?: string[];
  paths?: string[];
  patterns?: string[];
}

/** A scope in gaol's language. */
type PolicyScope = PermissionMode | { default: PermissionMode; rules: PolicyRule[] };

/** The paths of programs, by the names and paths in rules. Programs that do not exist are missing. */
export type Programs = ReadonlyMap<string, string>;

/**
 * Translates permissions from secure-exec's language to gaol's. Rules that gaol has no words for are an
 * error that names the nearest one; those that the kernel cannot enforce are left to the server.
 */
export function translate(permissions: Permissions, programs: Programs): Policy {
  const policy: Record<string, PolicyScope> = {};
  if (permissions.fs !== undefined) policy["fs"] = scopeOf("fs", permissions.fs, fsRule);
  if (permissions.network !== undefined) policy["network"] = scopeOf("network", permissions.network, networkRule);
  if (permissions.childProcess !== undefined) {
    policy["childProcess"] = scopeOf("childProcess", permissions.childProcess, (r, place) => programRule(r, place, programs));
  }
  if (permissions.process !== undefined) policy["process"] = scopeOf("process", permissions.process, processRule);
  if (permissions.env !== undefined) policy["env"] = scopeOf("env", permissions.env, envRule);
  return policy as Policy; // with the operations of gaol's rules
}

/** Returns a rule in gaol's language, or undefined if it has no effect there. */
type Translation<Rule> = (rule: Rule, place: string) => PolicyRule | undefined;

function scopeOf<Rule>(name: string, scope: PermissionMode | RulePermissions<Rule>, translation: Translation<Rule>): PolicyScope {
  if (typeof scope === "string") return scope;
  const rules = scope.rules
    .map((rule, i) => translation(rule, `permissions.${name}.rules[${i}]`))
    .filter((rule) => rule !== undefined);
  const byDefault = scope.default ?? "deny";
  return rules.length === 0 ? byDefault : { default: byDefault, rules };
}

/** Operations of gaol for operations on files. A program that may be read may be executed, if childProcess allows that. */
const fsOperations: Record<string, string[]> = {
  read: ["read", "execute"],
  write: ["write", "chmod"],
  mount_sensitive: [],
};

function fsRule(rule: FsPermissionRule, place: string): PolicyRule | undefined {
  const operations = translated(rule.operations, fsOperations);
  if (operations?.length === 0) return undefined;
  const paths = withoutCovered((rule.paths ?? ["*"]).map((path, i) => fsPath(path, `${place}.paths[${i}]`)));
  return ruleOf(rule.mode, operations, { paths });
}

const wildcardsWhy = "a rule about files names one file, or a folder with all that is below it";

/** Returns the pattern of a path: P or P/**. */
function fsPath(path: string, place: string): string {
  if (isAll(path)) return "/**";
  const folder = path.replace(/\/\*{2,}$/, "");
  if (!hasWildcard(folder)) {
    if (!isClean(folder === "" ? "/" : folder)) throw unenforceable(place, path, "not an absolute, clean path", "/workspace/**");
    return folder === path ? path : `${folder}/**`;
  }
  const literal = path.slice(0, path.search(/[*?]/));
  const nearest = `${literal.slice(0, Math.max(literal.lastIndexOf("/"), 0))}/**`;
  throw unenforceable(place, path, wildcardsWhy, nearest);
}

/**
 * Removes what other patterns of the list contain: secure-exec's rules about a folder name both P and P/**,
 * but gaol's P/** is both, and its P is one file.
 */
function withoutCovered(paths: string[]): string[] {
  const trees = paths.filter((p) => p.endsWith("/**"));
  const covered = (path: string): boolean =>
    trees.some((tree) => tree !== path && `${path}/`.startsWith(tree.slice(0, -2)));
  return [...new Set(paths)].filter((path) => !covered(path));
}

function networkRule(rule: PatternPermissionRule, place: string): PolicyRule | undefined {
  const operations = translated(rule.operations, { fetch: ["fetch", "connect"], http: ["fetch", "connect"] });
  const dns = operations === undefined || operations.includes("dns");
  const connects = operations === undefined || operations.some((op) => op !== "dns");
  const patterns = (rule.patterns ?? ["*"])
    .flatMap((p, i) => networkPatterns(p, `${place}.patterns[${i}]`))
    .filter((p) => (p.startsWith("dns:") ? dns : connects));
  const used = operations?.filter((op) => patterns.some((p) => p.startsWith("dns:") === (op === "dns")));
  return patterns.length === 0 ? undefined : ruleOf(rule.mode, used, { patterns: [...new Set(patterns)] });
}

function programRule(rule: PatternPermissionRule, place: string, programs: Programs): PolicyRule | undefined {
  const patterns = (rule.patterns ?? ["*"]).flatMap((pattern, i) => {
    const at = `${place}.patterns[${i}]`;
    if (isAll(pattern) || pattern.startsWith("/") && pattern.endsWith("/**")) return [fsPath(pattern, at)];
    const path = programs.get(pattern);
    if (path?.endsWith("/busybox") === true && !pattern.endsWith("busybox")) {
      throw unenforceable(at, pattern, "busybox is this and other programs in one file", "busybox");
    }
    if (path !== undefined) return [path];
    if (hasWildcard(pattern)) throw unenforceable(at, pattern, "programs are listed one by one", "the names of the programs");
    if (rule.mode === "deny") throw unenforceable(at, pattern, "the sandbox has no such program", "leave it out");
    return [];
  });
  return patterns.length === 0 ? undefined : ruleOf(rule.mode, undefined, { patterns: withoutCovered(patterns) });
}

/** Returns the names and paths of programs that rules name, other than whole folders. */
export function programNames(permissions: Permissions): string[] {
  const scope = permissions.childProcess;
  if (scope === undefined || typeof scope === "string") return [];
  const names = scope.rules.flatMap((rule) => rule.patterns ?? []);
  return [...new Set(names)].filter((name) => !hasWildcard(name));
}

function processRule(rule: PatternPermissionRule, place: string): PolicyRule {
  const pattern = rule.patterns?.findIndex((p) => !isAll(p)) ?? -1;
  if (pattern >= 0) {
    throw unenforceable(`${place}.patterns[${pattern}]`, rule.patterns?.[pattern] ?? "", "processes cannot be told apart", "*");
  }
  return ruleOf(rule.mode, translated(rule.operations, {}), {});
}

function envRule(rule: PatternPermissionRule, place: string): PolicyRule | undefined {
  const operations = translated(rule.operations, { write: [] });
  if (operations?.length === 0) {
    if (rule.mode === "allow") return undefined;
    throw unenforceable(`${place}.operations`, "write", "a program can always set variables in its own memory", "read");
  }
  const patterns = (rule.patterns ?? ["*"]).map((p) => p.replace(/\*+/g, "*"));
  return ruleOf(rule.mode, operations, { patterns: [...new Set(patterns)] });
}

/** Returns gaol's operations, or undefined for all. Operations that the table lacks have the same name. */
function translated(operations: string[] | undefined, table: Record<string, string[]>): string[] | undefined {
  if (operations === undefined || operations.includes("*")) return undefined;
  return [...new Set(operations.flatMap((op) => table[op] ?? [op]))];
}

function ruleOf(mode: PermissionMode, operations: string[] | undefined, names: { paths?: string[]; patterns?: string[] }): PolicyRule {
  return operations === undefined ? { mode, ...names } : { mode, operations, ...names };
}

function unenforceable(place: string, value: string, why: string, nearest: string): Error {
  return invalid(place, `${JSON.stringify(value)}: ${why}; nearest: ${nearest}`, value);
}

/** Reports whether the scope `binding` lets programs call a binding. */
export function allowsBinding(permissions: Permissions, name: string): boolean {
  const scope = permissions.binding ?? "allow";
  if (typeof scope === "string") return scope === "allow";
  const last = scope.rules.findLast((rule) => (rule.patterns ?? ["*"]).some((p) => globMatches(p, name)));
  return (last?.mode ?? scope.default ?? "deny") === "allow";
}
