package playground

import (
	"fmt"
	"strings"
	"testing"
)

// attacks are texts that do something where they are taken for HTML, or printed to a terminal.
var attacks = []string{
	`<script>globalThis.pwned = 1</script>`,
	`<img src=x onerror="globalThis.pwned = 2">`,
	`</li></ol><svg onload="globalThis.pwned = 3">`,
	`<iframe srcdoc="<script>parent.pwned = 4</script>"></iframe>`,
	`<style>* { display: none }</style>`,
	`javascript:globalThis.pwned=5`,
}

// A program's output, values and errors are text, whatever they look like.
func testHostileOutput(t *testing.T, w *world) {
	p := w.openTab(t)
	p.visit(w.url)
	p.choose("none")
	list := "[`" + strings.Join(attacks, "`, `") + "`]"
	list = strings.ReplaceAll(list, "</script>", `<\/script>`)
	before := eval[int](p, `document.querySelectorAll('script, style, iframe, img').length`)
	p.run(fmt.Sprintf(`const attacks = %s;
export const state: Record<string, unknown> = {};
for (const text of attacks) {
	console.log(text);
	console.error(text);
	state[text] = { [text]: text };
}
console.log('red \u001b[31mtext\u001b[0m, bell \u0007, title \u001b]0;owned\u0007, reversed \u202etxet');
const e = new Error(attacks.join('\n'));
(e as any).code = attacks[1];
throw e;`, list), "fails")
	for _, text := range attacks {
		p.wantText("#panel-logs", text)
		p.wantText("#panel-errors", strings.Split(text, "\n")[0])
	}
	p.wantText("#panel-logs", "red ESC[31mtextESC[0m, bell BEL, title ESC]0;ownedBEL, reversed U+202Etxet")
	for _, id := range []string{"result", "logs", "facts", "errors", "denials", "usage"} {
		p.click("#tab-" + id)
		if got := eval[int](p, `document.querySelectorAll('.panel :is(script, style, iframe, img, object, embed, form, a), .panel svg, .panel [onerror], .panel [onload]').length`); got > 0 {
			t.Errorf("panel %s has %d elements of the program", id, got)
		}
	}
	if after := eval[int](p, `document.querySelectorAll('script, style, iframe, img').length`); after != before {
		t.Errorf("%d elements, %d before", after, before)
	}
	if eval[bool](p, `'pwned' in globalThis || document.title !== 'gaol playground'`) {
		t.Error("output was executed")
	}
	if strings.ContainsAny(p.text("#panel-logs"), "\u001b\u0007\u202e") {
		t.Error("control characters of the output are in the page")
	}
}

// The browser refuses to parse text as HTML, or to run text, in this page.
func testPolicy(t *testing.T, w *world) {
	p := w.openTab(t)
	p.visit(w.url)
	for _, expected := range []string{"Trusted Types", "TrustedHTML", "TrustedScript", "Content Security Policy", "Refused to"} {
		p.expect(expected)
	}
	for _, code := range []string{
		`document.body.innerHTML = '<b>x</b>'`,
		`document.body.insertAdjacentHTML('beforeend', '<b>x</b>')`,
		`document.createElement('iframe').srcdoc = '<b>x</b>'`,
		`document.write('<b>x</b>')`,
		`document.createElement('script').text = '1'`,
	} {
		if got := eval[string](p, `(() => { try { `+code+`; return 'allowed'; } catch (e) { return e.name; } })()`); got != "TypeError" {
			t.Errorf("%s: %s", code, got)
		}
	}
	if got := eval[string](p, `fetch('http://127.0.0.1:1/').then(() => 'allowed', e => e.name)`); got != "TypeError" {
		t.Errorf("a request to another server: %s", got)
	}
	const style = `(() => { const s = document.createElement('style'); s.textContent = 'body { --x: 1 }'; document.head.append(s); return getComputedStyle(document.body).getPropertyValue('--x'); })()`
	if got := eval[string](p, style); got != "" {
		t.Error("a style without the nonce applies")
	}
}

// The page stays usable while, and after, a program prints 50 MB.
func testFlood(t *testing.T, w *world) {
	p := w.openTab(t)
	p.visit(w.url)
	p.choose("none")
	p.edit("const line = 'x'.repeat(99);\nfor (let i = 0; i < 500_000; i++) console.log(line);\n")
	p.click("#run")
	p.wantText("#panel-logs", "xxx")
	p.click("#tab-usage") // works while output arrives
	p.waitFor(`!document.querySelector('#panel-usage').hidden`)
	p.click("#tab-logs")
	p.waitFor(`document.querySelector('#verdict').dataset.state !== 'running'`)
	if got := eval[int](p, `document.querySelectorAll('.panel li').length`); got > 5000 {
		t.Errorf("the page has %d lines", got)
	}
	p.run("console.log('after the flood');", "works")
	p.wantText("#panel-logs", "after the flood")
}
