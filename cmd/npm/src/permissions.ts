/** Whether operations are allowed. */
export type Mode = "allow" | "deny";

/** A rule of a scope. The last rule that matches decides. */
export interface Rule<Operation extends string> {
  mode: Mode;

  /** The operations that the rule is about. By default all of its scope. */
  operations?: readonly (Operation | "*")[];
}

/** A rule about files: places are `/folder/**` or one file. */
export interface PathRule<Operation extends string> extends Rule<Operation> {
  paths?: readonly string[];
}

/** A rule with patterns. */
export interface PatternRule<Operation extends string> extends Rule<Operation> {
  patterns?: readonly string[];
}

/** A scope: one mode for all, or rules. Without `default`, what no rule matches is denied. */
export type Scope<R> = Mode | { default?: Mode; rules: readonly R[] };

/** What sandboxed programs may do. Omitted scopes use the default: everything inside the sandbox, with its own localhost, and no other host. */
export interface Permissions {
  fs?: Scope<
    PathRule<"read" | "write" | "stat" | "readdir" | "create_dir" | "rm" | "rename" | "symlink" | "readlink" | "chmod" | "truncate" | "execute">
  >;

  /** Patterns are `tcp://HOST:PORTS`, `udp://HOST:PORTS` and `dns://NAME`. */
  network?: Scope<PatternRule<"fetch" | "http" | "connect" | "dns" | "listen">>;

  /** Patterns are places of programs. */
  childProcess?: Scope<PatternRule<"spawn">>;
  process?: Scope<Rule<"inspect" | "signal">>;

  /** Patterns are names of variables. */
  env?: Scope<PatternRule<"read">>;
}
