package policy_test

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"

	"gaol/policy"
)

// recorded is a line of the file.
type recorded struct {
	Policy    json.RawMessage
	Decisions []decision
}

// decision is what secure-exec decides.
type decision struct {
	scope, operation, resource string
	allowed                    bool
}

// UnmarshalJSON reads an array of the four fields.
func (d *decision) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[]any{&d.scope, &d.operation, &d.resource, &d.allowed})
}

// The npm package translates secure-exec's permissions to gaol's. Its own tests record random permissions in
// gaol's language, and what secure-exec decides.
func TestTranslationDecidesAsSecureExec(t *testing.T) {
	file, err := os.Open("../cmd/npm/test/testdata/permissions.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	decided := map[bool]int{}
	for n := 1; lines.Scan(); n++ {
		var r recorded
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatalf("line %d: %v", n, err)
		}
		p, err := policy.Parse(r.Policy)
		if err != nil {
			t.Fatalf("line %d: %s: %v", n, r.Policy, err)
		}
		p = p.Over(policy.Default())
		for _, d := range r.Decisions {
			if got := p.Decide(d.scope, policy.Operation(d.operation), d.resource).Allowed; got != d.allowed {
				t.Errorf("line %d: %s: %s %s %s: allowed %v, want %v", n, r.Policy, d.scope, d.operation, d.resource, got, d.allowed)
			}
			decided[d.allowed]++
		}
	}
	if err := lines.Err(); err != nil || decided[true] < 200 || decided[false] < 200 {
		t.Errorf("decided %v, error %v", decided, err)
	}
}
