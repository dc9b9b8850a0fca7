import assert from "node:assert/strict";
import { test } from "node:test";
import { deflateRawSync, inflateRawSync } from "node:zlib";
import { maxBytes } from "../src/files.js";
import { decode, encode, LinkError, maxFragment } from "../src/share.js";

const link = (kind: string, text: string | Uint8Array): string => `#${kind}=${deflateRawSync(text).toString("base64url")}`;

test("a program survives a link", async () => {
  const main = { path: "src/main.ts", source: 'console.log("größer 🎉")\r\n' };
  const other = { path: "src/a_b-c.tsx", source: "" };
  for (const files of [[main], [{ ...main, source: "" }], [main, other], [other, main]]) {
    assert.deepEqual(await decode(await encode(files)), files);
  }
});

test("links have the form that the Go package reads", async () => {
  const fragment = await encode([{ path: "src/main.ts", source: "export const x = 1" }]);
  assert.match(fragment, /^#src=[\w-]+$/);
  assert.equal(inflateRawSync(Buffer.from(fragment.slice(5), "base64url")).toString(), "export const x = 1");
  const two = await encode([
    { path: "src/main.ts", source: "a" },
    { path: "src/b.ts", source: "b" },
  ]);
  assert.equal(
    inflateRawSync(Buffer.from(two.slice("#files=".length), "base64url")).toString(),
    '[{"path":"src/main.ts","source":"a"},{"path":"src/b.ts","source":"b"}]',
  );
});

test("other fragments are no links", async () => {
  for (const fragment of ["", "#", "#editor", "#source=abc", "#SRC=abc", "src=abc"]) {
    assert.equal(await decode(fragment), undefined, fragment);
  }
});

const main = { path: "src/main.ts", source: "" };
const damaged: [string, string][] = [
  ["no base64", "#src=a+b"],
  ["padding", `${link("src", "abc")}=`],
  ["no DEFLATE", "#src=____"],
  ["truncated", link("src", "console.log(1)".repeat(10)).slice(0, -4)],
  ["no UTF-8", link("src", Uint8Array.of(0xff, 0xfe))],
  ["no JSON", link("files", "[")],
  ["no array", link("files", "{}")],
  ["no files", link("files", "[]")],
  ["null", link("files", "[null]")],
  ["wrong types", link("files", '[{"path":"src/main.ts","source":1}]')],
  ["no main", link("files", '[{"path":"src/a.ts","source":""}]')],
  ["a path outside", link("files", JSON.stringify([main, { path: "../a.ts", source: "" }]))],
  ["an absolute path", link("files", JSON.stringify([main, { path: "/etc/a.ts", source: "" }]))],
  ["a path twice", link("files", JSON.stringify([main, main]))],
  ["eleven files", link("files", JSON.stringify([main, ...Array.from({ length: 10 }, (_, i) => ({ path: `${i}.ts`, source: "" }))]))],
  ["a bomb", link("src", new Uint8Array(50 << 20))],
  ["one byte too many", link("src", "x".repeat(maxBytes + 1))],
  ["a long fragment", `#src=${"A".repeat(maxFragment + 1)}`],
];

for (const [name, fragment] of damaged) {
  test(`a link is refused: ${name}`, async () => {
    await assert.rejects(decode(fragment), LinkError);
  });
}

test("the longest program has a link", async () => {
  const files = [{ path: "src/main.ts", source: "x".repeat(maxBytes) }];
  assert.deepEqual(await decode(await encode(files)), files);
});

test("programs that are too long have no link", async () => {
  const random = Array.from(crypto.getRandomValues(new Uint8Array(60_000)), (n) => n.toString(36)).join("");
  await assert.rejects(encode([{ path: "src/main.ts", source: random }]), LinkError);
  await assert.rejects(encode([{ path: "src/main.ts", source: "x".repeat(maxBytes + 1) }]), LinkError);
});
