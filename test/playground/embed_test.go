package playground

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

const example = "console.log('from the docs');\n"

// startDocs starts a site with an example, which embeds the playground of w by one script.
func startDocs(t *testing.T, w *world) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			rw.WriteHeader(http.StatusNoContent) // the icon
			return
		}
		rw.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(rw, `<!doctype html><html lang="en"><title>Docs</title><pre><code class="language-ts">%s</code></pre>
			<script src="%s/embed.js" data-selector="pre code.language-ts"></script>`, example, w.url)
	}))
	t.Cleanup(s.Close)
	return s
}

// A site that the settings name embeds the page by one script.
func testEmbed(t *testing.T, w *world) {
	p := w.openTab(t)
	p.do(chromedp.Navigate(w.docs.URL))
	p.click(".gaol-run")
	f := p.frame()
	f.waitFor(ready)
	f.waitFor(editorText + `.startsWith(` + quote(firstLine(example)) + `)`)
	if got := f.evaluate(`document.querySelector('#verdict').dataset.state`); got != `"idle"` {
		t.Errorf("loading the example ran it: %s", got)
	}
	before := f.evaluate(editorText)
	for _, message := range []string{
		`{type: 'gaol:load', source: 1}`, `{type: 'gaol:load'}`, `{type: 'gaol:run', source: 'x'}`, `{type: 'gaol:load', files: [{path: '../x', source: ''}]}`, `null`, `'x'`,
	} {
		eval[bool](p, `(document.querySelector('iframe').contentWindow.postMessage(`+message+`, '*'), true)`)
	}
	f.evaluate(`document.querySelector('#run').click()`)
	f.waitFor(`document.querySelector('#panel-logs').textContent.includes('from the docs')`)
	if after := f.evaluate(editorText); after != before {
		t.Errorf("bad messages changed the program to %s", after)
	}
	f.evaluate(`window.parent.postMessage({ type: 'gaol:size', height: 1e9 }, '*')`)
	p.waitFor(`document.querySelector('iframe').getBoundingClientRect().height <= 1200`)
}

// Another site gets the script, but the browser does not show the page there.
func testEmbedElsewhere(t *testing.T, w *world) {
	p := w.openTab(t)
	p.expect("frame-ancestors")
	p.do(chromedp.Navigate(w.evil.URL))
	p.click(".gaol-run")
	p.waitFor(`document.querySelector('iframe')`)
	p.waitForComplaint("frame-ancestors")
}

func (p *tab) waitForComplaint(part string) {
	p.Helper()
	for deadline := time.Now().Add(patience); ; pause() {
		p.mu.Lock()
		for _, text := range p.complaints {
			if containsAny(text, []string{part}) {
				p.mu.Unlock()
				return
			}
		}
		p.mu.Unlock()
		if time.Now().After(deadline) {
			p.Fatalf("the browser has not complained about %s", part)
		}
	}
}

// frame is a frame in a page, in a world of its own: the page's scripts do not see it.
type frame struct {
	*tab
	index int
	world cdpruntime.ExecutionContextID
}

// frame returns the page's first frame, once it has loaded.
func (p *tab) frame() *frame {
	p.Helper()
	return p.frameAt(0)
}

// frameAt returns one of the page's frames, in the order in which they were added.
func (p *tab) frameAt(index int) *frame {
	p.Helper()
	f := &frame{tab: p, index: index}
	p.waitFor(fmt.Sprintf(`document.querySelectorAll('iframe').length > %d`, index))
	for deadline := time.Now().Add(patience); ; pause() {
		if err := chromedp.Do(p.ctx, chromedp.Func(f.enter)); err == nil && f.evaluate(`location.pathname + location.search`) != `"blank"` {
			return f
		} else if time.Now().After(deadline) {
			p.Fatal("the frame has not loaded")
		}
	}
}

func (f *frame) enter(ctx context.Context, t *chromedp.Target) error {
	tree, err := cdp.Call(ctx, t, page.GetFrameTree, cdp.Empty{})
	if err != nil {
		return err
	}
	children := tree.FrameTree.ChildFrames
	if len(children) <= f.index || children[f.index].Frame.URL == "" {
		return fmt.Errorf("%d frames", len(children))
	}
	made, err := cdp.Call(ctx, t, page.CreateIsolatedWorld, page.CreateIsolatedWorldParams{FrameID: children[f.index].Frame.ID})
	f.world = made.ExecutionContextID
	return err
}

// evaluate evaluates an expression in the frame and returns its JSON.
func (f *frame) evaluate(expression string) string {
	text, err := f.try(expression)
	if err != nil {
		f.Fatalf("%s: %v", expression, err)
	}
	return text
}

func (f *frame) try(expression string) (text string, err error) {
	value, err := chromedp.Run(f.ctx, func(ctx context.Context, t *chromedp.Target) (string, error) {
		got, err := cdp.Call(ctx, t, cdpruntime.Evaluate, cdpruntime.EvaluateParams{Expression: expression, ContextID: f.world, ReturnByValue: new(true)})
		if err != nil {
			return "", err
		}
		if got.ExceptionDetails != nil {
			return "", errors.New(describeException(got.ExceptionDetails))
		}
		return string(got.Result.Value), nil
	})
	return value, err
}

// waitFor waits until an expression is true in the frame.
func (f *frame) waitFor(expression string) {
	f.Helper()
	for deadline := time.Now().Add(patience); ; pause() {
		if text, err := f.try("Boolean(" + expression + ")"); err == nil && text == "true" {
			return
		}
		if time.Now().After(deadline) {
			f.Fatalf("in the frame still not: %s", expression)
		}
	}
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}
