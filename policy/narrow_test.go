package policy

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestNarrow(t *testing.T) {
	outer := `{"fs":{"rules":[{"mode":"allow","paths":["/workspace/**"]},{"mode":"allow","operations":["read"],"paths":["/usr/**"]}]},
		"childProcess":{"rules":[{"mode":"allow","patterns":["/usr/bin/**"]}]},
		"network":{"rules":[{"mode":"allow","operations":["listen"],"patterns":["tcp://localhost:*"]},
			{"mode":"allow","operations":["connect","fetch"],"patterns":["tcp://localhost:80"]}]},
		"process":{"default":"allow","rules":[{"mode":"deny","operations":["signal"]}]},
		"env":"deny"}`
	tests := []struct{ inner, place, why string }{
		{`{}`, "", ""},
		{`{"fs":"deny","network":"deny","childProcess":"deny","process":"deny","env":"allow"}`, "", ""},
		{outer, "", ""},
		{`{"fs":{"rules":[{"mode":"allow","operations":["read"],"paths":["/workspace/a/**","/usr/lib/x"]}]}}`, "", ""},
		{`{"fs":"allow"}`, "fs", "/**"},
		{`{"fs":{"rules":[{"mode":"deny","paths":["/**"]},{"mode":"allow","operations":["write"],"paths":["/usr/lib/**"]},{"mode":"allow","paths":["/**"]}]}}`, "fs.rules[2]", "allows"},
		{`{"fs":{"rules":[{"mode":"allow","operations":["write"],"paths":["/usr/lib/**"]}]}}`, "fs.rules[0]", "allows write on /usr/lib/**"},
		{`{"fs":{"rules":[{"mode":"allow","operations":["read"],"paths":["/usr/*"]}]}}`, "fs.rules[0].paths[0]", "not patterns"},
		{`{"childProcess":{"rules":[{"mode":"allow","patterns":["/usr/bin/git"]},{"mode":"allow","patterns":["/bin/sh"]}]}}`, "childProcess.rules[1]", "spawn on /bin/sh"},
		{`{"network":{"rules":[{"mode":"allow","operations":["connect"],"patterns":["tcp://localhost:80"]}]}}`, "", ""},
		{`{"network":{"rules":[{"mode":"allow","operations":["connect"],"patterns":["tcp://localhost:*"]}]}}`, "network.rules[0]", "connect"},
		{`{"network":{"rules":[{"mode":"allow","patterns":["udp://localhost:1"]}]}}`, "network.rules[0]", "udp://localhost:1"},
		{`{"network":{"rules":[{"mode":"allow","patterns":["dns://*.a"]}]}}`, "network.rules[0]", "dns"},
		{`{"process":"allow"}`, "process", "signal"},
		{`{"process":{"rules":[{"mode":"allow","operations":["inspect"]}]}}`, "", ""},
	}
	for _, tt := range tests {
		inner := parse(t, tt.inner)
		got, err := Narrow(parse(t, outer), inner, world)
		if tt.place == "" {
			if diff := cmp.Diff(inner.Over(parse(t, outer)), got); err != nil || diff != "" {
				t.Errorf("%s: %v %s", tt.inner, err, diff)
			}
			continue
		}
		bad, ok := errors.AsType[*RuleError](err)
		if !ok || bad.Place != tt.place || !strings.Contains(bad.Why, tt.why) {
			t.Errorf("%s: got %v, want %s: %s", tt.inner, err, tt.place, tt.why)
		}
	}
}

func TestNarrowChecksBoth(t *testing.T) {
	bad := Permissions{FS: Scope{Default: "x"}}
	for _, pair := range [][2]Permissions{{bad, {}}, {{}, bad}} {
		if _, err := Narrow(pair[0], pair[1], world); err == nil {
			t.Errorf("%+v was accepted", pair)
		}
	}
}

// In these the runtime hides a folder, makes another read-only, and allows everything
// else.
const runtimeFS = `{"network":"deny","fs":{"default":"allow","rules":[{"mode":"deny","paths":["/workspace/secret/**"]},
	{"mode":"deny","operations":[` + writes + `],"paths":["/workspace/lib/**"]}]}}`

func TestLowerRun(t *testing.T) {
	mounts := Plan{Hide: []Place{tree("/workspace/secret")}, ReadOnly: []Place{tree("/workspace/lib")}}
	with := func(change func(*Plan)) Plan {
		p := mounts
		change(&p)
		return p
	}
	needs := []Grant{{tree("/lib"), ops(looking)}, {file("/dev/null"), ops("read write")}, {file("/usr/bin/node"), ops("read execute")}}
	tests := []struct {
		inner string
		want  Plan
	}{
		{`{}`, mounts},
		{`{"childProcess":"deny","process":"deny"}`, with(func(p *Plan) {
			p.Spawn.Denied, p.NoSignals, p.NoInspect = true, true, true
		})},
		{`{"fs":"deny"}`, with(func(p *Plan) {
			p.Restricts, p.NoMetadata, p.NoRename, p.NoWatch, p.Grants = true, true, true, true, needs
		})},
		{`{"fs":{"rules":[{"mode":"allow","operations":["read","readdir"],"paths":["/workspace/a/**"]}]}}`, with(func(p *Plan) {
			p.Restricts, p.NoMetadata, p.NoRename, p.NoWatch = true, true, true, true
			p.Grants = append([]Grant{needs[0]}, Grant{file("/dev/null"), ops("read write")}, Grant{tree("/workspace/a"), ops("read readdir")}, needs[2])
		})},
	}
	for _, tt := range tests {
		got, err := LowerRun(parse(t, runtimeFS), parse(t, tt.inner), world)
		if err != nil {
			t.Errorf("%s: %v", tt.inner, err)
			continue
		}
		if diff := cmp.Diff(&tt.want, got, cmpopts.IgnoreFields(Plan{}, "Notes")); diff != "" {
			t.Errorf("%s: %s", tt.inner, diff)
		}
	}
}

func TestLowerRunRefuses(t *testing.T) {
	same := `{"mode":"deny","paths":["/workspace/secret/**"]},{"mode":"deny","operations":[` + writes + `],"paths":["/workspace/lib/**"]}`
	fs := func(rules string) string { return `{"fs":{"default":"allow","rules":[` + same + rules + `]}}` }
	tests := []struct{ inner, place, why string }{
		{fs(`,{"mode":"deny","paths":["/workspace/other/**"]}`), "fs.rules[2].paths[0]", "shares the runtime's mounts"},
		{fs(`,{"mode":"deny","operations":[` + writes + `],"paths":["/tmp/**"]}`), "fs.rules[2].paths[0]", "shares the runtime's mounts"},
		{fs(`,{"mode":"deny","operations":["execute"],"paths":["/tmp/**"]}`), "fs.rules[2].paths[0]", "shares the runtime's mounts"},
		{fs(`,{"mode":"deny","operations":[` + writes + `],"paths":["/**"]},{"mode":"allow","operations":[` + writes + `],"paths":["/workspace/a/**"]}`),
			"fs.rules[2]", "chmod where its runtime has it"},
		{`{"childProcess":{"rules":[{"mode":"allow","patterns":["/bin/sh"]}]}}`, "childProcess.rules[0]", "list of programs"},
	}
	for _, tt := range tests {
		_, err := LowerRun(parse(t, runtimeFS), parse(t, tt.inner), world)
		bad, ok := errors.AsType[*RuleError](err)
		if !ok || bad.Place != tt.place || !strings.Contains(bad.Why, tt.why) || !strings.Contains(bad.Why, "the runtime's own permissions") {
			t.Errorf("%s:\n got %v\nwant %s: %s", tt.inner, err, tt.place, tt.why)
		}
	}
	list := parse(t, `{"childProcess":{"rules":[{"mode":"allow","patterns":["/bin/sh"]}]}}`)
	plan, err := LowerRun(list, list, world)
	if err != nil || len(plan.Spawn.Only) != 1 {
		t.Errorf("the runtime's own list: %+v, %v", plan, err)
	}
}

// Errors name hosts and ports as rules do, never the samples.
func TestNarrowNamesNoProbes(t *testing.T) {
	all := Permissions{Network: Scope{Default: Allow}}
	_, err := LowerRun(Permissions{}, all, World{})
	if err == nil || strings.Contains(err.Error(), otherHost) || !strings.Contains(err.Error(), "on dns://*, which") {
		t.Errorf("%v", err)
	}
	_, other := portsOf(nil, all)
	if got := formatSample(fmt.Sprintf("tcp://%s:%d", otherHost, other), all); got != "tcp://*:*" {
		t.Error(got)
	}
}

// A run in a jail with egress has its runtime's localhost, or none.
func TestLowerRunBesideEgress(t *testing.T) {
	network := func(rules string) Permissions { return parse(t, `{"network":`+rules+`}`) }
	allow := func(patterns string) string {
		return `{"rules":[{"mode":"allow","patterns":[` + patterns + `]}]}`
	}
	for _, tt := range []struct {
		outer, inner string
		noLocalhost  bool
		inet         bool
		why          string // of an error
	}{
		{outer: `"allow"`, inner: `"allow"`, inet: true},
		{outer: `"allow"`, inner: `"deny"`},
		{outer: `"allow"`, inner: allow(`"tcp://a.test:80"`), noLocalhost: true, inet: true},
		{outer: `"allow"`, inner: allow(`"tcp://localhost:*","udp://localhost:*"`), inet: true},
		{outer: `"allow"`, inner: allow(`"tcp://localhost:*"`), why: "the same ports of localhost, or none"},
		{outer: allow(`"tcp://a.test:80","tcp://localhost:80"`), inner: allow(`"tcp://localhost:80"`), inet: true},
		{outer: allow(`"tcp://a.test:80","tcp://localhost:80"`), inner: allow(`"tcp://a.test:80"`), noLocalhost: true, inet: true},
		{outer: allow(`"tcp://a.test:80","tcp://localhost:80-90"`), inner: allow(`"tcp://localhost:80"`), why: "the same ports of localhost, or none"},
		{outer: allow(`"tcp://*.a.test:80"`), inner: allow(`"tcp://b.a.test:80"`), inet: true},
		{outer: allow(`"tcp://a.test:80"`), inner: allow(`"tcp://a.test:81"`), why: "which the runtime denies"},
		{outer: allow(`"tcp://*.a.test:80"`), inner: allow(`"tcp://*.test:80"`), why: "which the runtime denies"},
	} {
		plan, err := LowerRun(network(tt.outer), network(tt.inner), World{})
		switch {
		case tt.why != "":
			if err == nil || !strings.Contains(err.Error(), tt.why) {
				t.Errorf("%s in %s: %v", tt.inner, tt.outer, err)
			}
		case err != nil:
			t.Errorf("%s in %s: %v", tt.inner, tt.outer, err)
		case plan.Net.NoLocalhost != tt.noLocalhost || plan.Net.Inet != tt.inet || (plan.Net.Egress != nil) != tt.inet:
			t.Errorf("%s in %s: %+v", tt.inner, tt.outer, plan.Net)
		}
	}
}
