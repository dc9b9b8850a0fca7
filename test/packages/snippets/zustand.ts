// Stores of zustand, whose state the adapter in docs/snippets.md reads.
import { create } from "zustand";
import { combine, subscribeWithSelector } from "zustand/middleware";
import { createStore } from "zustand/vanilla";

interface Bears {
  bears: number;
  add: (n: number) => void;
}

const useBears = create<Bears>()(
  subscribeWithSelector((set) => ({ bears: 0, add: (n) => set((state) => ({ bears: state.bears + n })) })),
);
useBears.subscribe(
  (state) => state.bears,
  (bears, before) => console.log("bears", before, "to", bears),
);

const fish = createStore(combine({ fish: 3 }, (set) => ({ clear: () => set({ fish: 0 }) })));

useBears.getState().add(2);
useBears.setState({ bears: useBears.getState().bears * 10 });
await Promise.resolve();
setTimeout(() => fish.getState().clear(), 5);
console.log(useBears, fish.getState());
