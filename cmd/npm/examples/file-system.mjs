// Files are written before programs run, persist between them, and are read afterwards.
import { NodeRuntime } from "gaol";

const runtime = await NodeRuntime.create({ files: { "/workspace/sales.csv": "north,3\nsouth,5\n" } });
try {
  await runtime.writeFile("/workspace/factor.txt", "10");
  await runtime.exec(`
    import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
    const factor = Number(readFileSync("factor.txt", "utf8"));
    const rows = readFileSync("sales.csv", "utf8").trim().split("\\n").map((line) => line.split(","));
    mkdirSync("report");
    writeFileSync("report/total.json", JSON.stringify({ total: rows.reduce((sum, [, n]) => sum + n * factor, 0) }));
  `);
  console.log("report:", new TextDecoder().decode(await runtime.readFile("/workspace/report/total.json")));
  console.log("names:", (await runtime.readDir("/workspace")).sort().join(" "));
  const folders = (await runtime.readDirWithTypes("/workspace")).filter((entry) => entry.isDirectory);
  console.log("folders:", folders.map((entry) => entry.name).join(" "));
} finally {
  await runtime.dispose();
}
