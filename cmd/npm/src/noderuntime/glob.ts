/**
 * Reports whether a pattern of permissions matches. `*` and `?` stop at `/`, and `**` does not. A `*` alone
 * matches everything, as in the documentation of secure-exec.
 */
export function globMatches(pattern: string, value: string): boolean {
  return isAll(pattern) || globExpression(pattern).test(value);
}

/** Reports whether a pattern matches everything. */
export function isAll(pattern: string): boolean {
  return /^\*+$/.test(pattern);
}

/** Reports whether a pattern has wildcards. */
export function hasWildcard(pattern: string): boolean {
  return /[*?]/.test(pattern);
}

function globExpression(pattern: string): RegExp {
  const source = pattern.replace(/\*+|[^*]/gsu, (part) => {
    if (part === "?") return "[^/]";
    if (part === "*") return "[^/]*";
    return part.startsWith("*") ? ".*" : part.replace(/[\\^$.*+?()[\]{}|/]/gu, "\\$&");
  });
  return new RegExp(`^${source}$`, "su");
}
