// Popover menus, which open below their buttons.

/** Places a menu below its button when it opens. */
export function connectMenu(control: HTMLElement, menu: HTMLElement): void {
  const place = (): void => {
    const { bottom, left } = control.getBoundingClientRect();
    menu.style.top = `${bottom + 6}px`;
    menu.style.left = `${Math.max(8, Math.min(left, document.documentElement.clientWidth - menu.offsetWidth - 8))}px`;
    menu.style.maxHeight = `${Math.max(160, window.innerHeight - bottom - 18)}px`;
  };
  menu.addEventListener("toggle", (event) => {
    const open = (event as ToggleEvent).newState === "open";
    control.setAttribute("aria-expanded", String(open));
    if (open) {
      place();
      menu.querySelector<HTMLElement>("input:checked, button, input")?.focus();
    }
  });
  control.setAttribute("aria-expanded", "false");
  window.addEventListener("resize", () => menu.matches(":popover-open") && place());
}
