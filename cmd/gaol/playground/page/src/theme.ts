// Light and dark: as the system, or as the person chooses.
import { loadTheme, saveTheme } from "./store.js";

const themes = ["", "light", "dark"];
const labels = ["Theme: auto", "Theme: light", "Theme: dark"];

/** Makes a button that switches between themes. */
export function themeSwitch(control: HTMLElement, fixed: string): void {
  let current = Math.max(themes.indexOf(fixed || loadTheme()), 0);
  const apply = (): void => {
    document.documentElement.dataset["theme"] = themes[current] ?? "";
    control.setAttribute("aria-label", labels[current] ?? "");
    control.title = labels[current] ?? "";
    [...control.children].forEach((icon, i) => icon.toggleAttribute("hidden", i !== current));
  };
  control.addEventListener("click", () => {
    current = (current + 1) % themes.length;
    saveTheme(themes[current] ?? "");
    apply();
  });
  apply();
}
