// Loads the files of TypeScript and JSX that a program imports: the host translates them, as it does the
// program. A path may omit the extension, or have that of the JavaScript that a file becomes.
// Packages are Node's alone, and so are the files of workers, which have no channel to the host.
'use strict';

const { readFileSync, statSync } = require('node:fs');
const { registerHooks } = require('node:module');
const { dirname, extname, join, resolve: absolute } = require('node:path');
const { fileURLToPath, pathToFileURL } = require('node:url');
const { SafeMap, endsWith, exec, parse, slice, startsWith, textIncludes } = require('./intrinsics.cjs');

const { cwd } = process;
const MAX_FILE = 256 << 10; // bytes that the host translates; Node strips the types of larger files
const MAX_CONFIG = 64 << 10;
const DETECT = 0; // the format, as the host knows it
const MODULE = 1;
const COMMONJS = 2;

const sources = { __proto__: null, '.js': ['.ts', '.tsx'], '.jsx': ['.tsx'], '.mjs': ['.mts'], '.cjs': ['.cts'] };
const implied = ['.ts', '.tsx', '.js', '.jsx', '.mts', '.mjs', '.cts', '.cjs', '.json'];
const formats = { __proto__: null, '.mts': MODULE, '.cts': COMMONJS, '.ts': DETECT, '.tsx': DETECT, '.jsx': DETECT };

const isFile = (path) => statSync(path, { throwIfNoEntry: false })?.isFile() === true;

function findImplied(path) {
  for (let i = 0; i < implied.length; i++) if (isFile(path + implied[i])) return path + implied[i];
}

// Returns the file that a path means which is none itself.
function find(path) {
  const ext = extname(path);
  const others = sources[ext] ?? [];
  for (let i = 0; i < others.length; i++) {
    const source = slice(path, 0, -ext.length) + others[i];
    if (isFile(source)) return source;
  }
  return findImplied(path) ?? findImplied(join(path, 'index'));
}

const isPath = (specifier) => specifier === '.' || specifier === '..' || exec(/^(\.{0,2}\/|file:)/, specifier) !== null;

// Returns the file that an import of a path means, or undefined for those that Node finds or misses.
function fileOf(specifier, parentURL) {
  if (!isPath(specifier) || (parentURL && textIncludes(parentURL, '/node_modules/'))) return undefined;
  try {
    const folder = parentURL ? dirname(fileURLToPath(parentURL)) : cwd(); // of a cell
    const path = startsWith(specifier, 'file:') ? fileURLToPath(specifier) : absolute(folder, specifier);
    return isFile(path) ? undefined : find(path);
  } catch {
    return undefined; // a URL without a path, or a folder that may not be read
  }
}

const texts = new SafeMap();

// Returns the text of a small file, or undefined.
function textOf(path) {
  if (!texts.has(path)) {
    let text;
    try {
      if (statSync(path).size <= MAX_CONFIG) text = readFileSync(path, 'utf8');
    } catch {
      // no such file
    }
    texts.set(path, text);
  }
  return texts.get(path);
}

// Returns the text of the file of a name in the nearest folder above path that has one.
function nearest(path, name) {
  for (let dir = dirname(path); ; dir = dirname(dir)) {
    const text = textOf(join(dir, name));
    if (text !== undefined || dir === dirname(dir)) return text;
  }
}

// Returns the format that the nearest package.json gives.
function packageFormat(path) {
  try {
    const { type } = parse(nearest(path, 'package.json'));
    return type === 'module' ? MODULE : type === 'commonjs' ? COMMONJS : DETECT;
  } catch {
    return DETECT; // none, or an invalid one
  }
}

// Installs the hooks. translate(format, path, config, source) returns the JavaScript, and whether
// it is an ES module. It is null in workers. The program at path imports from base.
function install({ path: main, base }, translate, followSourceMaps) {
  const mainURL = pathToFileURL(main).href;
  const baseURL = base && pathToFileURL(base).href;
  const resolve = (specifier, context, next) => {
    const found = fileOf(specifier, baseURL && context.parentURL === mainURL ? baseURL : context.parentURL);
    return found === undefined ? next(specifier, context) : { url: pathToFileURL(found).href, shortCircuit: true };
  };
  const load = (url, context, next) => {
    const path = startsWith(url, 'file:') ? fileURLToPath(url) : '';
    const format = formats[extname(path)];
    if (format === undefined || !translate || textIncludes(path, '/node_modules/')) return next(url, context);
    const source = readFileSync(path, 'utf8');
    if (source.length > MAX_FILE && !endsWith(path, 'x')) return next(url, context);
    const config = textIncludes(source, '@') ? nearest(path, 'tsconfig.json') : ''; // of decorators
    followSourceMaps();
    const { code, module } = translate(format || packageFormat(path), path, config ?? '', source);
    return { format: module ? 'module' : 'commonjs', source: code, shortCircuit: true };
  };
  registerHooks({ resolve, load });
}

module.exports = { install };
