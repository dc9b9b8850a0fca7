import assert from "node:assert/strict";
import { test } from "node:test";
import { LogBuffer } from "../src/logs.js";

test("the prefix is the level", () => {
  const logs = new LogBuffer();
  for (const line of ["[log] a", "[warn] b", "[error] c\nd", "[other] e", "", "[log] [error] f", "[log]"]) {
    logs.push(line);
  }
  assert.deepEqual(logs.lines, [
    { level: "log", text: "a" },
    { level: "warn", text: "b" },
    { level: "error", text: "c\nd" },
    { level: "log", text: "[other] e" },
    { level: "log", text: "" },
    { level: "log", text: "[error] f" },
    { level: "log", text: "" },
  ]);
});

test("the last lines are kept", () => {
  const logs = new LogBuffer(10, 1 << 20);
  for (let i = 0; i < 1000; i++) {
    logs.push(`[log] ${i}`);
  }
  assert.equal(logs.total, 1000);
  assert.equal(logs.dropped, 990);
  assert.deepEqual(logs.lines.map((line) => line.text), ["990", "991", "992", "993", "994", "995", "996", "997", "998", "999"]);
  logs.clear();
  assert.deepEqual([logs.total, logs.dropped, logs.lines.length], [0, 0, 0]);
});

test("characters are bounded", () => {
  const logs = new LogBuffer(100, 1000, 400);
  for (let i = 0; i < 50; i++) {
    logs.push("x".repeat(390));
  }
  assert.equal(logs.lines.length, 2);
  logs.push("y".repeat(50_000_000));
  assert.equal(logs.lines.at(-1)?.text, `${"y".repeat(400)} … 49,999,600 more characters`);
});

test("a flood of 50 MB takes little memory and time", () => {
  const logs = new LogBuffer();
  for (let i = 0; i < 500_000; i++) {
    logs.push(`[log] ${"x".repeat(94)}`);
  }
  assert.equal(logs.lines.length, 2000);
});
