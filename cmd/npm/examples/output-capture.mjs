// Output arrives while a program runs, and all of it is in the result.
import { NodeRuntime } from "gaol";

const runtime = await NodeRuntime.create();
try {
  let pieces = 0;
  const result = await runtime.exec(
    `for (const step of ["fetch", "build", "test"]) {
      console.log("step " + step);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    console.error("1 warning");`,
    { onStdout: (piece) => (pieces += piece instanceof Uint8Array ? 1 : 0) },
  );
  console.log("pieces arrived:", pieces > 0);
  console.log("stdout:", JSON.stringify(result.stdout));
  console.log("stderr:", JSON.stringify(result.stderr));
  console.log("exit code:", result.exitCode);
} finally {
  await runtime.dispose();
}
