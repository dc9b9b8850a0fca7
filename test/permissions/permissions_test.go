package permissions

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gaol/policy"
	"gaol/runtime"
	"gaol/test/harness"
)

var denied = policy.Scope{Default: policy.Deny}

// allowing is a scope that allows the patterns, and nothing else.
func allowing(ops []policy.Operation, patterns ...string) policy.Scope {
	return policy.Scope{Default: policy.Deny, Rules: []policy.Rule{{Mode: policy.Allow, Operations: ops, Patterns: patterns}}}
}

// answers are the lines of an attack program, by their first word.
func answers(text string) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(text) {
		way, answer, _ := strings.Cut(strings.TrimSpace(line), " ")
		all[way] = answer
	}
	return all
}

// attempts returns the attempts of a Node program: names, and an error code or "ok".
func attempts(t testing.TB, rt *runtime.NodeRuntime, code string, o runtime.RunOptions) map[string]string {
	t.Helper()
	res := harness.Run(t, rt, `
		const all = {};
		globalThis.attempt = async (name, f) => { try { all[name] = (await f()) ?? 'ok' } catch (e) { all[name] = String(e.code ?? e.cause?.code ?? e) } };
		`+code+`
		__return(all); setImmediate(() => process.exit());`, o)
	var all map[string]string
	if err := res.Decode(&all); err != nil {
		t.Fatalf("%v: cause %q, exit code %d: %s", err, res.Cause, res.ExitCode, res.Stderr)
	}
	return all
}

func wantSame(t testing.TB, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// refusal is the rule that Create rejects.
func refusal(t *testing.T, p policy.Permissions) *policy.RuleError {
	t.Helper()
	err := harness.CreateError(t, harness.Options(runtime.Options{Permissions: p}))
	var rule *policy.RuleError
	if !errors.As(err, &rule) {
		t.Errorf("%+v: %v, want a RuleError", p, err)
		return &policy.RuleError{}
	}
	if !strings.HasPrefix(err.Error(), "gaol: create: option Permissions: ") || strings.Contains(err.Error(), "\n") {
		t.Errorf("unclear: %v", err)
	}
	return rule
}
