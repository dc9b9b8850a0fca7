// The menu of settings: mode, permissions, time limit.
import { byId, element } from "./dom.js";
import type { Offer } from "./api.js";

/** What the person has chosen. "" and 0 are the server's defaults. */
export interface Chosen {
  adapter: string;
  permissions: string;
  timeoutMs: number;
}

interface Choice {
  title: string;
  text: string;
}

const permissions: Record<string, Choice> = {
  strict: {
    title: "Strict",
    text: "The program computes and prints. It cannot write files, start processes, or use the network.",
  },
  default: {
    title: "Default",
    text: "The program may also write files and start processes, inside its sandbox only. It has no network.",
  },
  public: {
    title: "Public",
    text: "As default, and the program may connect to public addresses. Private addresses and this server's own stay closed.",
  },
};

const plain: Choice = { title: "Plain", text: "Runs any program, and shows what src/main.ts exports." };

const timeouts = [1000, 2000, 5000, 10_000];

/** The settings, which follow what the server offers. */
export class Settings {
  readonly #onChange: () => void;
  #offer: Offer;
  #chosen: Chosen;
  #known = false; // the server has said what it offers

  constructor(offer: Offer, wanted: Partial<Chosen>, onChange: () => void) {
    this.#onChange = onChange;
    this.#offer = offer;
    this.#chosen = { adapter: "", permissions: "", timeoutMs: 0, ...pick(wanted) };
    byId("timeout").addEventListener("change", () => {
      this.set({ timeoutMs: Number(byId<HTMLSelectElement>("timeout").value) });
    });
    this.#render();
  }

  /** What applies: the choice of the person where the server offers it, else a default. */
  get chosen(): Chosen {
    const { adapters, adapter, permissions: presets, timeoutMs } = this.#offer;
    const c = this.#chosen;
    return {
      adapter: adapters.includes(c.adapter) ? c.adapter : adapter,
      permissions: presets.includes(c.permissions) ? c.permissions : (presets.find((p) => p === "default") ?? presets[0] ?? "default"),
      timeoutMs: Math.min(Math.max(c.timeoutMs || timeoutMs.default, timeoutMs.min), timeoutMs.max),
    };
  }

  /** What the person has chosen, which another server may offer. */
  get wanted(): Chosen {
    return this.#chosen;
  }

  /** Reports whether the server offers an adapter and a preset. */
  offers(adapter: string, preset: string): boolean {
    return this.#offer.adapters.includes(adapter) && this.#offer.permissions.includes(preset);
  }

  set(chosen: Partial<Chosen>): void {
    this.#chosen = { ...this.#chosen, ...pick(chosen) };
    this.#label();
    this.#check();
    this.#onChange();
  }

  /** The settings for a run. Those of an unknown server are its defaults. */
  get request(): Partial<Chosen> & { timeoutMs: number } {
    return this.#known ? this.chosen : { timeoutMs: this.chosen.timeoutMs };
  }

  setOffer(offer: Offer): void {
    this.#known = true;
    this.#offer = offer;
    this.#render();
    this.#onChange();
  }

  #render(): void {
    const { adapters, permissions: presets, timeoutMs } = this.#offer;
    byId("mode-set").hidden = adapters.length < 2;
    byId("mode").replaceChildren(...adapters.map((a) => this.#radio("adapter", a, modeOf(a))));
    byId("permissions").replaceChildren(
      ...presets.map((p) => this.#radio("permissions", p, permissions[p] ?? { title: p, text: "A preset of this server." })),
    );
    const limits = [...new Set([...timeouts, timeoutMs.default, this.chosen.timeoutMs])].sort((a, b) => a - b);
    const allowed = limits.filter((ms) => ms >= timeoutMs.min && ms <= timeoutMs.max);
    byId("timeout").replaceChildren(...allowed.map((ms) => element("option", { value: String(ms) }, ms < 1000 ? `${ms} ms` : `${ms / 1000} s`)));
    this.#label();
    this.#check();
  }

  #radio(name: "adapter" | "permissions", value: string, choice: Choice): HTMLElement {
    const id = `${name}-${value}`;
    const input = element("input", { type: "radio", name, value, id, "aria-describedby": `${id}-text` });
    input.addEventListener("change", () => this.set({ [name]: value }));
    return element(
      "div",
      { class: "choice" },
      input,
      element("label", { for: id }, choice.title),
      element("p", { id: `${id}-text` }, choice.text),
    );
  }

  #check(): void {
    const { adapter, permissions: preset, timeoutMs } = this.chosen;
    for (const id of [`adapter-${adapter}`, `permissions-${preset}`]) {
      const input = document.getElementById(id) as HTMLInputElement | null;
      if (input !== null) {
        input.checked = true;
      }
    }
    byId<HTMLSelectElement>("timeout").value = String(timeoutMs);
  }

  #label(): void {
    const { adapter, permissions: preset } = this.chosen;
    const mode = this.#offer.adapters.length < 2 ? "" : `${modeOf(adapter).title} · `;
    const title = permissions[preset]?.title ?? preset;
    byId("settings-label").replaceChildren(`${mode}${title}`, element("span", { class: "wide" }, " permissions"));
  }
}

/** Returns the members of a choice that are set. */
function pick({ adapter, permissions: preset, timeoutMs }: Partial<Chosen>): Partial<Chosen> {
  return {
    ...(adapter === undefined ? {} : { adapter }),
    ...(preset === undefined ? {} : { permissions: preset }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  };
}

function modeOf(adapter: string): Choice {
  if (adapter === "none") {
    return plain;
  }
  return {
    title: adapter.charAt(0).toUpperCase() + adapter.slice(1),
    text: `Framework mode: waits until ${adapter} has settled, and shows its facts and derived values.`,
  };
}
