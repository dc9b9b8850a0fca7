// Defines the variables of CommonJS modules for a snippet, which is an ES module, and for the
// cells of a context: require, module, exports, __filename and __dirname. They are properties
// of globalThis, as with `node -e`, so that code may declare the same names.
'use strict';

const Module = require('node:module');
const { dirname } = require('node:path');
const { Object, ownKeys, set } = require('./intrinsics.cjs');

const { defineProperty, getOwnPropertyDescriptor, hasOwn } = Object;

class Exports {
  #module;
  #empty = {}; // the initial module.exports

  // Defines the names for code at path. Globals of the host take precedence.
  constructor(path) {
    this.#module = new Module(path);
    this.#module.filename = path;
    this.#module.paths = Module._nodeModulePaths(dirname(path));
    this.#module.exports = this.#empty;
    process.mainModule = this.#module; // which is require.main from now on
    const names = { require: Module.createRequire(path), module: this.#module, exports: this.#empty, __filename: path, __dirname: dirname(path) };
    for (const [name, value] of Object.entries(names)) {
      if (!hasOwn(globalThis, name)) defineProperty(globalThis, name, { value, writable: true, configurable: true });
    }
  }

  // Returns the exports of the code, or undefined if it has none.
  get() {
    const { exports } = this.#module;
    return exports !== this.#empty || ownKeys(exports).length > 0 ? exports : undefined;
  }

  // Discards the exports.
  clear() {
    if (this.get() === undefined) return;
    const before = this.#empty;
    this.#module.exports = this.#empty = {};
    if (getOwnPropertyDescriptor(globalThis, 'exports')?.value === before) set(globalThis, 'exports', this.#empty);
  }
}

module.exports = { Exports };
