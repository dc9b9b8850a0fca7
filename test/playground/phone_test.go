package playground

import (
	"testing"

	"github.com/chromedp/chromedp"
)

// On a phone, nothing is wider than the screen.
func testPhone(t *testing.T, w *world) {
	p := w.openTab(t)
	p.do(chromedp.EmulateViewport(360, 740, chromedp.EmulateMobile, chromedp.EmulatePortrait, chromedp.EmulateTouch))
	p.visit(w.url)
	p.checkWidth("at first")
	p.choose("none")
	p.run("console.log('x'.repeat(500));\nexport const wide = 'y'.repeat(500);\nthrow new Error('z'.repeat(500));", "fails")
	for _, id := range []string{"result", "logs", "facts", "errors", "denials", "usage"} {
		p.click("#tab-" + id)
		p.checkWidth(id)
	}
	p.click("#share")
	p.waitFor(`document.querySelector('#share-dialog').open`)
	p.checkWidth("the dialog")
}

func (p *tab) checkWidth(what string) {
	p.Helper()
	if eval[bool](p, `document.documentElement.scrollWidth > window.innerWidth`) {
		p.Errorf("%s: the page is %d pixels wide", what, eval[int](p, `document.documentElement.scrollWidth`))
	}
	const beyond = `[...document.querySelectorAll('button, dialog[open]')].filter(e => e.checkVisibility() && e.closest('[role=tablist]') === null && e.getBoundingClientRect().right > window.innerWidth + 1).map(e => e.outerHTML).join('\n')`
	if got := eval[string](p, beyond); got != "" {
		p.Errorf("%s: beyond the right edge: %s", what, got)
	}
}
