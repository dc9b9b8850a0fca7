package playground

import (
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"gaol/runtime/snippets"
	"gaol/test/harness"
)

// requests returns a function that returns the methods and paths of the requests since.
func (p *tab) requests() func() []string {
	p.Helper()
	sent := make(chan string, 1000)
	err := chromedp.Listen(p.ctx, func(event any) {
		if e, ok := event.(*network.EventRequestWillBeSent); ok {
			u, _ := url.Parse(e.Request.URL)
			sent <- e.Request.Method + " " + u.Path
		}
	})
	if err != nil {
		p.Fatal(err)
	}
	return func() (list []string) {
		for len(sent) > 0 {
			list = append(list, <-sent)
		}
		return list
	}
}

const umlauts = "const süß: string = '∑ 🧪 \\u2028';\nconsole.log(süß);\n"

// The page makes links of the documented form.
func testShare(t *testing.T, w *world) {
	p := w.openTab(t)
	p.visit(w.url)
	p.edit(umlauts)
	p.click("#share")
	p.waitFor(`document.querySelector('#share-dialog').open && document.querySelector('#share-link').value.includes('#src=')`)
	link := eval[string](p, `document.querySelector('#share-link').value`)
	base, fragment, _ := strings.Cut(link, "#")
	if base != w.url+"/" {
		t.Errorf("the link leads to %s", base)
	}
	if got := harness.DecodeLink(t, fragment); got.Source != umlauts {
		t.Errorf("%+v", got)
	}
	openLink(t, w, link, umlauts)
}

// A link to several files shows them.
func testShareFiles(t *testing.T, w *world) {
	files := []snippets.File{{Path: "src/main.ts", Source: "import './other.js';\n"}, {Path: "src/other.ts", Source: umlauts}}
	fragment, err := snippets.EncodeLink(snippets.Input{Files: files})
	if err != nil {
		t.Fatal(err)
	}
	p := openLink(t, w, w.url+"/#"+fragment, files[0].Source)
	p.click(`[data-path="src/other.ts"]`)
	p.waitFor(editorText + `.startsWith('const süß')`)
	p.click("#share")
	p.waitFor(`document.querySelector('#share-link').value.includes('#files=')`)
	_, made, _ := strings.Cut(eval[string](p, `document.querySelector('#share-link').value`), "#")
	if diff := cmp.Diff(files, harness.DecodeLink(t, made).Files); diff != "" {
		t.Error(diff)
	}
}

// openLink opens a link in a new profile. Its program is shown, and not run.
func openLink(t *testing.T, w *world, link, source string) *tab {
	t.Helper()
	p := w.openTab(t)
	sent := p.requests()
	p.visit(link)
	p.waitFor(editorText + `.startsWith(` + quote(firstLine(source)) + `)`)
	for _, r := range sent() {
		if strings.HasPrefix(r, "POST") {
			t.Errorf("loading a link sent %s", r)
		}
	}
	if got := p.state(); got != "idle" {
		t.Errorf("after loading a link, the run %s", got)
	}
	return p
}

// Links that are damaged, or unpack to more than the limit, report it and change nothing.
func testBadLinks(t *testing.T, w *world) {
	bomb, err := snippets.EncodeLink(snippets.Input{Source: strings.Repeat("//", 99_000)})
	if err != nil {
		t.Fatal(err)
	}
	p := w.openTab(t)
	p.visit(w.url)
	before := eval[string](p, editorText)
	for _, fragment := range []string{"src=!", "src=AAAA", "files=" + strings.TrimPrefix(bomb, "src="), "src=" + strings.Repeat("A", 100_000)} {
		eval[bool](p, `(document.querySelector('#notice').hidden = true, location.hash = `+quote(fragment)+`, true)`)
		p.waitFor(`!document.querySelector('#notice').hidden && document.querySelector('#notice-text').textContent.startsWith('The link')`)
		if got := eval[string](p, editorText); got != before {
			t.Errorf("%.20s: the editor has %.20q", fragment, got)
		}
	}
}

// The program and the choices survive a reload.
func testReload(t *testing.T, w *world) {
	p := w.openTab(t)
	p.visit(w.url)
	p.choose("none")
	p.edit("console.log('kept');")
	p.do(chromedp.Reload())
	p.waitFor(ready)
	p.waitFor(editorText + `=== "console.log('kept');"`)
	if got := p.state(); got != "idle" {
		t.Errorf("after a reload, the run %s", got)
	}
	if !eval[bool](p, `document.querySelector('#adapter-none').checked`) {
		t.Error("the mode was not kept")
	}
}
