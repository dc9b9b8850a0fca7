// A host for the tests of the guest's JavaScript. It is not part of any run.
import { spawn } from 'node:child_process';
import { closeSync, existsSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

// Returns the path of a file of the guest's JavaScript: beside the tests, or where runs have it.
export function find(name) {
  const beside = join(import.meta.dirname, name);
  return existsSync(beside) ? beside : `/usr/libexec/gaol/${name}`;
}

export function u32(n) {
  const b = Buffer.alloc(4);
  b.writeUInt32BE(n);
  return b;
}

export function frame(kind, ...parts) {
  const body = Buffer.concat(parts.map((p) => Buffer.from(p)));
  return Buffer.concat([u32(1 + body.length), Buffer.from([kind]), body]);
}

export const answer = (number, json, failed = false) => frame(16, u32(number), [failed ? 1 : 0], json);

// Passes each complete frame to receive, and returns the remaining bytes.
function splitFrames(bytes, receive) {
  while (bytes.length >= 4) {
    const end = 4 + bytes.readUInt32BE();
    if (bytes.length < end) break;
    receive(bytes[4], bytes.subarray(5, end));
    bytes = bytes.subarray(end);
  }
  return bytes;
}

function programFile(head, source) {
  const text = Buffer.from(JSON.stringify(head));
  const path = join(tmpdir(), `program-${process.pid}-${Math.random()}`);
  writeFileSync(path, Buffer.concat([u32(text.length), text, Buffer.from(source)]));
  return path;
}

function start(head, source) {
  const file = programFile(head, source);
  const fd = openSync(file, 'r');
  rmSync(file);
  const child = spawn(process.execPath, [`--require=${find('prelude.cjs')}`, head.path, 'arg'], {
    stdio: ['ignore', 'pipe', 'pipe', 'pipe', fd, 'pipe'],
  });
  closeSync(fd);
  return child;
}

// Runs source as the host does, and returns its output and frames. onCall receives each call,
// with the streams to and from the guest.
export async function run(source, { value = 1000, format = 'module', path = '/nowhere/main.mjs', onCall, ...more } = {}) {
  const child = start({ wire: 2, path, format, value, args: 1000, ...more }, source);
  const [values, failures, calls] = [[], [], []];
  let rest = Buffer.alloc(0);
  child.stdio[5].on('error', () => {}); // the guest may have exited
  child.stdio[3].on('data', (bytes) => {
    rest = splitFrames(Buffer.concat([rest, bytes]), (kind, body) => {
      if (kind === 1) return values.push(String(body));
      if (kind === 4) return failures.push(JSON.parse(String(body)));
      if (kind !== 3) throw new Error(`a frame of kind ${kind}`);
      calls.push({ number: body.readUInt32BE(), func: body.readUInt32BE(4), json: String(body.subarray(8)) });
      onCall?.(calls.at(-1), child.stdio[5], child.stdio[3]);
    });
  });
  const text = async (stream) => Buffer.concat(await stream.toArray());
  const ended = new Promise((resolve) => child.once('close', resolve));
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  child.stdio[5].destroy();
  return { code: await ended, stdout: String(stdout), stderr: String(stderr), values, failures, calls, rest: rest.length };
}
