import { type Check, either, invalid, list, oneOf, shape, text } from "./validate.js";

/** Whether something is allowed. */
export type PermissionMode = "allow" | "deny";

/** A rule about files. The last rule of a scope that matches decides. */
export interface FsPermissionRule {
  mode: PermissionMode;
  /** `read`, `write`, `stat`, `readdir`, `create_dir`, `rm`, `rename`, `symlink`, `readlink`, `truncate`, or `*`. By default all. */
  operations?: string[];
  /** Absolute paths: `/data/**` is the folder and all that is below it, `/data/a.txt` one file. By default all. */
  paths?: string[];
}

/** A rule about something else than files. The last rule of a scope that matches decides. */
export interface PatternPermissionRule {
  mode: PermissionMode;
  /** Operations of the scope, or `*`. By default all. */
  operations?: string[];
  /** The targets of the rule, see {@link Permissions}. By default all. */
  patterns?: string[];
}

/** A default, which is `deny` if it is omitted, and rules that are exceptions from it. */
export interface RulePermissions<Rule> {
  default?: PermissionMode;
  rules: Rule[];
}

export type FsPermissions = PermissionMode | RulePermissions<FsPermissionRule>;
export type PatternPermissions = PermissionMode | RulePermissions<PatternPermissionRule>;

/**
 * What programs may do. Omitted scopes have their default: everything inside the sandbox, with its own
 * localhost, and no other host. The kernel enforces each rule, or `NodeRuntime.create` rejects it with the nearest that it can
 * enforce.
 */
export interface Permissions {
  /** Files. */
  fs?: FsPermissions;
  /** Operations `fetch`, `http`, `dns` and `listen`; patterns `tcp://HOST:PORT`, `dns://HOST`, `HOST` and `HOST:PORT`. */
  network?: PatternPermissions;
  /** The operation `spawn`; patterns are names of programs, or their paths. */
  childProcess?: PatternPermissions;
  /** The operation `inspect`: to see other processes. */
  process?: PatternPermissions;
  /** The operations `read` and `write`; patterns are names of variables. */
  env?: PatternPermissions;
  /** The operation `invoke`; patterns are names of bindings. */
  binding?: PatternPermissions;
}

/** The names of the operations of each scope, without `*`. */
const operations = {
  fs: ["read", "write", "stat", "readdir", "create_dir", "rm", "rename", "symlink", "readlink", "truncate", "mount_sensitive"],
  network: ["fetch", "http", "dns", "listen"],
  childProcess: ["spawn"],
  process: ["inspect"],
  env: ["read", "write"],
  binding: ["invoke", "call"],
} as const;

const mode = oneOf("allow", "deny");

function someOf<T>(item: Check<T>): Check<T[]> {
  const items = list(item);
  return (value, place) => {
    const all = items(value, place);
    if (all.length === 0) throw invalid(place, 'empty; want ["*"] for all');
    return all;
  };
}

function scope(name: keyof typeof operations, key: "paths" | "patterns"): Check<unknown> {
  const rule = shape(
    { mode, operations: someOf(oneOf("*", ...operations[name])), [key]: someOf(nonEmpty) },
    ["mode"],
  );
  return either(mode, shape({ default: mode, rules: list(rule) }, ["rules"]));
}

const nonEmpty: Check<string> = (value, place) => {
  if (text(value, place) === "") throw invalid(place, "empty");
  return value as string;
};

const check = shape({
  fs: scope("fs", "paths"),
  network: scope("network", "patterns"),
  childProcess: scope("childProcess", "patterns"),
  process: scope("process", "patterns"),
  env: scope("env", "patterns"),
  binding: scope("binding", "patterns"),
});

/** Checks permissions, as strictly as the types have them. */
export const permissions: Check<Permissions> = (value, place) => check(value, place) as Permissions;
