import assert from "node:assert/strict";
import { test } from "node:test";
import { EventParser, type ServerEvent } from "../src/sse.js";

function parse(pieces: Iterable<string>, max?: number): ServerEvent[] {
  const events: ServerEvent[] = [];
  const parser = new EventParser((event) => events.push(event), max);
  for (const piece of pieces) {
    parser.push(piece);
  }
  return events;
}

const streams: [string, string, ServerEvent[]][] = [
  ["an event", "event: log\ndata: 1\n\n", [{ type: "log", data: "1" }]],
  ["no type", "data: 1\n\n", [{ type: "message", data: "1" }]],
  ["two events", "event: a\ndata: 1\n\ndata: 2\n\n", [{ type: "a", data: "1" }, { type: "message", data: "2" }]],
  ["returns", "event: a\rdata: 1\r\r", [{ type: "a", data: "1" }]],
  ["returns and newlines", "event: a\r\ndata: 1\r\n\r\n", [{ type: "a", data: "1" }]],
  ["several lines", "data: 1\ndata\ndata:  3\n\n", [{ type: "message", data: "1\n\n 3" }]],
  ["comments, and fields that are not used", ": ping\nid: 7\nretry: 1\ndata: 1\n\n", [{ type: "message", data: "1" }]],
  ["an event without data", "event: a\n\ndata: 1\n\n", [{ type: "message", data: "1" }]],
  ["an incomplete event", "data: 1\n", []],
  ["colons", "data: a: b\n\n", [{ type: "message", data: "a: b" }]],
];

for (const [name, stream, want] of streams) {
  test(`a stream with ${name}, in any pieces`, () => {
    assert.deepEqual(parse([stream]), want);
    assert.deepEqual(parse(stream), want, "character by character");
    for (let at = 0; at <= stream.length; at++) {
      assert.deepEqual(parse([stream.slice(0, at), stream.slice(at)]), want, `split at ${at}`);
    }
  });
}

test("an event is bounded", () => {
  const line = "data: " + "x".repeat(94);
  assert.equal(parse([`${line}\n\n`.repeat(50)], 100).length, 50);
  assert.throws(() => parse([`${line}x\n\n`], 100), RangeError);
  assert.throws(() => parse([`${line}\ndata\n\n`], 100), RangeError);
  assert.throws(() => parse(Array(101).fill("x"), 100), RangeError);
});

test("a long line in many pieces takes linear time", () => {
  const pieces = ["data: ", ...Array<string>(8000).fill("x".repeat(1000)), "\n\n"];
  assert.equal(parse(pieces)[0]?.data.length, 8_000_000);
});
