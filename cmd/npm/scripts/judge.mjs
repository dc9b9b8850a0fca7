// Judges the package as users get it:
//
//	node scripts/judge.mjs PROGRAM
//
// PROGRAM is a gaol program, beside gaol-server and runc. The packages are packed and installed into an empty project, where programs in ES
// modules, CommonJS and TypeScript use them, by each supported version of Node. publint and Are The Types Wrong
// look for mistakes in them. Each version of Node runs the tests; those that take long, only the oldest does. npm ci in
// the folder judge installs the versions.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const judge = path.join(root, "judge");
const bin = path.join(root, "node_modules/.bin");
const program = path.resolve(process.argv[2] ?? "");

const work = mkdtempSync(path.join(tmpdir(), "gaol-judge-"));
try {
  const nodes = ["node20", "node22", "node24"].map((name) => path.join(judge, "node_modules", name, "bin/node")).filter(existsSync);
  if (nodes.length === 0) nodes.push(process.execPath); // npm has these versions for x64 only
  run(process.execPath, [path.join(root, "scripts/pack.mjs"), work, "judged", `${cpu()}=${["gaol-server", "runc"].map((name) => path.join(path.dirname(program), name))}`], root);
  const tarballs = readdirSync(work).map((name) => path.join(work, name));
  const library = tarballs.find((name) => !name.includes("linux"));
  lint(library);
  consume(tarballs, nodes);
  consumeElsewhere(tarballs);
  nodes.forEach((node, i) => test(node, i === 0 ? [] : ["-docs", "-examples", "-lifetime"]));
} finally {
  rmSync(work, { recursive: true });
}

/** The name of the machine's processor in packages. */
function cpu() {
  return process.arch === "arm64" ? "arm64" : "x64";
}

function run(command, args, cwd, env = {}) {
  execFileSync(command, args, { cwd, stdio: "inherit", env: { ...process.env, ...env } });
}

/** Checks package.json and the types for mistakes. TypeScript 7 dropped Node 10's resolution. */
function lint(tarball) {
  run(path.join(bin, "publint"), ["run", tarball, "--strict"], root);
  run(path.join(bin, "attw"), [tarball, "--profile", "node16", "--no-emoji", "--format", "table-flipped"], root);
}

/** Installs the packages into an empty project and uses them there. */
function consume(tarballs, nodes) {
  const project = path.join(work, "project");
  cpSync(path.join(judge, "consumer"), project, { recursive: true });
  writeFileSync(path.join(project, "package.json"), JSON.stringify({ name: "consumer", private: true }));
  const versions = ["zod", "@types/node"].map((name) => path.join(root, "node_modules", name));
  run("npm", ["install", "--prefer-offline", "--no-audit", "--no-fund", "--silent", "--install-links", ...tarballs, ...versions], project);
  for (const node of nodes) {
    for (const file of ["consumer.mjs", "consumer.cjs"]) run(node, [file], project, { GAOL_BIN: "" });
  }
  cpSync(path.join(project, "consumer.mts"), path.join(project, "consumer.cts"));
  for (const [module, resolution, file] of [
    ["node16", "node16", "consumer.mts"],
    ["node16", "node16", "consumer.cts"],
    ["esnext", "bundler", "consumer.mts"],
  ]) {
    const options = ["--noEmit", "--strict", "--target", "es2022", "--lib", "es2022,esnext.disposable", "--types", "node"];
    run(path.join(bin, "tsc"), [...options, "--module", module, "--moduleResolution", resolution, file], project);
  }
}

/** Installs the packages as another system does: without programs. npm checks the system of the others only. */
function consumeElsewhere(tarballs) {
  const project = path.join(work, "elsewhere");
  mkdirSync(project);
  const dependencies = Object.fromEntries(tarballs.map((file) => [file.includes("linux") ? `@gaol/linux-${cpu()}` : "gaol", `file:${file}`]));
  const { gaol, ...optionalDependencies } = dependencies;
  writeFileSync(path.join(project, "package.json"), JSON.stringify({ name: "consumer", private: true, dependencies: { gaol }, optionalDependencies }));
  run("npm", ["install", "--prefer-offline", "--no-audit", "--no-fund", "--silent", "--os=darwin", "--cpu=arm64"], project);
  assert(existsSync(path.join(project, "node_modules/gaol/dist/index.js")) && !existsSync(path.join(project, "node_modules/@gaol")));
}

/** Runs the tests by a version of Node, without some. */
function test(node, without) {
  run(node, ["--version"], root);
  run(node, ["scripts/test.mjs", ...without], root, { GAOL_BIN: program });
}
