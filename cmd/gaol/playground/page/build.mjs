// Bundles the page's scripts and styles, with the licences of its packages, into the folder ../built,
// which bin/gaol embeds.
//
//	node build.mjs          writes the files
//	node build.mjs --check  fails if a file differs
import { build } from "esbuild";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";

const packages = new Set(); // folders, such as node_modules/crelt
const comments = []; // that are marked as legal in the source
const files = new Map(); // by name

async function bundle(format, entryPoints) {
  const result = await build({
    entryPoints,
    format,
    outdir: "/",
    write: false,
    bundle: true,
    minify: true,
    target: "es2022",
    charset: "utf8",
    legalComments: "external",
    metafile: true,
  });
  for (const path of Object.keys(result.metafile.inputs)) {
    const folder = /^(node_modules\/(?:.*\/node_modules\/)?(?:@[^/]+\/)?[^/]+)\//.exec(path);
    if (folder) packages.add(folder[1]);
  }
  for (const file of result.outputFiles) {
    if (file.path.endsWith(".LEGAL.txt")) comments.push(file.text);
    else files.set(basename(file.path), file.text);
  }
}

function licenses() {
  const rule = "-".repeat(72);
  let text = "The playground's page contains these packages.\n";
  for (const folder of [...packages].sort()) {
    const about = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const name = readdirSync(folder).find((name) => /^licen[cs]e/i.test(name));
    if (!name) throw new Error(`${folder} has no licence`);
    const license = readFileSync(join(folder, name), "utf8").trim();
    text += `\n${rule}\n${about.name} ${about.version} (${about.license ?? "see below"})\n\n${license}\n`;
  }
  return text + comments.map((comment) => `\n${rule}\n${comment.trim()}\n`).join("");
}

await bundle("esm", { main: "./src/main.ts", style: "./src/style.css" });
await bundle("iife", { embed: "./src/embed.ts" });
files.set("licenses.txt", licenses());
for (const [name, text] of files) {
  const path = join("../built", name);
  if (!process.argv.includes("--check")) writeFileSync(path, text);
  else if (readFileSync(path, "utf8") !== text) throw new Error(`${path} is not what its source gives: make page`);
}
