// The output so far, bounded.
import { cut } from "./text.js";

export type Level = "log" | "warn" | "error";

/** A line of output. It may contain newlines. */
export interface Line {
  level: Level;
  text: string;
}

/** Keeps the last lines of a program's output. */
export class LogBuffer {
  #lines: Line[] = [];
  #start = 0; // index of the first kept line
  #characters = 0;
  #total = 0;

  constructor(
    readonly maxLines = 2000,
    readonly maxCharacters = 1 << 20,
    readonly maxLine = 16_000,
  ) {}

  /** How many lines there were. */
  get total(): number {
    return this.#total;
  }

  /** How many of them are not kept any more. */
  get dropped(): number {
    return this.#total - (this.#lines.length - this.#start);
  }

  get lines(): readonly Line[] {
    return this.#lines.slice(this.#start);
  }

  clear(): void {
    this.#lines = [];
    this.#start = this.#characters = this.#total = 0;
  }

  /** Adds a line such as "[log] hello". */
  push(raw: string): void {
    const line = parse(raw, this.maxLine);
    this.#total++;
    this.#lines.push(line);
    this.#characters += line.text.length;
    while (this.#lines.length - this.#start > this.maxLines || this.#characters > this.maxCharacters) {
      this.#characters -= this.#lines[this.#start]?.text.length ?? 0;
      this.#start++;
    }
    if (this.#start > this.maxLines) {
      this.#lines = this.#lines.slice(this.#start);
      this.#start = 0;
    }
  }
}

function parse(raw: string, max: number): Line {
  const [prefix = "", level] = /^\[(log|warn|error)\] ?/.exec(raw) ?? [];
  return { level: (level ?? "log") as Level, text: cut(raw.slice(prefix.length), max) };
}
