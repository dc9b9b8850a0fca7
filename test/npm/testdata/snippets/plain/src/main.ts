interface Item {
  name: string;
  price: number;
  count: number;
}

const items: Item[] = [
  { name: "pen", price: 2, count: 3 },
  { name: "ink", price: 9, count: 1 },
];
const total = items.reduce((sum, { price, count }) => sum + price * count, 0);
console.log("total", total, { items: items.length });
