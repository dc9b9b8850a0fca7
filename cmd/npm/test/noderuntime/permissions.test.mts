import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import test from "node:test";
import { GaolError, type NodeRuntimePermissions } from "gaol";
import { globMatches } from "#dist/noderuntime/glob.js";
import { permissions as check } from "#dist/noderuntime/permissions.js";
import { allowsBinding, type Policy, programNames, translate } from "#dist/noderuntime/translate.js";
import { type Decision, decisions, matches } from "./oracle.mjs";
import { newRandom, randomPermissions, resolved } from "./random.mjs";

/** Translated permissions, and what secure-exec decides. A Go test asks gaol's policy the same. */
const recorded = "test/testdata/permissions.jsonl";

function translated(p: NodeRuntimePermissions): Policy | undefined {
  try {
    return translate(check(p, "permissions"), resolved);
  } catch (error) {
    assert.ok(error instanceof GaolError && error.code === "invalid", String(error));
    assert.match(error.message, /^permissions\.\w+\.rules\[\d\].*; nearest: ./);
    return undefined;
  }
}

test("random permissions decide in gaol as in secure-exec, or are rejected", () => {
  const random = newRandom(20261123);
  const lines: string[] = [];
  let rejected = 0;
  while (lines.length < Number(process.env["GAOL_POLICIES"] ?? 160)) {
    const p = randomPermissions(random);
    const policy = translated(p);
    if (policy === undefined) rejected++;
    else lines.push(JSON.stringify({ policy, decisions: random.some(decisions(p), 9) satisfies Decision[] }));
  }
  assert.ok(rejected > 40, `only ${rejected} were rejected`);
  const text = `${lines.join("\n")}\n`;
  if (process.env["GAOL_UPDATE"] === "1") writeFileSync(recorded, text);
  assert.equal(text, readFileSync(recorded, "utf8"), "run the tests with GAOL_UPDATE=1, and then go test ./policy");
});

test("patterns match as in secure-exec", () => {
  const random = newRandom(7);
  const text = (letters: string[]): string => random.some(letters, 7).join("");
  let matching = 0;
  for (let i = 0; i < 20_000; i++) {
    const pattern = text(["a", "b", "/", "*", "**", "?", "."]);
    const value = text(["a", "b", "/", "."]);
    const expected = /^\*+$/.test(pattern) || matches(pattern, value);
    assert.equal(globMatches(pattern, value), expected, `${pattern} ${value}`);
    matching += Number(expected);
  }
  assert.ok(matching > 1000);
});

const translations: [string, NodeRuntimePermissions, Policy][] = [
  ["nothing", {}, {}],
  ["modes", { fs: "deny", network: "allow", env: "deny" }, { fs: "deny", network: "allow", env: "deny" }],
  ["binding is not gaol's", { binding: "deny" }, {}],
  ["a folder with and without **", { fs: { rules: [{ mode: "allow", paths: ["/workspace", "/workspace/**", "/etc/hosts"] }] } },
    { fs: { default: "deny", rules: [{ mode: "allow", paths: ["/workspace/**", "/etc/hosts"] }] } }],
  ["the documentation's vault", { fs: { default: "allow", rules: [{ mode: "deny", operations: ["*"], paths: ["/vault/**"] }] } },
    { fs: { default: "allow", rules: [{ mode: "deny", paths: ["/vault/**"] }] } }],
  ["chmod is writing", { fs: { default: "allow", rules: [{ mode: "deny", operations: ["write"], paths: ["/a/**"] }] } },
    { fs: { default: "allow", rules: [{ mode: "deny", operations: ["write", "chmod"], paths: ["/a/**"] }] } }],
  ["a rule without effect", { fs: { default: "allow", rules: [{ mode: "deny", operations: ["mount_sensitive"], paths: ["*"] }] } }, { fs: "allow" }],
  ["a host", { network: { rules: [{ mode: "allow", patterns: ["Api.Example.com"] }] } },
    { network: { default: "deny", rules: [{ mode: "allow", patterns: ["tcp://api.example.com:*", "dns://api.example.com"] }] } }],
  ["a host for connections", { network: { rules: [{ mode: "allow", operations: ["http"], patterns: ["example.com:443", "[::1]:80"] }] } },
    { network: { default: "deny", rules: [{ mode: "allow", operations: ["fetch", "connect"], patterns: ["tcp://example.com:443", "tcp://[::1]:80"] }] } }],
  ["look-ups", { network: { rules: [{ mode: "allow", operations: ["dns"], patterns: ["*"] }] } },
    { network: { default: "deny", rules: [{ mode: "allow", operations: ["dns"], patterns: ["dns://*"] }] } }],
  ["programs", { childProcess: { rules: [{ mode: "allow", operations: ["spawn"], patterns: ["git", "no-such-program"] }] } },
    { childProcess: { default: "deny", rules: [{ mode: "allow", patterns: ["/usr/bin/git"] }] } }],
  ["inspect", { process: { default: "allow", rules: [{ mode: "deny", operations: ["inspect"], patterns: ["*"] }] } },
    { process: { default: "allow", rules: [{ mode: "deny", operations: ["inspect"] }] } }],
  ["variables", { env: { rules: [{ mode: "allow", operations: ["read", "write"], patterns: ["API_**"] }] } },
    { env: { default: "deny", rules: [{ mode: "allow", operations: ["read"], patterns: ["API_*"] }] } }],
];

for (const [name, permissions, policy] of translations) {
  test(`translation: ${name}`, () => assert.deepEqual(translate(permissions, resolved), policy));
}

const rejections: [unknown, string][] = [
  [{ tool: "allow" }, "permissions.tool: unknown; want fs, network, childProcess, process, env, binding"],
  [{ fs: "ask" }, 'permissions.fs: want "allow" or "deny"'],
  [{ fs: { rules: [{ mode: "deny", operations: [] }] } }, 'permissions.fs.rules[0].operations: empty; want ["*"] for all'],
  [{ fs: { rules: [{ mode: "deny", operations: ["chmod"] }] } }, 'permissions.fs.rules[0].operations[0]: want "*" or "read"'],
  [{ fs: { rules: [{ mode: "deny", patterns: ["/a"] }] } }, "permissions.fs.rules[0].patterns: unknown; want mode, operations, paths"],
  [{ env: { rules: [{}] } }, "permissions.env.rules[0].mode: missing"],
  [{ env: { default: "allow" } }, "permissions.env.rules: missing"],
  [{ fs: { rules: [{ mode: "deny", paths: ["/a", "/data/*.csv"] }] } }, 'permissions.fs.rules[0].paths[1]: "/data/*.csv": a rule about files names one file, or a folder with all that is below it; nearest: /data/**'],
  [{ fs: { rules: [{ mode: "deny", paths: ["**/.env"] }] } }, "nearest: /**"],
  [{ fs: { rules: [{ mode: "deny", paths: ["data/**"] }] } }, "not an absolute, clean path; nearest: /workspace/**"],
  [{ network: { rules: [{ mode: "allow", patterns: ["https://example.com/x"] }] } }, "not tcp://HOST:PORT, dns://HOST, HOST or HOST:PORT; nearest: tcp://*:*"],
  [{ network: { rules: [{ mode: "allow", patterns: ["tcp://api-*.example.com:443"] }] } }, "nearest: tcp://*.example.com:*"],
  [{ network: { rules: [{ mode: "allow", patterns: ["example.com:70000"] }] } }, "a port is a number or *; nearest: example.com:*"],
  [{ childProcess: { rules: [{ mode: "allow", patterns: ["g*"] }] } }, "programs are listed one by one; nearest: the names of the programs"],
  [{ childProcess: { default: "allow", rules: [{ mode: "deny", patterns: ["no-such-program"] }] } }, "the sandbox has no such program; nearest: leave it out"],
  [{ childProcess: { rules: [{ mode: "allow", patterns: ["git", "cat"] }] } }, 'permissions.childProcess.rules[0].patterns[1]: "cat": busybox is this and other programs in one file; nearest: busybox'],
  [{ process: { rules: [{ mode: "allow", patterns: ["12"] }] } }, "processes cannot be told apart; nearest: *"],
  [{ env: { default: "allow", rules: [{ mode: "deny", operations: ["write"] }] } }, "a program can always set variables in its own memory; nearest: read"],
];

for (const [permissions, message] of rejections) {
  test(`rejection: ${JSON.stringify(permissions)}`, () => {
    assert.throws(() => translate(check(permissions, "permissions"), resolved), (error: Error) => error instanceof GaolError && error.message.includes(message));
  });
}

test("bindings are allowed by name", () => {
  const binding = { rules: [{ mode: "allow" as const, patterns: ["get-*"] }, { mode: "deny" as const, operations: ["invoke"], patterns: ["get-secret"] }] };
  assert.deepEqual(["get-weather", "get-secret", "set"].map((name) => allowsBinding({ binding }, name)), [true, false, false]);
  assert.equal(allowsBinding({}, "x"), true);
  assert.equal(allowsBinding({ binding: "deny" }, "x"), false);
});

test("names of programs are found in rules", () => {
  const rules = [{ mode: "allow" as const, patterns: ["git", "/usr/bin/**", "git", "/bin/sh"] }];
  assert.deepEqual(programNames({ childProcess: { rules } }), ["git", "/bin/sh"]);
});
