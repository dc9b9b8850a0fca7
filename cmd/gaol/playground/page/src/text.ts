// Makes hostile text harmless to read: control characters become visible, positions become links.

/** A part of a text. */
export type Part =
  | { kind: "text"; text: string }
  | { kind: "control"; text: string } // the visible form of a character
  | { kind: "position"; text: string; path: string; line: number; column: number };

// Controls but tab and newline, and characters that reorder, hide or break text.
const hidden =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e0fff}]|\p{Cs}/u;

/** Splits a text into parts without control characters, and their visible forms. */
export function visible(text: string): Part[] {
  const parts: Part[] = [];
  let start = 0;
  for (const match of text.matchAll(new RegExp(hidden, "gu"))) {
    if (match[0] === "\r" && text[match.index + 1] === "\n") {
      continue;
    }
    pushText(parts, text.slice(start, match.index));
    parts.push({ kind: "control", text: nameOf(match[0].codePointAt(0) ?? 0) });
    start = match.index + match[0].length;
  }
  pushText(parts, text.slice(start));
  return parts;
}

/** Splits as visible does. Positions in the files with these paths are parts of their own. */
export function withPositions(text: string, paths: ReadonlySet<string>): Part[] {
  const parts: Part[] = [];
  let start = 0;
  for (const match of text.matchAll(/([\w./-]{1,128}):(\d{1,7}):(\d{1,7})/g)) {
    const [all, path = "", line, column] = match;
    if (paths.has(path)) {
      parts.push(...visible(text.slice(start, match.index)));
      parts.push({ kind: "position", text: all, path, line: Number(line), column: Number(column) });
      start = match.index + all.length;
    }
  }
  return [...parts, ...visible(text.slice(start))];
}

/** Cuts a text to a number of characters, and says so. */
export function cut(text: string, max: number): string {
  if (text.length <= max) {
    return text;
  }
  return `${text.slice(0, max)} … ${(text.length - max).toLocaleString("en")} more characters`;
}

/** Returns a number and a noun: 1 line, 2 lines. */
export function count(n: number, noun: string): string {
  return `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`;
}

/** Returns a duration for people. */
export function duration(ms: number): string {
  return ms < 1000 ? `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

/** Returns a number of bytes for people. */
export function bytes(n: number): string {
  const units = ["bytes", "kB", "MB", "GB"];
  let unit = 0;
  for (; n >= 1000 && unit < units.length - 1; unit++) {
    n /= 1000;
  }
  return `${unit === 0 || n >= 100 ? Math.round(n).toLocaleString("en") : n.toFixed(1)} ${units[unit]}`;
}

function pushText(parts: Part[], text: string): void {
  if (text !== "") {
    parts.push({ kind: "text", text });
  }
}

// Names of ASCII's controls. Unicode's pictures of them are in few fonts.
const names =
  "NUL SOH STX ETX EOT ENQ ACK BEL BS HT LF VT FF CR SO SI DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EM SUB ESC FS GS RS US".split(" ");

function nameOf(code: number): string {
  return names[code] ?? (code === 0x7f ? "DEL" : `U+${code.toString(16).toUpperCase().padStart(4, "0")}`);
}
