// A project's file work in the working directory: installing packages, building sources,
// loading the result, and removing everything.
//
// The mix is that of the system calls that strace -f counted in npm ci (npm 11; webpack,
// eslint, jest, typescript and express: 470 packages, 10,103 files), in tsc 5.9 (112 sources
// of ajv), and in node loading the first four packages (333 modules). There is one install
// for ten builds and runs of such a project. "Missing" calls are for files that do not exist.
//
//   npm, a file      creat, 1.5 writes, close; 2.3 lstat, 1.05 of them missing; 1.3 mkdir of
//                    existing folders and 0.14 of new ones
//   npm, a package   3 folders, one of which is listed; in its cache 2 files written under
//                    temporary names and renamed; for each 16th, a link and a chmod; if
//                    another version replaces it, the folder is renamed and removed
//   tsc, a source    open, 2 reads, close; 2.3 stat, 1 of them missing; 3 files written
//   node, a module   open, 2 reads, close; 7 stat and lstat, 4.4 of them missing
//
// npm calls from many threads at once, the others one by one. The sizes of files and
// packages are those that were measured, without files above 100 KB. Only a small part of
// the computing is included, so files weigh more than in reality: npm took 0.9 ms of
// processor time for a file, tsc 67 for a source, node 1.7 for a module.
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import { chmod, readFile, readdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { stripTypeScriptTypes } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { gunzipSync, gzipSync } from 'node:zlib';

const [lstat, mkdir, open, write, close] = [fs.lstat, fs.mkdir, fs.open, fs.write, fs.close].map((f) => promisify(f));
const packages = Number(process.argv[2]);
const sources = 2 * packages;
const root = fs.mkdtempSync('project-');
const at = (...path) => join(root, ...path);
const hash = (name, data) => createHash(name).update(data).digest('hex');

let seed = 1;
const random = (n) => (seed = (seed * 48271) % 2147483647) % n;
const words = 'value index option result error length stream buffer parent module filter token'.split(' ');

// A tenth of the files of packages have a size between two neighbors of this list.
const tenths = [30, 183, 360, 560, 790, 1141, 1900, 3000, 5200, 10220, 102192];
function randomSize() {
  const i = random(10);
  return tenths[i] * (tenths[i + 1] / tenths[i]) ** (random(1000) / 1000);
}

// Files consist of these lines. Each line declares a name of its own.
const lines = Array.from({ length: 1500 }, (_, i) => {
  const [a, b, c] = [0, 0, 0].map(() => words[random(words.length)]);
  return [`${a}${i} = `, ` => a.length * ${random(1000)} + b; // the ${b} of the ${c}\n`];
});
const scripts = lines.map(([name, body]) => `exports.${name}(a, b)${body}`);
const typed = lines.map(([name, body]) => `export const ${name}(a: string, b: number): number${body}`);

function randomText(from) {
  const size = randomSize();
  let i = random(from.length - Math.ceil(size / 60));
  let all = '';
  while (all.length < size) all += from[i++];
  return all;
}

// makePackage returns the names and texts of a package's files. Its entry point loads
// four more.
function makePackage(files) {
  const parts = Array.from({ length: files - 3 }, (_, i) => (i % 2 ? `lib/internal/${i}` : `lib/${i}`));
  const loads = parts.slice(0, 4).map((p) => `total += require('./${p}').total;\n`).join('');
  return [
    ['package.json', JSON.stringify({ version: '1.0.0', main: './index', license: 'MIT' }, null, 2)],
    ['README.md', randomText(scripts)],
    ['index.js', `let total = 1;\n${loads}exports.total = total;\n${randomText(scripts)}`],
    ...parts.map((p, i) => [`${p}.js`, `require('p0');\nexports.total = ${i};\n${randomText(scripts)}`]),
  ];
}

// Each source imports two more, so that the first one loads all. The first ones also
// import a package each.
const source = (i) => `part${i % 20}/m${i}`;
function makeSource(i) {
  const imports = [2 * i + 1, 2 * i + 2].filter((j) => j < sources).map((j) => `../${source(j)}.js`);
  if (i < packages) imports.push(`p${i}`);
  const lines = imports.map((from, j) => `import * as i${j} from '${from}';\n`).join('');
  const total = imports.map((_, j) => ` + i${j}.total`).join('');
  return `${lines}export const total: number = 1${total};\n${randomText(typed)}`;
}

function tarball(files) {
  const blocks = files.flatMap(([name, data]) => {
    const header = Buffer.alloc(512);
    header.write(name);
    header.write(data.length.toString(8).padStart(11, '0'), 124);
    return [header, Buffer.from(data), Buffer.alloc(-data.length & 511)];
  });
  return gzipSync(Buffer.concat([...blocks, Buffer.alloc(1024)]), { level: 1 });
}

const mustFail = (call, code) => call.then(() => { throw new Error(`no ${code}`); }, (e) => { if (e.code !== code) throw e; });

// makeFolders makes nested folders. Like npm, it calls mkdir for each one every time.
async function makeFolders(folder, names) {
  for (const name of names) {
    folder = join(folder, name);
    try {
      await mkdir(folder);
    } catch (e) {
      if (e.code !== 'EEXIST') throw e;
      await lstat(folder);
    }
  }
  return folder;
}

let written = 0;

// writeInPieces writes a file of a tarball that is inflated in pieces of 16 KB.
async function writeInPieces(path, tar, begin, end) {
  await mustFail(lstat(path), 'ENOENT');
  const file = await open(path, 'w');
  for (let to; begin < end; begin = to) {
    to = Math.min(end, begin - (begin % 16384) + 16384);
    const { bytesWritten } = await write(file, tar, begin, to - begin);
    written += bytesWritten;
  }
  await close(file);
}

async function unpack(packed, folder) {
  const tar = gunzipSync(packed);
  const jobs = [];
  for (let i = 0; tar[i] !== 0; ) {
    const field = (from, to) => tar.toString('latin1', i + from, i + to).replace(/\0.*/s, '');
    const length = parseInt(field(124, 136), 8);
    const names = field(0, 100).split('/');
    const name = names.pop();
    const begin = i + 512;
    jobs.push(makeFolders(folder, names).then((f) => writeInPieces(join(f, name), tar, begin, begin + length)));
    i = begin + Math.ceil(length / 512) * 512;
  }
  await Promise.all(jobs);
}

async function storeInCache(kind, name, data) {
  const key = hash('sha256', kind + name);
  const temp = at('cache/tmp', key);
  await writeFile(temp, data);
  const path = join(await makeFolders(at('cache'), [kind, key.slice(0, 2)]), key.slice(2));
  await rename(temp, path);
  return path;
}

async function install(name, packed) {
  const integrity = hash('sha512', packed);
  const cached = await storeInCache('content', name, packed);
  await storeInCache('index', name, JSON.stringify({ name, integrity, size: packed.length }));
  const folder = await makeFolders(at('node_modules'), [name]);
  await mustFail(open(join(folder, 'package.json'), 'r'), 'ENOENT');
  await readdir(folder);
  const data = await readFile(cached);
  if (hash('sha512', data) !== integrity) throw new Error(`${name} differs from the cached content`);
  await unpack(data, folder);
}

async function update(name, packed) {
  const old = at('node_modules', `.${name}-old`);
  await rename(at('node_modules', name), old);
  await install(name, packed);
  await rm(old, { recursive: true });
}

async function link(name) {
  const entry = `../${name}/index.js`;
  await symlink(entry, at('node_modules/.bin', name));
  await chmod(at('node_modules/.bin', entry), 0o755);
}

// resolveImport finds an imported file as compilers do.
function resolveImport(from, path) {
  if (path.startsWith('.')) return fs.statSync(at('src', dirname(from), path.replace(/js$/, 'ts'))).size;
  for (let folder = at('src', dirname(from)); ; folder = dirname(folder)) {
    const manifest = fs.statSync(join(folder, 'node_modules', path, 'package.json'), { throwIfNoEntry: false });
    if (manifest) return manifest.size;
  }
}

function compile(name) {
  const code = fs.readFileSync(at('src', `${name}.ts`), 'utf8');
  const imports = [...code.matchAll(/^import .* from '(.*)'/gm)].map(([, path]) => resolveImport(name, path));
  const js = stripTypeScriptTypes(code);
  const map = { version: 3, sources: [`../../src/${name}.ts`], mappings: 'AAAA' + ';AACA'.repeat(code.split('\n').length - 1) };
  const types = code.replaceAll(/^export const (\w+) = (.*): (\w+) => .*$/gm, 'export declare const $1: $2 => $3;');
  const out = at('dist', name);
  fs.writeFileSync(`${out}.js`, `${js}//# sourceMappingURL=${name.replace(/.*\//, '')}.js.map\n`);
  fs.writeFileSync(`${out}.js.map`, JSON.stringify(map));
  fs.writeFileSync(`${out}.d.ts`, types);
  return { imports, hash: hash('sha256', js + types) };
}

function build() {
  const manifest = {};
  for (const folder of fs.readdirSync(at('src'))) {
    fs.mkdirSync(at('dist', folder), { recursive: true });
    for (const file of fs.readdirSync(at('src', folder))) {
      const name = `${folder}/${file.replace(/\.ts$/, '')}`;
      manifest[name] = compile(name);
    }
  }
  const text = JSON.stringify(Object.entries(manifest).sort());
  fs.writeFileSync(at('dist/manifest.json'), text);
  return hash('sha256', text);
}

const kinds = [4, 5, 6, 12, 80].map((files) => tarball(makePackage(files)));
const checkout = tarball([['package.json', '{"type":"module"}'], ...Array.from({ length: sources }, (_, i) => [`src/${source(i)}.ts`, makeSource(i)])]);
const all = Array.from({ length: packages }, (_, i) => [`p${i}`, kinds[i % kinds.length], i]);
await unpack(checkout, root);
for (const folder of ['cache/tmp', 'node_modules/.bin']) fs.mkdirSync(at(folder), { recursive: true });
for (let i = 0; i < packages; i += 8) await Promise.all(all.slice(i, i + 8).map(([name, packed]) => install(name, packed)));
for (const [name, packed, i] of all) {
  if (i % 16 === 0) await link(name);
  if (i % 8 === 0) await update(name, packed);
}
const built = build();
const { total } = await import(pathToFileURL(resolve(at('dist', `${source(0)}.js`))));
fs.rmSync(root, { recursive: true });
console.log('project', written, built, total);
