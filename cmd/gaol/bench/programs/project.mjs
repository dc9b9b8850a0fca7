// A project's file work, in the working directory: packages are installed, sources built,
// the result is loaded, and all of it is removed.
//
// The mix is what strace -f counted of npm ci (npm 11; webpack, eslint, jest, typescript
// and express: 470 packages, 10,103 files), of tsc 5.9 (112 sources of ajv), and of node
// loading the first four packages (333 modules). An install's share is that of one for ten
// builds and runs of such a project.
//
//   npm, a file      creat, 1.5 writes, close; 2.3 lstat, 1.05 of them of nothing; 1.3
//                    mkdir of what is there and 0.14 of what isn't
//   npm, a package   3 folders, one of them looked into; in its cache 2 files written
//                    aside and renamed; for each 16th, a link and a chmod; the folder is
//                    renamed, and removed, where another version replaces it
//   tsc, a source    open, 2 reads, close; 2.3 stat, 1 of them of nothing; 3 files written
//   node, a module   open, 2 reads, close; 7 stat and lstat, 4.4 of them of nothing
//
// npm's calls are made by threads, many at once, those of the others one by one. Sizes of
// files and packages are the measured ones, but for files above 100 KB. What those
// programs compute is here only in small part, so that files weigh more than in life: npm
// took 0.9 ms of a processor for a file, tsc 67 for a source, node 1.7 for a module.
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

// bytes is a size as files of packages have it: a tenth is below each of these.
const tenths = [30, 183, 360, 560, 790, 1141, 1900, 3000, 5200, 10220, 102192];
function bytes() {
  const i = random(10);
  return tenths[i] * (tenths[i + 1] / tenths[i]) ** (random(1000) / 1000);
}

// Files are made of lines of these, each line with a name of its own.
const lines = Array.from({ length: 1500 }, (_, i) => {
  const [a, b, c] = [0, 0, 0].map(() => words[random(words.length)]);
  return [`${a}${i} = `, ` => a.length * ${random(1000)} + b; // the ${b} of the ${c}\n`];
});
const scripts = lines.map(([name, body]) => `exports.${name}(a, b)${body}`);
const typed = lines.map(([name, body]) => `export const ${name}(a: string, b: number): number${body}`);

function text(from) {
  const size = bytes();
  let i = random(from.length - Math.ceil(size / 60));
  let all = '';
  while (all.length < size) all += from[i++];
  return all;
}

// packageOf gives the names and texts of a package's files. Its entry loads four more.
function packageOf(files) {
  const parts = Array.from({ length: files - 3 }, (_, i) => (i % 2 ? `lib/internal/${i}` : `lib/${i}`));
  const loads = parts.slice(0, 4).map((p) => `total += require('./${p}').total;\n`).join('');
  return [
    ['package.json', JSON.stringify({ version: '1.0.0', main: './index', license: 'MIT' }, null, 2)],
    ['README.md', text(scripts)],
    ['index.js', `let total = 1;\n${loads}exports.total = total;\n${text(scripts)}`],
    ...parts.map((p, i) => [`${p}.js`, `require('p0');\nexports.total = ${i};\n${text(scripts)}`]),
  ];
}

// Each source imports two more, so that the first one has all loaded, and the first of
// them a package each.
const source = (i) => `part${i % 20}/m${i}`;
function sourceOf(i) {
  const imports = [2 * i + 1, 2 * i + 2].filter((j) => j < sources).map((j) => `../${source(j)}.js`);
  if (i < packages) imports.push(`p${i}`);
  const lines = imports.map((from, j) => `import * as i${j} from '${from}';\n`).join('');
  const total = imports.map((_, j) => ` + i${j}.total`).join('');
  return `${lines}export const total: number = 1${total};\n${text(typed)}`;
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

const refused = (call, code) => call.then(() => { throw new Error(`no ${code}`); }, (e) => { if (e.code !== code) throw e; });

// makeFolders makes folders in each other, as npm does: all are tried each time.
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

// put writes a file as it comes out of a tarball that is inflated in pieces of 16 KB.
async function put(path, tar, begin, end) {
  await refused(lstat(path), 'ENOENT');
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
    jobs.push(makeFolders(folder, names).then((f) => put(join(f, name), tar, begin, begin + length)));
    i = begin + Math.ceil(length / 512) * 512;
  }
  await Promise.all(jobs);
}

async function keep(kind, name, data) {
  const key = hash('sha256', kind + name);
  const temp = at('cache/tmp', key);
  await writeFile(temp, data);
  const path = join(await makeFolders(at('cache'), [kind, key.slice(0, 2)]), key.slice(2));
  await rename(temp, path);
  return path;
}

async function install(name, packed) {
  const integrity = hash('sha512', packed);
  const kept = await keep('content', name, packed);
  await keep('index', name, JSON.stringify({ name, integrity, size: packed.length }));
  const folder = await makeFolders(at('node_modules'), [name]);
  await refused(open(join(folder, 'package.json'), 'r'), 'ENOENT');
  await readdir(folder);
  const data = await readFile(kept);
  if (hash('sha512', data) !== integrity) throw new Error(`${name} is not what was kept`);
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

// found looks for what a source imports, as compilers do.
function found(from, path) {
  if (path.startsWith('.')) return fs.statSync(at('src', dirname(from), path.replace(/js$/, 'ts'))).size;
  for (let folder = at('src', dirname(from)); ; folder = dirname(folder)) {
    const manifest = fs.statSync(join(folder, 'node_modules', path, 'package.json'), { throwIfNoEntry: false });
    if (manifest) return manifest.size;
  }
}

function compile(name) {
  const code = fs.readFileSync(at('src', `${name}.ts`), 'utf8');
  const imports = [...code.matchAll(/^import .* from '(.*)'/gm)].map(([, path]) => found(name, path));
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

const kinds = [4, 5, 6, 12, 80].map((files) => tarball(packageOf(files)));
const checkout = tarball([['package.json', '{"type":"module"}'], ...Array.from({ length: sources }, (_, i) => [`src/${source(i)}.ts`, sourceOf(i)])]);
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
