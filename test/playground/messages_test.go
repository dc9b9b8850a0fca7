package playground

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
)

// An embedded page ignores messages that are not from its parent window, or whose origin is not the
// one that the frame was opened for.
func testMessagesToFrame(t *testing.T, w *world) {
	const bad = `{type: 'gaol:load', source: 'bad'}`
	p := w.openTab(t)
	p.do(chromedp.Navigate(w.docs.URL))
	p.click(".gaol-run")
	f := p.frame()
	f.waitFor(editorText + `.startsWith(` + quote(firstLine(example)) + `)`)
	before := f.evaluate(editorText)
	f.evaluate(countMessages)
	for name, sandbox := range map[string]string{
		"a frame beside it, of the parent's origin": "allow-scripts allow-same-origin",
		"a frame beside it, of another origin":      "allow-scripts",
	} {
		f.evaluate(`messages = 0`)
		p.addFrame(`parent.frames[0].postMessage(`+bad+`, '*')`, sandbox)
		f.waitFor(`messages === 1`)
		if got := f.evaluate(editorText); got != before {
			t.Errorf("%s loaded %s", name, got)
		}
	}

	p = w.openTab(t)
	p.expect("target origin") // of the page's own messages
	p.do(chromedp.Navigate(w.docs.URL))
	f = p.addPlayground(w, w.evil.URL)
	before = f.evaluate(editorText)
	f.evaluate(countMessages)
	eval[bool](p, `(frames[0].postMessage(`+bad+`, '*'), true)`)
	f.waitFor(`messages === 1`)
	if got := f.evaluate(editorText); got != before {
		t.Errorf("a parent of another origin loaded %s", got)
	}
}

// The script on a site listens only to the frame that it has opened, and only while the playground is
// in it.
func testMessagesToSite(t *testing.T, w *world) {
	const bad = `parent.postMessage({type: 'gaol:size', height: 777}, '*')`
	p := w.openTab(t)
	p.do(chromedp.Navigate(w.docs.URL))
	p.click(".gaol-run")
	p.frame().waitFor(ready)
	eval[int](p, `window.bad = 0; addEventListener('message', (event) => { bad += event.data?.height === 777 }); bad`)
	wait := func(from string, count int) {
		t.Helper()
		p.waitFor(fmt.Sprintf(`bad === %d`, count))
		if got := eval[string](p, `document.querySelector('.gaol-frame').style.height`); got == "777px" {
			t.Errorf("%s set the height", from)
		}
	}
	p.addPlayground(w, w.docs.URL).evaluate(bad)
	wait("another frame", 1)
	eval[bool](p, `(document.querySelector('.gaol-frame').srcdoc = `+quote("<script>"+bad+"</script>")+`, true)`)
	wait("a page that is not the playground", 2)
}

// countMessages counts the messages of a frame. Its listener runs after the page's.
const countMessages = `globalThis.messages = 0; addEventListener('message', () => messages++); 0`

// addPlayground adds a frame with the playground, for a parent of an origin.
func (p *tab) addPlayground(w *world, origin string) *frame {
	p.Helper()
	index := eval[int](p, fmt.Sprintf(`(() => {
		const frame = document.createElement('iframe');
		frame.src = '%s/?embed=1&origin=%s';
		document.body.append(frame);
		return document.querySelectorAll('iframe').length - 1;
	})()`, w.url, origin))
	f := p.frameAt(index)
	f.waitFor(ready)
	return f
}

// addFrame adds a frame with a script to the page.
func (p *tab) addFrame(script, sandbox string) {
	p.Helper()
	eval[bool](p, fmt.Sprintf(`(() => {
		const frame = document.createElement('iframe');
		frame.sandbox = %s;
		frame.srcdoc = %s;
		document.body.append(frame);
		return true;
	})()`, quote(sandbox), quote("<script>"+script+"</script>")))
}
