// Part of each snippet of snippets_test.go, behind the declaration of places.

// Returns the secrets that a process with Node's modules can find.
async function search(process, places) {
  const load = (name) => process.getBuiltinModule(name);
  const fs = load('fs');
  const net = load('net');
  const { execFileSync } = load('child_process');
  const found = new Set();
  const scan = (text) => {
    for (const secret of String(text).match(/secret-[a-z]+-[0-9a-f]{16}/g) ?? []) found.add(secret);
  };
  const attempt = (read) => {
    try {
      scan(read());
    } catch {
      // refused
    }
  };
  const run = (command) => attempt(() => execFileSync('sh', ['-c', command], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], timeout: 5000 }));
  const walk = (folder, depth) => {
    let entries = [];
    try {
      entries = fs.readdirSync(folder, { withFileTypes: true });
    } catch {
      // refused
    }
    for (const entry of entries.slice(0, 100)) {
      const path = `${folder}/${entry.name}`;
      scan(path);
      if (entry.isDirectory() && depth > 0) walk(path, depth - 1);
      if (entry.isFile()) attempt(() => fs.readFileSync(path, 'utf8').slice(0, 10_000));
    }
  };
  const connect = (options) =>
    new Promise((done) => {
      const socket = net.connect(options);
      socket.on('data', scan).on('error', done).on('close', done).setTimeout(2000, () => socket.destroy());
    });

  attempt(() => JSON.stringify(process.env));
  attempt(() => Reflect.ownKeys(globalThis).map(String).join(' '));
  const roots = ['', '/proc/self/root', '/proc/1/root', `/proc/${process.ppid}/root`, '/proc/self/cwd/../../..', '/workspace/link'];
  attempt(() => fs.symlinkSync('/', '/workspace/link'));
  for (const file of places.files) {
    for (const root of roots) attempt(() => fs.readFileSync(root + file, 'utf8'));
  }
  for (const folder of ['/workspace', '/tmp', '/var/tmp', '/dev/shm', '/home/node', '/run']) walk(folder, 3);
  for (const pid of fs.readdirSync('/proc').filter(Number)) {
    if (Number(pid) === process.pid) continue;
    for (const name of ['environ', 'cmdline', 'mountinfo', 'cwd/secret']) attempt(() => fs.readFileSync(`/proc/${pid}/${name}`, 'utf8'));
    walk(`/proc/${pid}/fd`, 0);
    walk(`/proc/${pid}/root/workspace`, 2);
  }
  run(`cat ${places.files.join(' ')}; cat /proc/[0-9]*/environ; env; ls -la / /proc/1/fd`);
  for (const host of ['127.0.0.1', 'localhost', '::1', '::ffff:127.0.0.1', '0.0.0.0']) await connect({ host, port: places.port });
  for (const path of [places.socket, `\0${places.abstract}`]) await connect({ path });
  await fetch(`http://127.0.0.1:${places.port}/`).then((r) => r.text()).then(scan, (err) => scan(err.cause));
  return [...found];
}

// Returns what differs from a fresh Node.
function changes() {
  const list = [];
  for (const key in {}) list.push(`Object.prototype.${key}`);
  const natives = { stringify: JSON.stringify, parse: JSON.parse, then: Promise.prototype.then, map: Array.prototype.map, push: Array.prototype.push,
    get: Map.prototype.get, keys: Object.keys, call: Function.prototype.call, replace: String.prototype.replace, error: Error.captureStackTrace };
  for (const [name, f] of Object.entries(natives)) {
    if (!/\[native code\]/.test(Function.prototype.toString.call(f))) list.push(name);
  }
  if (Error.prepareStackTrace?.name === 'replaced') list.push('prepareStackTrace');
  if ('left' in Function.prototype) list.push('Function.prototype');
  if ('left' in globalThis || 'left' in process.env) list.push('left');
  if (process.getBuiltinModule('os').getPriority() !== 0) list.push('priority');
  return list;
}
