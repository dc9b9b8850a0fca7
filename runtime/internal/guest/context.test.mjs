// Tests context.cjs without a host. Go's tests run this file in a runtime. To run it with any
// Node: node --test runtime/internal/guest/context.test.mjs
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { closeSync, existsSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';

const beside = join(import.meta.dirname, 'prelude.cjs');
const prelude = existsSync(beside) ? beside : '/usr/libexec/gaol/prelude.cjs';
const KINDS = { 1: 'value', 2: 'log', 4: 'failure', 5: 'done', 7: 'no value' };

// The host of a context.
class Host {
  #child;
  #bytes = Buffer.alloc(0);
  #last = 0;
  #frames = [];
  #wake = () => {};

  constructor() {
    const head = Buffer.from(JSON.stringify({ wire: 2, path: '/nowhere/context.mjs', format: 'module', value: 0, context: { logs: 5, logLength: 50 } }));
    const size = Buffer.alloc(4);
    size.writeUInt32BE(head.length);
    const path = join(tmpdir(), `context-${process.pid}-${Math.random()}`);
    writeFileSync(path, Buffer.concat([size, head]));
    const fd = openSync(path, 'r');
    rmSync(path);
    const stdio = ['ignore', 'inherit', 'inherit', 'pipe', fd, 'pipe'];
    this.#child = spawn(process.execPath, [`--require=${prelude}`, '/nowhere/context.mjs'], { stdio });
    closeSync(fd);
    this.#child.stdio[3].on('data', (bytes) => this.#receive(bytes));
    this.#child.on('exit', (code, signal) => this.#add(['exit', signal ?? code]));
  }

  #receive(bytes) {
    this.#bytes = Buffer.concat([this.#bytes, bytes]);
    for (let end; this.#bytes.length >= 4 && this.#bytes.length >= (end = 4 + this.#bytes.readUInt32BE(0)); ) {
      const kind = KINDS[this.#bytes[4]];
      const body = this.#bytes.subarray(5, end);
      this.#add([kind, kind === 'done' ? body.readUInt32BE(0) : kind === 'log' ? body.toString('utf8', 1) : kind === 'no value' ? String(body) : JSON.parse(body)]);
      this.#bytes = this.#bytes.subarray(end);
    }
  }

  #add(frame) {
    this.#frames.push(frame);
    this.#wake();
  }

  #send(kind, number, text = '') {
    const body = Buffer.from(text);
    const head = Buffer.alloc(9);
    head.writeUInt32BE(body.length + 5, 0);
    head[4] = kind;
    head.writeUInt32BE(number, 5);
    this.#child.stdio[5].write(Buffer.concat([head, body]));
  }

  // Returns all frames up to the end of a cell or of the process.
  async until(number) {
    for (;;) {
      const at = this.#frames.findIndex(([kind, n]) => kind === 'exit' || (kind === 'done' && n === number));
      if (at >= 0) return this.#frames.splice(0, at + 1).map(([kind, what]) => (kind === 'failure' ? [kind, what.name, what.message] : [kind, what]));
      await new Promise((resolve) => (this.#wake = resolve));
    }
  }

  // Waits until the cell in progress has printed a line.
  async printed(line) {
    while (!this.#frames.some(([kind, text]) => kind === 'log' && text === line)) await new Promise((resolve) => (this.#wake = resolve));
  }

  begin(code, more = {}) {
    const number = ++this.#last;
    this.#send(17, number, JSON.stringify({ code, name: `cell-${number}.js`, value: 1000, logs: 5, logLength: 50, ...more }));
    return number;
  }

  async cell(code, more) {
    const number = this.begin(code, more);
    const frames = await this.until(number);
    return frames.at(-1)[0] === 'done' ? frames.slice(0, -1) : frames;
  }

  interrupt(number) {
    this.#send(18, number);
  }

  signal() {
    this.#child.kill('SIGINT');
  }

  end() {
    this.#child.stdio[5].destroy();
    this.#child.kill('SIGKILL');
  }
}

async function withHost(t, use) {
  const host = new Host();
  t.after(() => host.end());
  assert.deepEqual(await host.until(0), [['done', 0]]);
  await use(host);
}

const soon = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

test('cells share a scope', (t) =>
  withHost(t, async (host) => {
    assert.deepEqual(await host.cell('const a = 1; let b = 2; class C {}; a'), [['value', 1]]);
    assert.deepEqual(await host.cell('const a = 3; await null; [a, b, typeof C]'), [['value', [3, 2, 'function']]]);
    assert.deepEqual(await host.cell('undefined'), []);
    assert.deepEqual(await host.cell('console.log(a); null'), [['log', '3'], ['value', null]]);
    assert.deepEqual(await host.cell('new Map([[a, 1]])', { form: 'text' }), [['value', 'Map(1) { 3 => 1 }']]);
    assert.deepEqual(await host.cell('throw new RangeError("no")'), [['failure', 'RangeError', 'no']]);
    assert.deepEqual(await host.cell('let a; const = 1'), [['failure', 'SyntaxError', "Unexpected token '='"]]);
    assert.deepEqual(await host.cell('given.at.getTime()', { globals: '{"given":{"at":{"\\u0000date":"1970-01-01T00:00:00.005Z"}}}' }), [['value', 5]]);
  }));

test('globals that a declaration would hide are refused', (t) =>
  withHost(t, async (host) => {
    await host.cell('const c = 1; let l = 1; class K {}; var v = 1; globalThis.g = 1; globalThis.ran = 0');
    const hidden = (name) => [['failure', 'TypeError', `the global ${name} can't be given: a cell has declared it by const, let, class or import`]];
    for (const name of ['c', 'l', 'K']) assert.deepEqual(await host.cell('ran++', { globals: `{"${name}":2,"other":1}` }), hidden(name));
    assert.deepEqual(await host.cell('ran++', { globals: '{"v":2}' }), [['failure', 'TypeError', 'Cannot redefine property: v']]);
    assert.deepEqual(await host.cell('[c, g, ran, typeof other]', { globals: '{"g":2}' }), [['value', [1, 2, 0, 'undefined']]]);
  }));

test('import() works as in a module', (t) =>
  withHost(t, async (host) => {
    assert.deepEqual(await host.cell('(await import("node:path")).sep'), [['value', '/']]);
    assert.deepEqual(await host.cell('await eval("import(\'data:text/javascript,export default 5\')").then(m => m.default)'), [['value', 5]]);
    assert.deepEqual(await host.cell('require("node:os").EOL'), [['value', '\n']]);
  }));

test('SIGINT terminates running code only', (t) =>
  withHost(t, async (host) => {
    await host.cell('let state = 1');
    for (const code of [
      'for (;;);', 'await null; for (;;);', 'await new Promise(r => setTimeout(r, 5)); for (;;);', 'await new Promise(r => setImmediate(r)); for (;;);',
      'process.nextTick(() => { for (;;); })', '({ toJSON() { for (;;); } })', 'await require("node:fs/promises").readFile("/proc/self/stat"); for (;;);',
    ]) {
      const number = host.begin(code);
      await soon(150);
      host.signal();
      const frames = await host.until(number);
      assert.deepEqual(frames, [['failure', 'Error', 'Script execution was interrupted by `SIGINT`'], ['done', number]], code);
    }
    host.signal(); // while no cell runs
    await soon(50);
    assert.deepEqual(await host.cell('state'), [['value', 1]]);
  }));

test('an interruption ends a waiting cell', (t) =>
  withHost(t, async (host) => {
    const number = host.begin('let state = 2; console.log("waits"); let timer; await new Promise(r => { timer = setTimeout(r, 20000) }); state = 3');
    await host.printed('waits');
    host.interrupt(number + 1); // an unknown cell
    host.interrupt(number);
    assert.deepEqual(await host.until(number), [['log', 'waits'], ['done', number]]);
    assert.deepEqual(await host.cell('clearTimeout(timer); state'), [['value', 2]]);
    assert.deepEqual(await host.cell('await new Promise(() => {})'), [['failure', 'UnsettledError', 'the code awaits a promise that nothing settles']]);
  }));

test('promises that are never settled can be garbage', (t) =>
  withHost(t, async (host) => {
    await host.cell('require("node:v8").setFlagsFromString("--expose-gc"); const collect = require("node:vm").runInNewContext("gc"); 1');
    for (let i = 0; i < 5; i++) {
      const number = host.begin('await new Promise(r => { setTimeout(() => {}, 60000).unref() ; setInterval(() => {}, 1000) })');
      await soon(10);
      host.interrupt(number);
      await host.until(number);
      assert.deepEqual(await host.cell('collect(); await new Promise(r => setTimeout(r, 5)); collect(); 1'), [['value', 1]]);
    }
  }));

test('uncaught errors', (t) =>
  withHost(t, async (host) => {
    assert.deepEqual(await host.cell('Promise.reject(new Error("mine")); await new Promise(r => setTimeout(r, 1000))'), [['failure', 'Error', 'mine']]);
    assert.deepEqual(await host.cell('setTimeout(() => { throw new Error("late") }, 10); 1'), [['value', 1]]);
    const [[kind, text], ...rest] = await host.cell('await new Promise(r => setTimeout(r, 50)); 2');
    assert.deepEqual([kind, text.split('\n')[0], rest], ['log', 'Uncaught (in cell-2.js) Error: late', [['value', 2]]]);
    assert.deepEqual(await host.cell('process.exit(3)'), [['exit', 3]]);
  }));

test('completions', (t) =>
  withHost(t, async (host) => {
    await host.cell('const lexical = { one: { two: 1 } }; let unset; class K { static s = 1 }');
    const names = async (path, prefix) => (await host.cell('', { complete: { path, prefix } }))[0][1];
    assert.deepEqual(await names([], 'lexi'), ['lexical']);
    assert.deepEqual(await names(['lexical', 'one'], 'tw'), ['two']);
    assert.deepEqual(await names(['K'], 's'), ['s']);
    assert.deepEqual(await names(['process', 'versions'], 'nod'), ['node']);
    assert.deepEqual(await names(['unset'], ''), []);
    assert.deepEqual(await names(['nosuch'], ''), []);
  }));
