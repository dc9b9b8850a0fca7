package playground

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// visit opens a URL and waits until the page is ready.
func (p *tab) visit(url string) {
	p.Helper()
	p.do(chromedp.Navigate(url))
	p.waitFor(ready)
}

// ready is true when the page shows its editor, and knows the server's features.
const ready = `document.querySelector('.cm-content') && document.documentElement.dataset.ready`

// quote returns a JavaScript string.
func quote(text string) string {
	quoted, _ := json.Marshal(text) // a string cannot fail
	return string(quoted)
}

// click clicks an element that is visible and enabled, as a person does.
func (p *tab) click(selector string) {
	p.Helper()
	p.do(chromedp.Click(chromedp.CSS(selector)))
}

// press presses keys, with modifiers.
func (p *tab) press(keys string, modifiers ...kb.Modifier) {
	p.Helper()
	p.do(chromedp.KeyEvent(keys, chromedp.KeyModifiers(modifiers...)))
}

// edit replaces the shown file, by pasting.
func (p *tab) edit(code string) {
	p.Helper()
	p.click(".cm-line") // the first one: of long programs, the middle of the content is elsewhere
	p.press("a", kb.ModifierCtrl)
	eval[bool](p, fmt.Sprintf(`(() => {
		const clipboardData = new DataTransfer();
		clipboardData.setData('text/plain', %s);
		return document.activeElement.dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }));
	})()`, quote(code)))
	p.waitFor(fmt.Sprintf(`%s.startsWith(%s)`, editorText, quote(firstLine(code))))
}

// editorText is the text that the editor shows: the editor renders only lines that are visible.
const editorText = `[...document.querySelectorAll('.cm-line')].map(l => l.textContent).join('\n')`

func firstLine(code string) string {
	line, _, _ := strings.Cut(code, "\n")
	return line
}

// run runs a program and waits for its result: "works", "fails", "timeout", "stopped" or "failed".
func (p *tab) run(code, want string) {
	p.Helper()
	p.edit(code)
	p.press(kb.Enter, kb.ModifierCtrl)
	p.waitForState(want)
}

func (p *tab) waitForState(want string) {
	p.Helper()
	p.waitFor(fmt.Sprintf(`%s && document.querySelector('#verdict').dataset.state !== 'running'`, started))
	if got := p.state(); got != want {
		p.Fatalf("the run %s, want %s\n%s", got, want, p.describe())
	}
}

// started is true once there is a run.
const started = `document.querySelector('#verdict')?.dataset.state !== 'idle'`

func (p *tab) state() string {
	return eval[string](p, `document.querySelector('#verdict').dataset.state`)
}

// text returns the text of an element, also if it is hidden.
func (p *tab) text(selector string) string {
	p.Helper()
	return eval[string](p, fmt.Sprintf(`document.querySelector(%s).textContent`, quote(selector)))
}

// wantText waits until an element shows a text.
func (p *tab) wantText(selector, text string) {
	p.Helper()
	p.waitFor(fmt.Sprintf(`document.querySelector(%s)?.textContent.includes(%s)`, quote(selector), quote(text)))
}

// focused returns the id, or else the class, of the element in focus.
func (p *tab) focused() string {
	p.Helper()
	return eval[string](p, `document.activeElement.id || document.activeElement.className || document.activeElement.tagName`)
}

// choose chooses the mode, in the menu of settings.
func (p *tab) choose(adapter string) {
	p.Helper()
	p.click("#settings")
	p.click("#adapter-" + adapter)
	p.waitFor(fmt.Sprintf(`document.querySelector('#adapter-%s').checked`, adapter)) // Escape would come first on a busy machine
	p.press(kb.Escape)
	p.waitFor(`!document.querySelector('#settings-menu').matches(':popover-open')`)
}

// setTimeout chooses the time limit, in milliseconds.
func (p *tab) setTimeout(ms int) {
	p.Helper()
	eval[bool](p, fmt.Sprintf(`(() => {
		const select = document.querySelector('#timeout');
		select.value = '%d';
		select.dispatchEvent(new Event('change'));
		return select.value === '%[1]d';
	})()`, ms))
}
