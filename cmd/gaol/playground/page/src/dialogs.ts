// The dialogs: a file's name, the token, a share link.
import { byId } from "./dom.js";
import { withEnding } from "./files.js";

/** Asks for a line of text. It returns undefined if the person cancels. check returns the error of a text. */
function ask(name: string, value: string, check: (text: string) => string | undefined): Promise<string | undefined> {
  const dialog = byId<HTMLDialogElement>(`${name}-dialog`);
  const input = byId<HTMLInputElement>(`${name}-input`);
  const error = byId(`${name}-error`);
  input.value = value;
  error.textContent = "";
  return new Promise((resolve) => {
    let answer: string | undefined;
    const onSubmit = (event: Event): void => {
      event.preventDefault();
      const wrong = check(input.value.trim());
      error.textContent = wrong ?? "";
      if (wrong === undefined) {
        answer = input.value.trim();
        dialog.close();
      }
    };
    dialog.addEventListener("submit", onSubmit);
    dialog.addEventListener(
      "close",
      () => {
        dialog.removeEventListener("submit", onSubmit);
        input.value = "";
        resolve(answer);
      },
      { once: true },
    );
    dialog.showModal();
    input.focus();
    input.setSelectionRange(value.lastIndexOf("/") + 1, value.length); // with the ending, which people type, too
  });
}

/** Asks for the path of a file. */
export async function askPath(
  title: string,
  action: string,
  value: string,
  check: (path: string) => string | undefined,
): Promise<string | undefined> {
  byId("name-title").textContent = title;
  byId("name-ok").textContent = action;
  const path = await ask("name", value, (text) => check(withEnding(text, value)));
  return path === undefined ? undefined : withEnding(path, value);
}

/** Asks for the token. */
export async function askToken(rejected: boolean): Promise<string | undefined> {
  const answer = ask("token", "", (text) => (/^[\x21-\x7e]{1,4096}$/.test(text) ? undefined : "A token has no spaces, and only ASCII characters."));
  byId("token-error").textContent = rejected ? "The server does not accept this token." : "";
  return answer;
}

/** Shows a link. */
export function showLink(link: string, warning: string): void {
  const dialog = byId<HTMLDialogElement>("share-dialog");
  const input = byId<HTMLInputElement>("share-link");
  const note = byId("share-note");
  input.value = link;
  note.textContent = warning;
  const copy = async (event: Event): Promise<void> => {
    event.preventDefault();
    input.select();
    try {
      await navigator.clipboard.writeText(link);
      note.textContent = "Copied.";
    } catch {
      note.textContent = "The browser did not allow it: copy the selected text.";
    }
  };
  const onSubmit = (event: Event): void => void copy(event);
  dialog.addEventListener("submit", onSubmit);
  dialog.addEventListener("close", () => dialog.removeEventListener("submit", onSubmit), { once: true });
  dialog.showModal();
  input.select();
}

/** Makes the buttons that cancel work. */
export function connectDialogs(): void {
  for (const cancel of document.querySelectorAll<HTMLElement>("dialog [data-cancel]")) {
    cancel.addEventListener("click", () => cancel.closest("dialog")?.close());
  }
}
