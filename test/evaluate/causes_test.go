package evaluate

import (
	"strings"
	"testing"

	"gaol/policy"
	"gaol/runtime"
	"gaol/test/harness"
)

// An error keeps its causes, which need not be errors, and the errors that it combines. Each is
// reported once.
func TestErrorCauses(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	c := newContext(t, rt, runtime.ContextOptions{})
	for _, tc := range []struct{ code, text, inner string }{
		{`throw new Error('a', { cause: 'text' })`, "Error: a: text", "text"},
		{`throw new Error('a', { cause: { b: [1] } })`, "Error: a: { b: [ 1 ] }", "{ b: [ 1 ] }"},
		{`throw new Error('a', { cause: null })`, "Error: a: null", "null"},
		{`throw new Error('a: b', { cause: new Error('b') })`, "Error: a: b", "Error: b"},
		{`throw new AggregateError([new TypeError('x'), 'y'], 'all', { cause: new Error('z') })`, "AggregateError: all: z: x; y", "Error: z|TypeError: x|y"},
		{`await Promise.any([Promise.reject(new Error('x')), Promise.reject(1)])`, "AggregateError: All promises were rejected: x; 1", "Error: x|1"},
		{`throw new SuppressedError(new Error('later'), new Error('first'), 'both')`, "SuppressedError: both: later; first", "Error: later|Error: first"},
		{`{ using a = { [Symbol.dispose]() { throw new Error('closing') } }; throw new Error('using') }`, "SuppressedError: An error was suppressed during disposal: closing; using", "Error: closing|Error: using"},
		{`const e1 = new Error('a'); e1.cause = new Error('b', { cause: e1 }); throw e1`, "Error: a: b", "Error: b"},
		{`const e2 = new AggregateError([], 'a'); e2.errors.push(e2, e2); throw e2`, "AggregateError: a", ""},
		{`const many = (n, depth) => new AggregateError(depth ? Array.from({ length: n }, () => many(n, depth - 1)) : [], 'm'); throw many(5, 5)`, "AggregateError: m: m", "*"},
		{`throw new AggregateError([new Error('x'.repeat(1e6))], 'y'.repeat(1e6))`, "AggregateError: yyy", "*"},
	} {
		for door, evaluate := range map[string]func() (*runtime.Evaluation, error){
			"cell": func() (*runtime.Evaluation, error) {
				return c.Evaluate(t.Context(), tc.code, runtime.EvaluateOptions{})
			},
			"evaluate": func() (*runtime.Evaluation, error) {
				return rt.Evaluate(t.Context(), tc.code, runtime.EvaluateOptions{})
			},
		} {
			e, err := evaluate()
			if err != nil || e.Error == nil || !strings.HasPrefix(e.Error.Error(), tc.text) {
				t.Errorf("%s: %s: %v, %v", door, tc.code, e.Error, err)
				continue
			}
			var inner []string
			if e.Error.Cause != nil {
				inner = append(inner, strings.SplitN(e.Error.Cause.Error(), ": a", 2)[0])
			}
			for _, one := range e.Error.Errors {
				inner = append(inner, one.Error())
			}
			if got := strings.Join(inner, "|"); got != tc.inner && tc.inner != "*" {
				t.Errorf("%s: %s: %s, want %s", door, tc.code, got, tc.inner)
			}
		}
	}
}

// The text of an error ends with the rule that denied what failed.
func TestErrorDenied(t *testing.T) {
	rt := harness.Create(t, runtime.Options{Permissions: policy.Permissions{Network: policy.Scope{Default: policy.Deny}}})
	for code, text := range map[string]string{
		`await fetch('http://10.1.2.3:81')`: "TypeError: fetch failed: connect EACCES 10.1.2.3:81",
		`require('net').connect(81, '10.1.2.3'); await new Promise(() => setTimeout(() => {}, 1e6))`:       "Error: connect EACCES 10.1.2.3:81",
		`await require('dns').promises.lookup('api.example.com')`:                                          "Error: getaddrinfo EAI_AGAIN api.example.com",
		`await fetch('http://10.1.2.3:81').catch((cause) => { throw new AggregateError([cause], 'all') })`: "AggregateError: all: fetch failed: connect EACCES 10.1.2.3:81",
	} {
		e, err := rt.Evaluate(t.Context(), code, runtime.EvaluateOptions{})
		if err != nil || e.Error == nil || !strings.HasPrefix(e.Error.Error(), text) || !strings.HasSuffix(e.Error.Error(), ", denied by network.default") {
			t.Errorf("%s: %v, %v %v", code, e.Error, e.Denials, err)
		}
	}
}
