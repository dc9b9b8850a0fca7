package playground

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// A server without anonymous callers makes the page ask for a token, which is kept in memory only.
func testToken(t *testing.T, w *world) {
	url := startServer(t, w.gaol, map[string]any{})
	p := w.openTab(t)
	p.expect("status of 401")
	p.visit(url)
	p.edit("console.log('with a token')")
	p.click("#run")
	p.giveToken("wrong")
	p.waitFor(`document.querySelector('#token-dialog').open && document.querySelector('#token-error').textContent !== ''`)
	p.giveToken(token)
	p.waitForState("works")
	p.wantText("#panel-logs", "with a token")
	p.run("console.log('without asking again')", "works")
	if eval[bool](p, `(JSON.stringify({ ...localStorage }) + JSON.stringify({ ...sessionStorage }) + document.cookie + location.href + JSON.stringify(history.state)).includes(`+quote(token)+`)`) {
		t.Error("the token is stored")
	}
	p.do(chromedp.Reload())
	p.waitFor(ready)
	p.click("#run")
	p.waitFor(`document.querySelector('#token-dialog').open`)
	if !eval[bool](p, `new Promise((done) => setTimeout(() => done(document.querySelector('#verdict-detail').textContent === 'Waiting for the token.'), 300))`) {
		t.Error("the clock runs behind the dialog")
	}
	p.press(kb.Escape)
	p.waitForState("failed")
}

func (p *tab) giveToken(token string) {
	p.Helper()
	p.waitFor(`document.querySelector('#token-dialog').open && document.querySelector('#token-input').value === ''`)
	p.do(chromedp.SendKeys(chromedp.CSS("#token-input"), token+kb.Enter))
}
