package evaluate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gaol/runtime"
	"gaol/test/harness"
)

// intrinsics defines replace(i), which replaces the ith writable function that is reachable from
// globalThis by one that throws, restore(i), fail() and paths, the list of all.
const intrinsics = `
const { defineProperty, getOwnPropertyDescriptor } = Object;
const SavedError = Error, seen = new Set(), found = [];
const skipped = ['globalThis', 'global', 'process', 'console', 'navigator', 'crypto', 'performance', 'localStorage', 'sessionStorage'];
const visit = (object, path) => {
  if (object === null || (typeof object !== 'object' && typeof object !== 'function') || seen.has(object)) return;
  seen.add(object);
  for (const key of Reflect.ownKeys(object)) {
    const d = getOwnPropertyDescriptor(object, key);
    if (!('value' in d) || (object === globalThis && (skipped.includes(key) || !language.includes(key)))) continue;
    const name = path + (typeof key === 'symbol' ? '[' + String(key) + ']' : '.' + key);
    if (typeof d.value === 'function' && (d.writable || d.configurable)) found.push({ object, key, d, name });
    visit(d.value, name);
  }
  visit(Object.getPrototypeOf(object), path + '.__proto__');
};
const language = ('AggregateError Array ArrayBuffer Atomics BigInt Boolean DataView Date Error Float64Array Function Int32Array JSON Map Math ' +
  'Number Object Promise Proxy RangeError ReferenceError Reflect RegExp Set String Symbol SyntaxError TypeError Uint8Array WeakMap WeakRef WeakSet ' +
  'queueMicrotask setImmediate setInterval setTimeout structuredClone').split(' ');
visit(globalThis, 'globalThis');
visit([][Symbol.iterator](), 'array iterator');
visit(new Map()[Symbol.iterator](), 'map iterator');
visit((function* () {})(), 'generator');
visit(async function () {}, 'async function');
visit(require('node:events').prototype, 'EventEmitter.prototype');
globalThis.replace = (i) => defineProperty(found[i].object, found[i].key, {
  __proto__: null, ...found[i].d, value: function () { throw new SavedError('replaced ' + found[i].name) },
});
globalThis.restore = (i) => defineProperty(found[i].object, found[i].key, found[i].d);
globalThis.fail = () => { throw new SavedError('boom') };
globalThis.paths = found.map(({ name }) => name);
`

// Contexts report values, lines and errors of cells, whichever built-in function the code replaces.
func TestContextReplacedIntrinsics(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	c := newContext(t, rt, runtime.ContextOptions{LastValue: true})
	limit := runtime.EvaluateOptions{Timeout: 20 * time.Second} // only for a cell that does not end
	setup := cell(t, c, intrinsics+"paths", runtime.EvaluateOptions{})
	var paths []string
	if err := setup.Decode(&paths); err != nil || len(paths) < 400 {
		t.Fatalf("%d functions: %v", len(paths), err)
	}
	t.Logf("%d functions", len(paths))
	for i, path := range paths {
		if testing.Short() && i%7 != 0 || nodesOwn[path] {
			continue
		}
		e := cell(t, c, fmt.Sprintf("replace(%d); console.log('line'); 42", i), limit)
		if string(e.Value) != "42" || e.Error != nil || len(e.Logs) != 1 || e.Logs[0].Text != "line" {
			t.Errorf("%s: %s, %v, %v", path, e.Value, e.Error, e.Logs)
		}
		e, err := c.Evaluate(t.Context(), "fail()", limit)
		if err != nil || e.Error == nil || e.Error.Message != "boom" || !strings.Contains(e.Error.Stack, "cell-1.js") && path != "globalThis.Error.prepareStackTrace" {
			t.Errorf("%s: the error is %+v, %v", path, e.Error, err)
		}
		if e, err := c.Evaluate(t.Context(), fmt.Sprintf("restore(%d); 0", i), limit); err != nil || e.Error != nil {
			t.Errorf("%s: %v", path, e)
			c = newContext(t, rt, runtime.ContextOptions{LastValue: true})
			cell(t, c, intrinsics, limit)
		}
	}
}

// So do evaluations.
func TestEvaluateReplacedIntrinsics(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	evaluate := func(code string) *runtime.Evaluation {
		t.Helper()
		e, err := rt.Evaluate(t.Context(), intrinsics+code, runtime.EvaluateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	var paths []string
	if err := evaluate("paths").Decode(&paths); err != nil {
		t.Fatal(err)
	}
	every := 3
	if testing.Short() {
		every = 29
	}
	for i := 0; i < len(paths); i += every {
		path := paths[i]
		if nodesOwn[path] {
			continue
		}
		e := evaluate(fmt.Sprintf("replace(%d); console.log('line'); process.stdout.write('raw\\n'); 42", i))
		if string(e.Value) != "42" || e.Error != nil || len(e.Logs) != 2 || e.Logs[0].Text != "line" || e.Logs[1].Text != "raw" {
			t.Errorf("%s: %s, %v, %v", path, e.Value, e.Error, e.Logs)
		}
		if e := evaluate(fmt.Sprintf("replace(%d); fail()", i)); e.Error == nil || e.Error.Message != "boom" {
			t.Errorf("%s: the error is %+v", path, e.Error)
		}
	}
}

// nodesOwn are the functions without which Node itself does not run a program to its end.
var nodesOwn = map[string]bool{
	"globalThis.Array.prototype.pop": true, // its queue of ticks
	"map iterator.__proto__.next":    true, // its list of rejected promises

	"array iterator.__proto__.__proto__[Symbol(Symbol.iterator)]": true, // likewise
}
