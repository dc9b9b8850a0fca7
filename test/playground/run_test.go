package playground

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// A person writes TypeScript, runs it, and sees its output and exports.
func testRun(t *testing.T, w *world) {
	p := w.openTab(t)
	p.visit(w.url)
	p.choose("none")
	p.run("const x: number = 6 * 7;\nconsole.log('the answer is', x);\nexport const answer = { x };", "works")
	p.wantText("#panel-logs", "the answer is 42")
	p.wantText("#panel-facts", "42")
	p.click("#tab-logs")
	p.waitFor(`!document.querySelector('#panel-logs').hidden && document.querySelector('#panel-result').hidden`)
	p.run("throw new TypeError('no luck');", "fails")
	p.wantText("#panel-errors", "no luck")
	if strings.Contains(p.text("#panel-logs"), "the answer") {
		t.Error("the output of the first run is left")
	}
}

// forever prints, and does not end.
const forever = "console.log('first line');\nsetInterval(() => {}, 1000);\nawait new Promise(() => {});"

// Output appears while the program runs. Stop ends it, and keeps the output.
func testStream(t *testing.T, w *world) {
	p := w.openTab(t)
	p.visit(w.url)
	p.choose("none")
	p.setTimeout(10_000)
	p.edit(forever)
	p.click("#run")
	p.wantText("#panel-logs", "first line")
	if got := p.state(); got != "running" {
		t.Errorf("the run %s while its first line is shown", got)
	}
	p.click("#stop")
	p.waitForState("stopped")
	p.wantText("#panel-logs", "first line")
	p.run("console.log('again')", "works") // the page is as before
}

// An error is marked on its line, and leads the cursor there.
func testErrorMark(t *testing.T, w *world) {
	p := w.openTab(t)
	p.visit(w.url)
	p.choose("none")
	p.run("const fine = 1;\nconst = 2;\n", "fails")
	p.waitFor(`document.querySelector('.cm-lintRange-error')`)
	const line = `(() => {
		const top = e => Math.round(e.getBoundingClientRect().top / 10);
		const mark = document.querySelector('.cm-lint-marker-error').closest('.cm-gutterElement');
		return [...document.querySelectorAll('.cm-lineNumbers .cm-gutterElement')].filter(e => e.textContent !== '' && top(e) === top(mark)).at(-1)?.textContent;
	})()`
	if got := eval[string](p, line); got != "2" {
		t.Errorf("the mark is on line %q", got)
	}
	p.click("#tab-errors")
	p.wantText("#panel-errors", "src/main.ts:2:7")
	p.click("#panel-errors .errors button")
	p.waitFor(`document.activeElement.classList.contains('cm-content')`)
	if got := eval[string](p, `document.querySelector('.cm-activeLine').textContent`); got != "const = 2;" {
		t.Errorf("the cursor is on %q", got)
	}
	p.run("const fine = 1;", "works")
	p.waitFor(`!document.querySelector('.cm-lintRange-error')`)
}

// A second file is imported by the first one.
func testTwoFiles(t *testing.T, w *world) {
	p := w.openTab(t)
	p.visit(w.url)
	p.choose("none")
	p.edit("import { double } from './double.js';\nconsole.log('twice', double(21));")
	p.addFile("src/double.ts")
	p.run("export const double = (n: number): number => 2 * n;", "works")
	p.wantText("#panel-logs", "twice 42")
	p.click(`[data-path="src/main.ts"]`)
	p.waitFor(editorText + `.includes("double(21)")`)
	p.click(`[data-path="src/double.ts"]`)
	p.click("#file-close")
	p.waitFor(`!document.querySelector('[data-path="src/double.ts"]')`)
	p.press(kb.Enter, kb.ModifierCtrl)
	p.click("#run")
	p.waitForState("fails")
	p.wantText("#panel-errors", "./double.js")
}

// addFile adds a file, and shows it.
func (p *tab) addFile(path string) {
	p.Helper()
	p.click("#file-add")
	p.waitFor(`document.querySelector('#name-dialog').open`)
	p.do(chromedp.SetValue(chromedp.CSS("#name-input"), path))
	p.click("#name-ok")
	p.waitFor(fmt.Sprintf(`document.querySelector('[data-path=%s]').ariaSelected === 'true'`, quote(path)))
}

// With a framework, the page shows its state and derived values.
func testFacts(t *testing.T, w *world) {
	p := w.openTab(t)
	p.visit(w.url)
	p.choose("directive")
	p.run(counter, "works")
	p.click("#tab-facts")
	p.wantText("#panel-facts", "count: 42")
	p.click("#tab-derived")
	p.wantText("#panel-derived", "doubled: 84")
}

// counter is a program of the framework.
const counter = `import { createModule, createSystem, t } from "@directive-run/core";

const counter = createModule("counter", {
  schema: {
    facts: { count: t.number() },
    derivations: { doubled: t.number() },
  },
  init: (facts) => {
    facts.count = 41;
  },
  derive: {
    doubled: (facts) => facts.count * 2,
  },
});

const system = createSystem({ module: counter });
system.start();
system.facts.count += 1;
console.log("counted to", system.facts.count);
`
