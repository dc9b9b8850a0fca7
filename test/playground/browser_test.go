package playground

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"gaol/test/harness"
)

// startBrowser starts Chromium, which ends with the test. It has one connection to the outside: the
// server on 127.0.0.1.
func startBrowser(t *testing.T) context.Context {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is missing: .ci/deps test installs it")
	}
	// Chromium has files in the home folder and sockets, whose paths must be short, in TMPDIR.
	profile, err := os.MkdirTemp("", "chromium-")
	if err != nil {
		t.Fatal(err)
	}
	allocator, freeAllocator := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), options(program, profile)...)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil {
			t.Errorf("close the browser: %v", err)
		}
		cancel()
		freeAllocator()
		checkNoProcess(t, profile)
		if err := os.RemoveAll(profile); err != nil {
			t.Error(err)
		}
	})
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start the browser: %v", err)
	}
	return ctx
}

// options are the browser's. It resolves no name, and connects to nothing on its own.
func options(program, profile string) []chromedp.ExecAllocatorOption {
	return append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.UserDataDir(filepath.Join(profile, "profile")), chromedp.NoSandbox,
		chromedp.Env("HOME="+profile, "TMPDIR="+profile, "XDG_CONFIG_HOME="+profile, "XDG_CACHE_HOME="+profile),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-domain-reliability", true),
		chromedp.Flag("no-pings", true),
		chromedp.Flag("no-proxy-server", true),
		chromedp.Flag("disable-gpu", true),
		chromedp.WindowSize(1280, 800),
	)
}

// checkNoProcess fails the test if a process of the browser is left.
func checkNoProcess(t *testing.T, profile string) {
	t.Helper()
	harness.WaitFor(t, "the end of all processes of the browser", func() bool {
		for _, path := range harness.Glob("/proc/[0-9]*/cmdline") {
			if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), profile) {
				return false
			}
		}
		return true
	})
}

// tab is a tab with a profile of its own.
type tab struct {
	testing.TB
	ctx context.Context

	mu         sync.Mutex
	complaints []string // of the page and the browser
	expected   []string // parts of complaints that are no failure
}

// openTab opens a tab, which is closed when the test ends.
func (w *world) openTab(t *testing.T) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(w.browser, chromedp.WithNewBrowserContext())
	p := &tab{TB: t, ctx: ctx}
	t.Cleanup(func() {
		p.checkComplaints()
		if err := chromedp.Cancel(ctx); err != nil {
			t.Errorf("close the tab: %v", err)
		}
		cancel()
	})
	if err := chromedp.Listen(ctx, p.listen); err != nil {
		t.Fatal(err)
	}
	return p
}

// listen is called with all events of the page.
func (p *tab) listen(event any) {
	switch e := event.(type) {
	case *cdpruntime.EventExceptionThrown:
		p.complain("exception: " + describeException(e.ExceptionDetails))
	case *cdplog.EventEntryAdded:
		if e.Entry.Level == cdplog.EntryLevelError {
			p.complain(fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL))
		}
	case *network.EventRequestWillBeSent:
		if u, err := url.Parse(e.Request.URL); err != nil || u.Scheme != "data" && u.Scheme != "about" && u.Hostname() != "127.0.0.1" {
			p.complain("request to " + e.Request.URL)
		}
	}
}

func describeException(d *cdpruntime.ExceptionDetails) string {
	if d.Exception != nil && d.Exception.Description != "" {
		return d.Exception.Description
	}
	return d.Text
}

func (p *tab) complain(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.complaints = append(p.complaints, text)
}

// expect declares a complaint that is no failure.
func (p *tab) expect(part string) { p.expected = append(p.expected, part) }

func (p *tab) checkComplaints() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, text := range p.complaints {
		if !containsAny(text, p.expected) {
			p.Errorf("the page caused: %s", text)
		}
	}
}

func containsAny(text string, parts []string) bool {
	for _, part := range parts {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

// do runs actions, and ends the test if one fails.
func (p *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		p.Fatal(err)
	}
}

// eval evaluates an expression in the page.
func eval[T any](p *tab, expression string) T {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.Fatalf("%s: %v", expression, err)
	}
	return value
}

// waitFor waits until an expression is true. While a page loads, it is not. The page itself looks
// again and again, because each message to the browser costs far more processor time.
func (p *tab) waitFor(expression string) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	look := fmt.Sprintf(`new Promise(done => {
		const until = performance.now() + 1000;
		(function look() {
			let ok = false;
			try { ok = Boolean(%s) } catch {}
			if (ok || performance.now() > until) done(ok); else setTimeout(look, 10);
		})();
	})`, expression)
	for {
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool](look, chromedp.EvalAwaitPromise))
		switch {
		case err == nil && ok:
			return
		case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled):
			p.Fatalf("still not: %s\n%s", expression, p.describe())
		case err != nil: // the page was replaced
			pause()
		}
	}
}

// patience bounds each step; it only ends tests that hang.
const patience = time.Minute

func pause() { time.Sleep(10 * time.Millisecond) }

// describe returns the visible text, for a failure.
func (p *tab) describe() string {
	text, err := chromedp.Run(p.ctx, chromedp.Evaluate[string](`document.body.innerText`))
	return fmt.Sprintf("%.3000s %v", text, err)
}
