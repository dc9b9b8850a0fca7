package playground

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// A person without a mouse reaches everything, and leaves the editor again.
func testKeyboard(t *testing.T, w *world) {
	p := w.openTab(t)
	p.visit(w.url)
	p.press(kb.Tab)
	if got := p.focused(); got != "skip" {
		t.Errorf("the first Tab leads to %q", got)
	}
	p.press(kb.Enter)
	p.waitFor(inEditor)
	p.press("a", kb.ModifierCtrl)
	p.press("console.log(6 * 7") // the editor closes the bracket
	p.press(kb.Enter, kb.ModifierCtrl)
	p.waitForState("works")
	p.wantText("#panel-logs", "42")
	p.press(kb.Tab) // indents
	p.waitFor(inEditor)
	p.press(kb.Escape)
	p.press(kb.Tab)
	p.waitFor(`!(` + inEditor + `)`)
	p.tabTo("tab-result")
	for _, want := range []string{"tab-logs", "tab-facts"} {
		p.press(kb.ArrowRight)
		if got := p.focused(); got != want {
			t.Errorf("ArrowRight leads to %q, want %s", got, want)
		}
	}
	p.waitFor(`!document.querySelector('#panel-facts').hidden`)
	p.press(kb.End)
	p.waitFor(`document.activeElement.id === 'tab-usage' && !document.querySelector('#panel-usage').hidden`)
	p.press(kb.Tab)
	p.waitFor(`document.activeElement.id === 'panel-usage'`)
}

const inEditor = `document.activeElement.classList.contains('cm-content')`

// tabTo presses Tab until an element is focused.
func (p *tab) tabTo(id string) {
	p.Helper()
	var way []string
	for range 40 {
		way = append(way, p.focused())
		if way[len(way)-1] == id {
			return
		}
		p.press(kb.Tab)
	}
	p.Fatalf("Tab leads to %q, and not to %s", way, id)
}

// Dialogs have the focus while they are open, and return it.
func testDialogs(t *testing.T, w *world) {
	p := w.openTab(t)
	p.visit(w.url)
	p.tabTo("share")
	p.press(kb.Enter)
	p.waitFor(`document.querySelector('#share-dialog').open && document.activeElement.id === 'share-link'`)
	p.press(kb.Escape)
	p.waitFor(`!document.querySelector('#share-dialog').open && document.activeElement.id === 'share'`)
	p.tabTo("file-add")
	p.press(kb.Enter)
	p.waitFor(`document.querySelector('#name-dialog').open && document.activeElement.id === 'name-input'`)
	p.press("a", kb.ModifierCtrl)
	p.press("../outside.ts")
	p.press(kb.Enter)
	p.waitFor(`document.querySelector('#name-error').textContent !== '' && document.querySelector('#name-dialog').open`)
	p.press(kb.Escape)
	// The dialog is open no longer before its event close has cleared the input.
	p.waitFor(`!document.querySelector('#name-dialog').open && document.activeElement.id === 'file-add' && document.querySelector('#name-input').value === ''`)
	for typed, path := range map[string]string{"util.ts": "src/util.ts", "data": "src/data.ts"} {
		p.do(chromedp.Focus(chromedp.CSS("#file-add")))
		p.press(kb.Enter)
		p.waitFor(`document.querySelector('#name-dialog').open && document.activeElement.id === 'name-input'`)
		p.press(typed) // replaces the name that is selected
		p.press(kb.Enter)
		p.waitFor(`[...document.querySelectorAll('[data-path]')].some((e) => e.dataset.path === ` + quote(path) + `)`)
	}
	p.do(chromedp.Focus(chromedp.CSS("#examples")))
	p.press(kb.Enter)
	p.waitFor(`document.querySelector('#examples-menu').contains(document.activeElement)`)
	p.press(kb.Escape)
	p.waitFor(`document.activeElement.id === 'examples'`)
}
