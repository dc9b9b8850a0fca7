// TypeScript files run as they are: Node removes their types.
import { NodeRuntime } from "gaol";

const runtime = await NodeRuntime.create({
  files: {
    "/workspace/order.ts": `
      export interface Item { name: string; price: number; count: number }
      export const total = (items: readonly Item[]): number => items.reduce((sum, i) => sum + i.price * i.count, 0);
    `,
    "/workspace/main.ts": `
      import { total, type Item } from "./order.ts";
      const items: Item[] = [{ name: "pen", price: 2, count: 3 }, { name: "ink", price: 9, count: 1 }];
      console.log("total:", total(items));
    `,
  },
});
try {
  const { stdout, exitCode } = await runtime.execCommand("node", ["main.ts"]);
  process.stdout.write(stdout);
  console.log("exit code:", exitCode);
} finally {
  await runtime.dispose();
}
