// Makes the code blocks of any site runnable, in the playground of this script's server:
//
//	<script src="https://play.example.com/embed.js" data-selector="pre code.language-ts"></script>
//
// Below each block that the selector matches, it adds a button. The button opens the playground in a frame,
// with the block's text. Nothing is sent before. The server's setting playground.frameAncestors must list the
// site's origin. Further attributes: data-label is the button's text, data-theme is light or dark.
// Buttons and frames have the classes gaol-run and gaol-frame for the site's own style.

interface Settings {
  page: URL; // of the playground
  selector: string;
  label: string;
  theme: string;
}

const minHeight = 200;
const maxHeight = 1200;

function settingsOf(script: HTMLScriptElement): Settings {
  const { selector, label, theme } = script.dataset;
  return {
    page: new URL("./", script.src),
    selector: selector ?? "pre code.language-ts, pre code.language-js",
    label: label ?? "Run",
    theme: theme ?? "",
  };
}

/** Adds a button for each code block. */
function addButtons(settings: Settings): void {
  for (const code of document.querySelectorAll<HTMLElement>(settings.selector)) {
    const block = code.closest("pre") ?? code;
    const control = document.createElement("button");
    control.type = "button";
    control.className = "gaol-run";
    control.textContent = settings.label;
    control.setAttribute("aria-expanded", "false");
    let frame: HTMLIFrameElement | undefined;
    control.addEventListener("click", () => {
      frame = frame === undefined ? open(settings, code.textContent ?? "", control) : close(frame);
      control.setAttribute("aria-expanded", String(frame !== undefined));
      control.textContent = frame === undefined ? settings.label : "Close";
    });
    block.after(control);
  }
}

/** Opens the playground after an element, and loads a program. */
function open(settings: Settings, source: string, before: HTMLElement): HTMLIFrameElement {
  const frame = document.createElement("iframe");
  frame.className = "gaol-frame";
  frame.title = "Playground";
  frame.allow = "clipboard-write";
  frame.sandbox.add("allow-scripts", "allow-same-origin", "allow-popups", "allow-popups-to-escape-sandbox");
  Object.assign(frame.style, { width: "100%", height: "480px", border: "0", borderRadius: "14px", display: "block", colorScheme: "normal" });
  const url = new URL(settings.page);
  url.search = new URLSearchParams({ embed: "1", origin: location.origin, theme: settings.theme }).toString();
  frame.src = url.href;
  window.addEventListener("message", function listen(event) {
    if (!frame.isConnected) {
      window.removeEventListener("message", listen);
    } else if (event.source === frame.contentWindow && event.origin === settings.page.origin) {
      answer(frame, event.data, source, settings.page.origin);
    }
  });
  before.after(frame);
  return frame;
}

function close(frame: HTMLIFrameElement): undefined {
  frame.remove();
}

/** Handles a message of the playground. */
function answer(frame: HTMLIFrameElement, message: unknown, source: string, origin: string): void {
  const { type, height } = (message ?? {}) as { type?: unknown; height?: unknown };
  if (type === "gaol:ready") {
    frame.contentWindow?.postMessage({ type: "gaol:load", source }, origin);
    frame.focus();
  } else if (type === "gaol:size" && typeof height === "number") {
    frame.style.height = `${Math.min(Math.max(height, minHeight), maxHeight)}px`;
  }
}

const script = document.currentScript;
if (script instanceof HTMLScriptElement) {
  const settings = settingsOf(script);
  if (document.readyState === "loading") {
    document.addEventListener("DOMContentLoaded", () => addButtons(settings));
  } else {
    addButtons(settings);
  }
}
