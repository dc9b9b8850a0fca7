package evaluate

import (
	"strings"
	"testing"
	"time"

	"gaol/runtime"
	"gaol/test/harness"
)

// stacks are expressions for stacks of code that gaol's code calls.
var stacks = map[string]string{
	"a value":          `new Error('a').stack`,
	"in a value":       `({ list: [new Error('a').stack] })`,
	"a function":       `[1].map(() => new Error('a').stack)[0]`,
	"after await":      `await 1; new Error('a').stack`,
	"a timer":          `await new Promise((resolve) => setTimeout(() => resolve(new Error('a').stack)))`,
	"a tick":           `await new Promise((resolve) => process.nextTick(() => resolve(new Error('a').stack)))`,
	"prepared":         `Error.prepareStackTrace = (_, trace) => trace.map(String).join(' '); const text = new Error('a').stack; delete Error.prepareStackTrace; 'Error: ' + text`,
	"String.prototype": `String.prototype.startsWith = () => false; Array.prototype.push = () => 0; new Error('a').stack`,
}

// Stacks that programs read have no frames of gaol.
func TestStacksAsValues(t *testing.T) {
	for _, launcher := range []runtime.Launcher{runtime.LauncherExec, runtime.LauncherZygote} {
		rt := harness.Create(t, runtime.Options{Launcher: launcher})
		c := newContext(t, rt, runtime.ContextOptions{})
		for name, code := range stacks {
			cell, err := c.Evaluate(t.Context(), code, runtime.EvaluateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			evaluation, err := rt.Evaluate(t.Context(), code, runtime.EvaluateOptions{Grace: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			for door, e := range map[string]*runtime.Evaluation{"cell": cell, "evaluation": evaluation} {
				text := string(e.Value)
				if !strings.Contains(text, "Error: ") || strings.Contains(text, "libexec/gaol") || !strings.Contains(text, "cell-") && !strings.Contains(text, "snippet.mjs") {
					t.Errorf("%v: %s: %s: %s, %v", launcher, door, name, text, e.Error)
				}
			}
		}
	}
}
