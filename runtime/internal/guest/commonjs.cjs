// Gives a snippet, which is an ES module, and the cells of a context what CommonJS modules
// have: require, module, exports, __filename and __dirname. They are properties of globalThis,
// as they are for `node -e`, so that code may declare the names for itself.
'use strict';

const Module = require('node:module');
const { dirname } = require('node:path');

const { defineProperty, hasOwn } = Object;
const { getOwnPropertyDescriptor, ownKeys, set } = Reflect;

class Exports {
  #module;
  #empty = {}; // what module.exports is before the code sets it

  // Defines the names for code at path. Those that the host has given stay.
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

  // What the code has exported, or undefined if it has exported nothing.
  get() {
    const { exports } = this.#module;
    return exports !== this.#empty || ownKeys(exports).length > 0 ? exports : undefined;
  }

  // Forgets what was exported.
  clear() {
    if (this.get() === undefined) return;
    const before = this.#empty;
    this.#module.exports = this.#empty = {};
    if (getOwnPropertyDescriptor(globalThis, 'exports')?.value === before) set(globalThis, 'exports', this.#empty);
  }
}

module.exports = { Exports };
delete require.cache[__filename];
