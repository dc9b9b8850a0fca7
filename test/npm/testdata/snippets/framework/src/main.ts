import { createSystem } from "@directive-run/core";
import { cart, type Item } from "./cart.js";

const system = createSystem({ module: cart });
system.start();

const items: Item[] = [
  { name: "pen", price: 2, count: 3 },
  { name: "ink", price: 9, count: 1 },
];
system.facts.items = items;
await system.settle();
console.log("total", system.derive.total, { items: items.length });
