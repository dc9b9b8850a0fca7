// Keeps the program across reloads, in the browser.
import { filesError, filesOf, type File } from "./files.js";

const key = "gaol.playground";
const previousKey = "gaol.playground.previous";
const themeKey = "gaol.playground.theme";
const maxCharacters = 500_000;

/** The saved program and settings. */
export interface Saved {
  files: File[];
  path: string; // of the shown file
  adapter?: string;
  permissions?: string;
  timeoutMs?: number;
}

/** Returns the saved program, or undefined. */
export function load(): Saved | undefined {
  return parse(read(key));
}

/** Saves the program. It reports whether the browser has kept it. */
export function save(saved: Saved): boolean {
  return write(key, JSON.stringify(saved));
}

/** Keeps a program that a link or an example replaces. */
export function savePrevious(saved: Saved): void {
  write(previousKey, JSON.stringify(saved));
}

export function loadPrevious(): Saved | undefined {
  return parse(read(previousKey));
}

export function loadTheme(): string {
  return read(themeKey) ?? "";
}

export function saveTheme(theme: string): void {
  write(themeKey, theme);
}

function parse(text: string | null): Saved | undefined {
  try {
    const saved = JSON.parse(text ?? "") as Record<string, unknown> | null;
    const files = filesOf(saved?.["files"]);
    if (saved === null || files === undefined || filesError(files) !== undefined) {
      return undefined;
    }
    const { path, adapter, permissions, timeoutMs } = saved;
    return {
      files,
      path: typeof path === "string" ? path : "",
      ...(typeof adapter === "string" ? { adapter } : {}),
      ...(typeof permissions === "string" ? { permissions } : {}),
      ...(typeof timeoutMs === "number" ? { timeoutMs } : {}),
    };
  } catch {
    return undefined;
  }
}

// Browsers refuse storage by settings, in private windows and in frames.
function read(name: string): string | null {
  try {
    const text = localStorage.getItem(name);
    return text !== null && text.length <= maxCharacters ? text : null;
  } catch {
    return null;
  }
}

function write(name: string, text: string): boolean {
  try {
    if (text.length <= maxCharacters) {
      localStorage.setItem(name, text);
      return true;
    }
  } catch {
    // It is full, or refused.
  }
  return false;
}
