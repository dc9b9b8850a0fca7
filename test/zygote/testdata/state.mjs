// Returns what a run can see of how its Node was started. "same" must not depend on the
// launcher, "fresh" must differ between runs, and "clock" has ages.
import crypto from 'node:crypto';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import { Worker } from 'node:worker_threads';

const read = (file) => fs.readFileSync(file, 'latin1').split('\0');
const flags = (fd) => /flags:\s*(\d+)/.exec(fs.readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8'))[1];
const inWorker = (code) => new Promise((resolve, reject) => new Worker(code, { eval: true }).on('message', resolve).on('error', reject));
const before = [0, 1, 2, 3].map(flags);
const stdoutListeners = process.listenerCount('exit');
process.stdout.write('');
process.stderr.write('');

const same = {
  argv: process.argv, argv0: process.argv0, execPath: process.execPath, execArgv: process.execArgv, title: process.title,
  env: process.env, cwd: process.cwd(), umask: process.umask(), ppid: process.ppid, exitListeners: stdoutListeners,
  environ: read('/proc/self/environ').sort(), cmdline: read('/proc/self/cmdline'), exe: fs.readlinkSync('/proc/self/exe'),
  comm: fs.readFileSync('/proc/self/comm', 'utf8'), status: fs.readFileSync('/proc/self/status', 'utf8').match(/^(Umask|State|Sig\w+|Seccomp\w*|NoNewPrivs|Cap\w+|Groups):.*$/gm),
  limits: fs.readFileSync('/proc/self/limits', 'utf8'), cgroup: fs.readFileSync('/proc/self/cgroup', 'utf8'),
  oom: fs.readFileSync('/proc/self/oom_score_adj', 'utf8'),
  pidIsOwn: String(process.pid) === fs.readlinkSync('/proc/self'), session: fs.readFileSync('/proc/self/stat', 'utf8').split(' ')[5] === String(process.pid),
  before, after: [0, 1, 2, 3].map(flags),
  streams: [process.stdin, process.stdout, process.stderr].map((s) => [s.constructor.name, s.fd, s.isTTY, s.writableHighWaterMark, s._type]),
  cache: Object.keys(createRequire(import.meta.url).cache), globals: Object.getOwnPropertyNames(globalThis).sort(),
  processKeys: Object.getOwnPropertyNames(process).sort(), main: process.mainModule === undefined, gc: typeof gc,
  files: fs.readdirSync('/proc/self/fd').map((fd) => { try { return fs.readlinkSync(`/proc/self/fd/${fd}`) } catch { return '' } }).filter((l) => l.startsWith('/') && l !== '/proc/self/fd' && l !== '/dev/null' && !l.startsWith('/proc/')),
  sockets: fs.readdirSync('/proc/self/fd').filter((fd) => { try { return fs.readlinkSync(`/proc/self/fd/${fd}`).startsWith('socket') } catch { return false } }).length,
  worker: await inWorker(`const p = require('worker_threads').parentPort; p.postMessage([process.argv.length, process.env.HOME, process.cwd(), Object.keys(require.cache)])`),
};
const fresh = {
  random: Math.random(), uuid: crypto.randomUUID(), bytes: crypto.randomBytes(16).toString('hex'), int: crypto.randomInt(2 ** 40),
  web: Buffer.from(globalThis.crypto.getRandomValues(new Uint8Array(16))).toString('hex'),
  worker: await inWorker(`require('worker_threads').parentPort.postMessage(Math.random())`),
};
const clock = {
  uptime: process.uptime(), now: performance.now() / 1000, sinceOrigin: (Date.now() - performance.timeOrigin) / 1000,
};
__return({ same, fresh, clock });
