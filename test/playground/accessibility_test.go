package playground

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// axe is the file of axe-core that npm ci has installed.
const axe = "../../cmd/gaol/playground/page/node_modules/axe-core/axe.min.js"

// axe-core finds nothing wrong in any state of the page, in light and dark.
func testAccessibility(t *testing.T, w *world) {
	script, err := os.ReadFile(axe)
	if err != nil {
		t.Skipf("%v: make test installs it", err)
	}
	p := w.openTab(t)
	p.visit(w.url)
	eval[bool](p, "(() => {"+string(script)+"; return true })()")
	p.choose("none")
	p.checkAccessibility("after loading")
	p.run("console.log('some output');\nconsole.warn('a warning');\nconsole.error('an error');\nimport { writeFileSync } from 'node:fs';\nwriteFileSync('/etc/x', '');", "fails")
	for _, id := range []string{"result", "logs", "facts", "errors", "denials", "usage"} {
		p.click("#tab-" + id)
		p.checkAccessibility(id)
	}
	p.run("const = 1;", "fails")
	p.checkAccessibility("an error mark")
	for _, open := range []string{"#share", "#file-add"} {
		p.click(open)
		p.waitFor(`document.querySelector('dialog[open]')`)
		p.checkAccessibility(open)
		p.click("dialog[open] [data-cancel]")
		p.waitFor(`!document.querySelector('dialog[open]')`)
	}
	for _, open := range []string{"#examples", "#settings"} {
		p.click(open)
		p.waitFor(`document.querySelector(':popover-open')`)
		p.checkAccessibility(open)
		p.click(open)
	}
}

// checkAccessibility runs axe-core. Only colours depend on the scheme.
func (p *tab) checkAccessibility(what string) {
	p.Helper()
	for scheme, options := range map[string]string{"light": "{}", "dark": "{ runOnly: ['color-contrast'] }"} {
		p.setScheme(scheme)
		p.waitFor(`document.getAnimations().every(a => a.playState !== 'running' || a.effect.getComputedTiming().endTime === Infinity)`)
		report := `axe.run(` + options + `).then(r => r.violations.map(v => v.id + ': ' + v.help + ': ' + v.nodes.map(n => n.html + ' ' + n.failureSummary).join('; ')).join('\n'))`
		if got := eval[string](p, report); got != "" {
			p.Errorf("%s, %s: %s", what, scheme, strings.TrimSpace(got))
		}
	}
}

// setScheme makes the browser prefer light or dark.
func (p *tab) setScheme(scheme string) {
	p.Helper()
	p.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		return err
	}))
}
