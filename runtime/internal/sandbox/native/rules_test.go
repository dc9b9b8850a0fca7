package native

import (
	"encoding/json"
	"errors"
	"testing"

	"gaol/jail/landlock"
	"gaol/policy"
)

// world is a tree with the guest's usual folders.
var world = policy.World{Own: []string{"/home/node", "/workspace"}, Shared: []string{"/tmp", "/var/tmp", "/dev/shm"}}

// The required Landlock versions are those in the table of package policy.
func TestKernelNeeded(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		abi        int
	}{
		{"default", `{}`, 0},
		{"open", `{"network":{"rules":[{"mode":"allow","patterns":["tcp://localhost:*","udp://localhost:*"]}]}}`, 0},
		{"all hidden", `{"fs":{"default":"allow","rules":[{"mode":"deny","paths":["/workspace/secret/**"]}]}}`, 0},
		{"read-only", `{"fs":{"default":"allow","rules":[{"mode":"deny","operations":["write","create_dir","rm","rename","symlink","chmod","truncate"],"paths":["/workspace/in/**"]}]}}`, 0},
		{"noexec", `{"fs":{"default":"allow","rules":[{"mode":"deny","operations":["execute"],"paths":["/tmp/**"]}]}}`, 0},
		{"no read", `{"fs":{"rules":[{"mode":"allow","operations":["write","create_dir","rm","rename","symlink","chmod","truncate"],"paths":["/workspace/**"]}]}}`, 3},
		{"ports", `{"network":{"rules":[{"mode":"allow","operations":["listen"],"patterns":["tcp://localhost:*"]}]}}`, 4},
		{"no spawn", `{"childProcess":"deny"}`, 0},
		{"programs", `{"childProcess":{"rules":[{"mode":"allow","patterns":["/usr/local/bin/node"]}]}}`, 3},
		{"signal", `{"process":{"default":"allow","rules":[{"mode":"deny","operations":["signal"]}]}}`, 6},
		{"inspect", `{"process":{"default":"allow","rules":[{"mode":"deny","operations":["inspect"]}]}}`, 2},
		{"env", `{"env":"deny"}`, 0},
		{"workspace", marshal(t, policy.Workspace("/workspace")), 3},
		{"strict", marshal(t, policy.Strict()), 6},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, err := policy.Parse([]byte(tc.text))
			if err != nil {
				t.Fatal(err)
			}
			plan, err := policy.Lower(p.Clone().Over(policy.Default()), world)
			if err != nil {
				t.Fatal(err)
			}
			abi := 0
			if r := ruleset(plan); r != nil {
				abi, _, _ = r.Needs()
			}
			if abi != tc.abi {
				t.Errorf("needs ABI %d, want %d", abi, tc.abi)
			}
		})
	}
}

// A plan that this machine cannot enforce is refused, one without Landlock never.
func TestSupported(t *testing.T) {
	if err := Supported(&policy.Plan{}); err != nil {
		t.Errorf("a plan without Landlock: %v", err)
	}
	abi, err := landlock.ABI()
	if err != nil {
		t.Fatal(err)
	}
	plan, err := policy.Lower(policy.Strict().Over(policy.Default()), world)
	if err != nil {
		t.Fatal(err)
	}
	_, old := errors.AsType[*landlock.ABIError](Supported(plan))
	if need, _, _ := ruleset(plan).Needs(); old != (need > abi) {
		t.Errorf("the plan needs ABI %d, the kernel has %d: refused %v", need, abi, old)
	}
}

func marshal(t *testing.T, p policy.Permissions) string {
	t.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
