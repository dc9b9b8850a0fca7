import { createModule } from "@directive-run/core";

export interface Item {
  name: string;
  price: number;
  count: number;
}

interface Facts {
  items: Item[];
}

export const cart = createModule("cart", {
  init: (facts: Facts) => {
    facts.items = [];
  },
  derive: {
    total: (facts: Facts): number => facts.items.reduce((sum, { price, count }) => sum + price * count, 0),
    empty: (facts: Facts): boolean => facts.items.length === 0,
  },
});
