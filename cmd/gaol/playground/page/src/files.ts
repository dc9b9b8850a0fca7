// The rules for the files of a program, which are the server's.

/** A file of the program. */
export interface File {
  path: string;
  source: string;
}

/** The file that runs. It always exists. */
export const mainPath = "src/main.ts";

export const maxFiles = 10;
export const maxBytes = 200_000;

/** Returns the error of a path, or undefined. */
export function pathError(path: string): string | undefined {
  if (!/^[\w./-]{1,128}$/.test(path)) {
    return "A path has 1 to 128 letters, digits, and any of _ . / -";
  }
  if (path.split("/").some((name) => name === "" || name === "." || name === "..")) {
    return "A path is relative, and has no empty, . or .. parts.";
  }
  return undefined;
}

/** Returns a path that a person typed, with the ending of the suggested one if it has none. */
export function withEnding(path: string, suggested: string): string {
  const name = path.slice(path.lastIndexOf("/") + 1);
  return name === "" || name.includes(".") ? path : path + (/\.\w+$/.exec(suggested)?.[0] ?? "");
}

/** Returns the error of a set of files, or undefined. */
export function filesError(files: readonly File[]): string | undefined {
  const wrong = files.map((f) => pathError(f.path)).find((e) => e !== undefined);
  if (wrong !== undefined) {
    return wrong;
  }
  if (files.length > maxFiles) {
    return `At most ${maxFiles} files are allowed.`;
  }
  if (new Set(files.map((f) => f.path)).size !== files.length) {
    return "Two files have the same path.";
  }
  if (!files.some((f) => f.path === mainPath)) {
    return `${mainPath} is missing.`;
  }
  if (byteLength(files) > maxBytes) {
    return `The files have more than ${maxBytes.toLocaleString("en")} bytes.`;
  }
  return undefined;
}

/** Returns the bytes of UTF-8 of all sources together. */
export function byteLength(files: readonly File[]): number {
  const encoder = new TextEncoder();
  return files.reduce((sum, f) => sum + encoder.encode(f.source).length, 0);
}

/** Returns the files in a value that was parsed from JSON, or undefined if it has any other form. */
export function filesOf(value: unknown): File[] | undefined {
  if (!Array.isArray(value) || value.length === 0 || value.length > maxFiles) {
    return undefined;
  }
  const files: File[] = [];
  for (const item of value as unknown[]) {
    const { path, source } = (item ?? {}) as Record<string, unknown>;
    if (typeof path !== "string" || typeof source !== "string") {
      return undefined;
    }
    files.push({ path, source });
  }
  return files;
}
