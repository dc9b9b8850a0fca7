// The examples. Each is a folder, whose files have the suffix .txt so that esbuild makes strings of them.
import { mainPath, type File } from "./files.js";
import cause from "./examples/cause/main.ts.txt";
import denials from "./examples/denials/main.ts.txt";
import directive from "./examples/directive/main.ts.txt";
import files from "./examples/files/main.ts.txt";
import hello from "./examples/hello/main.ts.txt";
import modules from "./examples/modules/main.ts.txt";
import money from "./examples/modules/money.ts.txt";
import stream from "./examples/stream/main.ts.txt";
import timeout from "./examples/timeout/main.ts.txt";
import html from "./examples/tsx/html.ts.txt";
import tsx from "./examples/tsx/main.ts.txt";
import page from "./examples/tsx/page.tsx.txt";

/** A program to start from. */
export interface Example {
  title: string;
  text: string;
  files: File[];
  adapter: string;
  permissions: string;
  timeoutMs: number;
}

/** The examples, in the order of the menu. The first is what a new visitor sees. */
export const examples: Example[] = [
  example("Hello", "Types, output, and exported values.", hello),
  example("Several files", "Modules that import each other.", modules, { "src/money.ts": money }),
  example("Output as it arrives", "A progress bar made of lines, with top-level await.", stream),
  example("Node's library", "Files, compression and a child process, in the sandbox.", files),
  example("TSX", "Elements that become strings, without a framework.", tsx, { "src/page.tsx": page, "src/html.ts": html }),
  example("What is denied", "A file, a process and a connection, with strict permissions.", denials, {}, { permissions: "strict" }),
  example("An endless loop", "The time limit ends it, and its output stays.", timeout, {}, { timeoutMs: 1000 }),
  example("An error and its cause", "Positions in your file that you can click.", cause),
  example("Directive", "Facts and derived values of a Directive system.", directive, {}, { adapter: "directive" }),
];

function example(
  title: string,
  text: string,
  source: string,
  more: Record<string, string> = {},
  chosen: Partial<Pick<Example, "adapter" | "permissions" | "timeoutMs">> = {},
): Example {
  const others = Object.entries(more).map(([path, s]) => ({ path, source: s }));
  return {
    title,
    text,
    files: [{ path: mainPath, source }, ...others],
    adapter: "none",
    permissions: "default",
    timeoutMs: 5000,
    ...chosen,
  };
}
