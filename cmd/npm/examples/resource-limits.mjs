// A program that uses too much of something ends, and the next one runs.
import { NodeRuntime } from "gaol";

const runtime = await NodeRuntime.create();
const programs = {
  "too much memory": "const all = []; for (;;) all.push(Buffer.alloc(1 << 24, 1));",
  "too many processes": `import { spawn } from "node:child_process";
    for (let i = 0; i < 200; i++) spawn("sleep", ["60"]).on("error", (error) => { console.log(error.code); process.exit(7); });`,
  "too much disk": `import { appendFileSync } from "node:fs";
    try { for (;;) appendFileSync("big", Buffer.alloc(1 << 22)); } catch { console.log("refused"); process.exit(8); }`,
  modest: "console.log('fine');",
};
try {
  const endless = await runtime.exec("for (;;);", { timeout: 1000 });
  console.log("endless loop: status", endless.exitCode);
  for (const [name, code] of Object.entries(programs)) {
    const { exitCode, stdout } = await runtime.exec(code);
    console.log(`${name}: status ${exitCode} ${stdout.trim()}`.trim());
  }
} finally {
  await runtime.dispose();
}
