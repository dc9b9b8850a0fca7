package policy

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
)

// MaxText is the maximum size of the JSON that [Parse] reads, in bytes.
const MaxText = 1 << 20

// Limits of a policy. 256 is more than people write by hand, and few enough for lowering,
// which compares every pattern with every place.
const (
	maxRules   = 256 // per scope
	maxEntries = 256 // patterns per scope, summed over its rules
)

// FormatError reports text or a value that is not a valid policy.
type FormatError struct {
	Place   string // fs.rules[1].paths[0]; "line 2, column 7" for text that is not JSON; "" for the whole
	Why     string
	Nearest string // a valid pattern to use instead; may be ""
}

// Error returns the place, the reason, and the nearest valid pattern.
func (e *FormatError) Error() string {
	place := e.Place
	if place != "" {
		place += ": "
	}
	return errorText(place, e.Why, e.Nearest)
}

// errorText formats an error about a place, which ends with a colon.
func errorText(place, why, nearest string) string {
	text := "permissions: " + place + why
	if nearest != "" {
		text += "; nearest: " + nearest
	}
	return text
}

func formatError(place, format string, args ...any) error {
	return &FormatError{Place: place, Why: fmt.Sprintf(format, args...)}
}

// Check returns a *[FormatError] for permissions that [Parse] would reject.
func (p Permissions) Check() error {
	for _, info := range scopes {
		if err := info.check(*info.of(&p)); err != nil {
			return err
		}
	}
	text, err := json.Marshal(p)
	if err != nil {
		return formatError("", "%v", err)
	}
	if len(text) > MaxText {
		return formatError("", "more than %d bytes as JSON", MaxText)
	}
	return nil
}

func (s *scopeInfo) check(sc Scope) error {
	if sc.Default != "" {
		if err := sc.Default.check(); err != nil {
			return formatError(s.name+".default", "%v", err)
		}
	}
	if sc.Rules != nil && len(sc.Rules) == 0 {
		return formatError(s.name+".rules", "empty list")
	}
	if len(sc.Rules) > maxRules {
		return formatError(s.name+".rules", "more than %d rules", maxRules)
	}
	entries := 0
	for i, r := range sc.Rules {
		place := RuleName(s.name, i)
		if entries += len(r.entries()); entries > maxEntries {
			return formatError(place, "more than %d %s in the scope", maxEntries, s.key)
		}
		if err := s.checkRule(place, r); err != nil {
			return err
		}
	}
	return nil
}

func (s *scopeInfo) checkRule(place string, r Rule) error {
	if r.Mode == "" {
		return formatError(place, "mode missing")
	}
	if err := r.Mode.check(); err != nil {
		return formatError(place+".mode", "%v", err)
	}
	if err := s.checkOperations(place+".operations", r.Operations); err != nil {
		return err
	}
	switch {
	case s.key != "paths" && r.Paths != nil:
		return formatError(place+".paths", "a rule of %s has none", s.name)
	case s.key != "patterns" && r.Patterns != nil:
		return formatError(place+".patterns", "a rule of %s has none", s.name)
	case s.key != "" && len(r.entries()) == 0:
		return formatError(place+"."+s.key, "missing or empty")
	}
	for i, text := range r.entries() {
		if err := cmp.Or(checkText(text), s.pattern(text)); err != nil {
			bad := &FormatError{Place: fmt.Sprintf("%s.%s[%d]", place, s.key, i), Why: fmt.Sprintf("%.80q: %v", text, err)}
			if s.name == Network {
				bad.Nearest = nearestEndpoint(text)
			}
			return bad
		}
	}
	if s.name == Network {
		return checkProtocols(place, r)
	}
	return nil
}

func (s *scopeInfo) checkOperations(place string, ops []Operation) error {
	if ops != nil && len(ops) == 0 {
		return formatError(place, "empty list")
	}
	if (Rule{Operations: ops}).decidesAll() {
		return nil
	}
	for i, op := range ops {
		at := fmt.Sprintf("%s[%d]", place, i)
		if op == everyOperation {
			return formatError(at, `"*" is not the only one`)
		}
		if !s.has(op.name()) {
			return formatError(at, "%.80q is not an operation of %s", op, s.name)
		}
		if slices.ContainsFunc(ops[:i], func(o Operation) bool { return o.name() == op.name() }) {
			return formatError(at, "%q is repeated", op)
		}
	}
	return nil
}

// checkProtocols rejects operations that none of the rule's patterns can match, and
// patterns that none of its operations can match: they would have no effect.
func checkProtocols(place string, r Rule) error {
	if r.decidesAll() {
		return nil
	}
	used := make([]bool, len(r.Operations))
	for n, text := range r.Patterns {
		e, _ := parseEndpoint(text)
		any := false
		for i, op := range r.Operations {
			if e.supports(op) {
				any, used[i] = true, true
			}
		}
		if !any {
			return formatError(fmt.Sprintf("%s.patterns[%d]", place, n), "%q: none of the rule's operations is about %s", text, e.proto)
		}
	}
	if i := slices.Index(used, false); i >= 0 {
		return formatError(fmt.Sprintf("%s.operations[%d]", place, i), "%q: none of the rule's patterns is about it", r.Operations[i])
	}
	return nil
}

func (m Mode) check() error {
	if m != Allow && m != Deny {
		return fmt.Errorf("%.80q: not allow or deny", m)
	}
	return nil
}
