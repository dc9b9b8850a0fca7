// Programs start other programs, and so does this process. They are real, and all of them are in the sandbox.
import { NodeRuntime } from "gaol";

const runtime = await NodeRuntime.create();
try {
  const { stdout } = await runtime.exec(`
    import { execFileSync, spawn } from "node:child_process";
    console.log("uppercase:", execFileSync("tr", ["a-z", "A-Z"], { input: "quiet" }).toString());
    const child = spawn("sh", ["-c", "read name; echo hello $name; exit 3"], { stdio: ["pipe", "inherit", "inherit"] });
    child.stdin.end("child\\n");
    child.on("exit", (code) => console.log("child's status:", code));
  `);
  process.stdout.write(stdout);

  const command = await runtime.execCommand("wc", ["-w"], { stdin: "one two three" });
  console.log("words:", command.stdout.trim());

  let echoed = "";
  const cat = runtime.spawnCommand("cat", [], { onStdout: (piece) => (echoed += new TextDecoder().decode(piece)) });
  cat.writeStdin("through ");
  cat.writeStdin("a pipe");
  cat.closeStdin();
  console.log("status:", await cat.wait(), "output:", echoed);
} finally {
  await runtime.dispose();
}
