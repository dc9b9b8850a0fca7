import assert from "node:assert/strict";
import { test } from "node:test";
import { bytes, count, cut, duration, visible, withPositions } from "../src/text.js";

const shown = (text: string): string =>
  visible(text)
    .map((part) => (part.kind === "control" ? `<${part.text}>` : part.text))
    .join("");

const texts: [string, string, string][] = [
  ["plain text", "a <b>ü 🎉 日本</b>", "a <b>ü 🎉 日本</b>"],
  ["tabs and newlines", "a\tb\nc\r\nd", "a\tb\nc\r\nd"],
  ["an escape sequence", "\x1b[31mred\x1b[0m", "<ESC>[31mred<ESC>[0m"],
  ["a title sequence", "\x1b]0;title\x07", "<ESC>]0;title<BEL>"],
  ["C1 controls", "\x9b31m", "<U+009B>31m"],
  ["a return", "safe\rEVIL", "safe<CR>EVIL"],
  ["null, backspace and delete", "\0\b\x7f", "<NUL><BS><DEL>"],
  ["right to left overrides", "a\u202eb\u2066c", "a<U+202E>b<U+2066>c"],
  ["characters without width", "a\u200bb\ufeffc\u2060", "a<U+200B>b<U+FEFF>c<U+2060>"],
  ["line separators", "a\u2028b\u2029", "a<U+2028>b<U+2029>"],
  ["tag characters", "a\u{e0041}", "a<U+E0041>"],
  ["half a character", "a\ud83cb", "a<U+D83C>b"],
];

for (const [name, text, want] of texts) {
  test(`visible: ${name}`, () => assert.equal(shown(text), want));
}

test("positions in the program's files are found, others are not", () => {
  const text = "src/main.ts:3:14 — no\n  at f (src/a.ts:1:2)\n  at /etc/passwd:1:1, src/b.ts:1:1, src/main.ts:7";
  const parts = withPositions(text, new Set(["src/main.ts", "src/a.ts"]));
  assert.deepEqual(
    parts.filter((part) => part.kind === "position"),
    [
      { kind: "position", text: "src/main.ts:3:14", path: "src/main.ts", line: 3, column: 14 },
      { kind: "position", text: "src/a.ts:1:2", path: "src/a.ts", line: 1, column: 2 },
    ],
  );
  assert.equal(parts.map((part) => part.text).join(""), text);
});

test("hostile text around positions is visible too", () => {
  const [before, at, after] = withPositions("\x1bsrc/main.ts:1:1\x1b", new Set(["src/main.ts"]));
  assert.deepEqual([before?.kind, at?.kind, after?.kind], ["control", "position", "control"]);
});

test("positions in a long text take little time", () => {
  assert.equal(withPositions("a/".repeat(500_000), new Set(["src/main.ts"])).length, 1);
});

test("numbers are for people", () => {
  assert.equal(cut("abcdef", 3), "abc … 3 more characters");
  assert.equal(cut("abc", 3), "abc");
  assert.deepEqual([count(1, "line"), count(0, "line"), count(1234, "line")], ["1 line", "0 lines", "1,234 lines"]);
  assert.deepEqual([duration(3.14), duration(99.6), duration(5012)], ["3.1 ms", "100 ms", "5.0 s"]);
  assert.deepEqual([bytes(999), bytes(31_457_280), bytes(250e6), bytes(3e9)], ["999 bytes", "31.5 MB", "250 MB", "3.0 GB"]);
});
