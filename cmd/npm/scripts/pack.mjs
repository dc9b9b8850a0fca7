// Packs the package, and one with the gaol program and runc for each platform:
//
//	node scripts/pack.mjs FOLDER VERSION x64=GAOL,RUNC [arm64=GAOL,RUNC]
//
// GAOL is a gaol with all commands, such as bin/gaol-server. VERSION is what git describe prints. Nothing is published.
import { execFileSync } from "node:child_process";
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import path from "node:path";

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const [folder, described, ...programs] = process.argv.slice(2);
if (programs.length === 0) throw new Error("usage: pack.mjs FOLDER VERSION x64=GAOL,RUNC [arm64=GAOL,RUNC]");

const version = npmVersion(described);
const work = mkdtempSync(path.join(tmpdir(), "gaol-pack-"));
try {
  mkdirSync(folder, { recursive: true });
  const platforms = programs.map((p) => packPrograms(...p.split(/[=,]/)));
  packLibrary(platforms);
} finally {
  rmSync(work, { recursive: true });
}

/** Returns a version that npm accepts. Commits without a tag before them sort before all releases. */
function npmVersion(text) {
  const release = text.replace(/^v/, "");
  return /^\d+\.\d+\.\d+(-[0-9A-Za-z-]+)?$/.test(release) ? release : `0.0.0-dev.g${release}`;
}

/** Packs the programs of a platform, and returns the package's name. */
function packPrograms(cpu, gaol, runc) {
  const name = `@gaol/linux-${cpu}`;
  const stage = path.join(work, cpu);
  mkdirSync(path.join(stage, "bin"), { recursive: true });
  for (const [name, file] of Object.entries({ gaol, runc })) {
    cpSync(file, path.join(stage, "bin", name));
    chmodSync(path.join(stage, "bin", name), 0o755);
  }
  cpSync(path.join(root, "../../.ci/deb/copyright"), path.join(stage, "COPYRIGHT"));
  const { license } = description();
  pack(stage, { name, version, description: `The programs gaol and runc for Linux on ${cpu}`, license, os: ["linux"], cpu: [cpu], preferUnplugged: true });
  return name;
}

/** Packs the library. Programs are optional dependencies, so that npm installs that of the machine. */
function packLibrary(platforms) {
  const stage = path.join(work, "gaol");
  mkdirSync(stage);
  for (const name of ["dist", "README.md"]) cpSync(path.join(root, name), path.join(stage, name), { recursive: true });
  const { scripts, devDependencies, imports, ...published } = description();
  pack(stage, { ...published, version, optionalDependencies: Object.fromEntries(platforms.map((name) => [name, version])) });
}

function description() {
  return JSON.parse(readFileSync(path.join(root, "package.json"), "utf8"));
}

function pack(stage, content) {
  writeFileSync(path.join(stage, "package.json"), `${JSON.stringify(content, null, 2)}\n`);
  cpSync(path.join(root, "../../LICENSE"), path.join(stage, "LICENSE"));
  const npm = ["pack", "--silent", "--pack-destination", path.resolve(folder)];
  process.stdout.write(path.join(folder, execFileSync("npm", npm, { cwd: stage, encoding: "utf8" })));
}
