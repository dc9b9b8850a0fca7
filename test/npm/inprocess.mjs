// Runs snippets as libraries do that have no sandbox: esbuild bundles the files, and a worker thread of this process
// executes the bundle. Benchmarks compare gaol with it.
import path from "node:path";
import { createRequire } from "node:module";
import { Worker } from "node:worker_threads";

const worker = new URL("./inprocess-worker.mjs", import.meta.url);
const resourceLimits = { maxOldGenerationSizeMb: 32, codeRangeSizeMb: 16 };
const framework = "@directive-run/core";

// Takes the place of the framework's entry point, and records the systems that snippets create.
const recorder = `
export * from "${framework}";
import { createSystem as create } from "${framework}";
export function createSystem(...args) {
  const system = create(...args);
  globalThis.__systems.push(system);
  return system;
}`;

/**
 * Returns a function that runs the files of a snippet, [{path, source}]. The folder esbuild has esbuild in node_modules,
 * and the folder packages what snippets import.
 */
export function newInProcess(esbuild, packages) {
  const { build } = createRequire(path.join(path.resolve(esbuild), "x.js"))("esbuild");
  return async function run(files, { timeoutMs = 5000 } = {}) {
    const start = performance.now();
    let code;
    try {
      code = await bundle(build, files, path.resolve(packages));
    } catch (err) {
      const errors = err.errors.map(({ text, location: l }) => (l ? `${l.file.replace(/^snippet:/, "")}:${l.line}:${l.column + 1} — ${text}` : text));
      return { logs: [], facts: {}, derived: {}, errors, durationMs: performance.now() - start, timedOut: false };
    }
    const output = await execute(code, timeoutMs);
    return { ...output, durationMs: performance.now() - start };
  };
}

async function bundle(build, files, packages) {
  const { outputFiles } = await build({
    entryPoints: ["src/main.ts"],
    bundle: true,
    write: false,
    format: "esm",
    platform: "node",
    target: "node20",
    logLevel: "silent",
    plugins: [virtualFiles(new Map(files.map((f) => [f.path, f.source])), packages)],
  });
  return outputFiles[0].text;
}

/** An esbuild plugin: the snippet's files exist in memory only, and packages are those of a folder. */
function virtualFiles(files, packages) {
  return {
    name: "virtual-files",
    setup(build) {
      build.onResolve({ filter: /^src\/main\.ts$/ }, ({ path, kind }) => (kind === "entry-point" ? { path, namespace: "snippet" } : undefined));
      build.onResolve({ filter: /^\./, namespace: "snippet" }, ({ path: name, importer }) => {
        const base = path.posix.join(path.posix.dirname(importer), name).replace(/\.js$/, "");
        const found = [".ts", ".tsx", ".js"].map((ending) => base + ending).find((file) => files.has(file));
        return found ? { path: found, namespace: "snippet" } : { errors: [{ text: `no file ${name}` }] };
      });
      build.onResolve({ filter: /^[^./]/ }, ({ path: name, namespace }) => {
        if (name === framework && namespace === "snippet") return { path: name, namespace: "recorder" };
        if (namespace === "snippet" || namespace === "recorder") return build.resolve(name, { kind: "import-statement", resolveDir: packages, namespace: "file" });
        return undefined;
      });
      build.onLoad({ filter: /.*/, namespace: "recorder" }, () => ({ contents: recorder, resolveDir: packages }));
      build.onLoad({ filter: /.*/, namespace: "snippet" }, ({ path: name }) => ({ contents: files.get(name), loader: path.extname(name).slice(1) }));
    },
  };
}

/** Executes a bundle in a thread of its own. */
function execute(code, timeoutMs) {
  return new Promise((resolve) => {
    const thread = new Worker(worker, { workerData: code, resourceLimits, env: {}, stdout: true, stderr: true });
    const failed = (error, timedOut = false) => end({ logs: [], facts: {}, derived: {}, errors: [error], timedOut });
    const timer = setTimeout(() => failed(`wall-clock budget of ${timeoutMs}ms elapsed`, true), timeoutMs);
    const end = (output) => {
      clearTimeout(timer);
      thread.removeAllListeners();
      void thread.terminate();
      resolve(output);
    };
    thread.once("message", (output) => end({ ...output, timedOut: false }));
    thread.once("error", (err) => failed(err.message));
    thread.once("exit", (status) => failed(`the thread has ended with status ${status}`));
  });
}
