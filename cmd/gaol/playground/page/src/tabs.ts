// The ARIA tabs pattern: arrow keys move, Home and End, one tab is in the tab order.

/** Connects the tabs of a tablist. onSelect is called when the person selects one. */
export class Tabs {
  constructor(
    readonly list: HTMLElement,
    readonly onSelect: (tab: HTMLElement) => void,
  ) {
    list.addEventListener("click", (event) => {
      const tab = (event.target as Element).closest<HTMLElement>("[role=tab]");
      if (tab !== null) {
        this.#choose(tab);
      }
    });
    list.addEventListener("keydown", (event) => this.#onKey(event));
  }

  /** All tabs that are shown. */
  get tabs(): HTMLElement[] {
    return [...this.list.querySelectorAll<HTMLElement>("[role=tab]:not([hidden])")];
  }

  /** Marks a tab as the selected one. */
  mark(selected: HTMLElement): void {
    for (const tab of this.list.querySelectorAll<HTMLElement>("[role=tab]")) {
      tab.setAttribute("aria-selected", String(tab === selected));
      tab.tabIndex = tab === selected ? 0 : -1;
    }
    this.#reveal(selected);
  }

  // Unlike scrollIntoView, this never scrolls the page.
  #reveal(tab: HTMLElement): void {
    const list = this.list.getBoundingClientRect();
    const { left, right } = tab.getBoundingClientRect();
    if (left < list.left || right > list.right) {
      this.list.scrollLeft += left - list.left - (list.width - (right - left)) / 2;
    }
  }

  #choose(tab: HTMLElement): void {
    this.mark(tab);
    this.onSelect(tab);
  }

  #onKey(event: KeyboardEvent): void {
    const tabs = this.tabs;
    const at = tabs.indexOf(document.activeElement as HTMLElement);
    const next = nextOf(event.key, at, tabs.length);
    const tab = at < 0 || event.ctrlKey || event.metaKey || event.altKey ? undefined : tabs[next];
    if (tab !== undefined) {
      event.preventDefault();
      tab.focus();
      this.#choose(tab);
    }
  }
}

function nextOf(key: string, at: number, length: number): number {
  switch (key) {
    case "ArrowLeft":
      return (at + length - 1) % length;
    case "ArrowRight":
      return (at + 1) % length;
    case "Home":
      return 0;
    case "End":
      return length - 1;
  }
  return -1;
}
