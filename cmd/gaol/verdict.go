package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"gaol/policy"
	"gaol/runtime"
)

// judge reads permissions and checks them. There is no verdict about what can't be read.
func judge(ctx context.Context, in io.Reader, name string, f policyFlags) (*verdict, error) {
	v := &verdict{Held: []held{}, Refused: []refused{}}
	p, err := readPolicy(ctx, in, name)
	if bad, ok := errors.AsType[*policy.FormatError](err); ok {
		v.Refused = []refused{{Place: bad.Place, Why: bad.Why}}
		return v, &advisedError{fmt.Errorf("policy check: %w", err), "`gaol policy schema` has the language"}
	}
	if err != nil {
		return nil, err
	}
	plan, err := runtime.CheckPermissions(runtime.Options{Permissions: p, Cwd: f.cwd, Launcher: runtime.Launcher(f.launcher)})
	switch {
	case plan != nil && err != nil:
		v.hold(plan)
		v.Refused = append(v.Refused, refused{Why: err.Error()})
		return v, fmt.Errorf("policy check: %s: this kernel can't hold it: %w", name, err)
	case err != nil:
		for _, err := range refusals(err) {
			v.refuse(err)
		}
		return v, &advisedError{fmt.Errorf("policy check: %s: refused", name), "see above"}
	}
	v.OK = true
	v.hold(plan)
	return v, nil
}

// verdict is what gaol policy check finds. Its shape is a promise to programs.
type verdict struct {
	OK      bool      `json:"ok"`
	Held    []held    `json:"held"`
	Refused []refused `json:"refused"`
}

// held is a scope's default or rule, and by what it is held.
type held struct {
	Rule string `json:"rule"` // fs.default, fs.rules[0]
	Text string `json:"text"`
}

// refused is what nothing holds.
type refused struct {
	Place   string `json:"place"` // fs.rules[0].paths[1]; "" for the whole
	Value   string `json:"value"` // what stands there, if it is one thing
	Why     string `json:"why"`
	Nearest string `json:"nearest"` // what to write in its place; may be ""
}

func (v *verdict) hold(plan *policy.Plan) {
	for _, n := range plan.Notes {
		rule := n.Scope + ".default"
		if n.Rule >= 0 {
			rule = fmt.Sprintf("%s.rules[%d]", n.Scope, n.Rule)
		}
		v.Held = append(v.Held, held{rule, n.Text})
	}
}

func (v *verdict) refuse(err error) {
	if rule, ok := errors.AsType[*policy.RuleError](err); ok {
		v.Refused = append(v.Refused, refused{rule.Place, rule.Value, rule.Why, rule.Nearest})
		return
	}
	v.Refused = append(v.Refused, refused{Why: err.Error()})
}

func (v *verdict) text() string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 3, ' ', 0)
	for _, h := range v.Held {
		fmt.Fprintf(w, "%s\t%s\n", h.Rule, h.Text)
	}
	_ = w.Flush() // it writes to memory
	for _, r := range v.Refused {
		fmt.Fprintln(&text, strings.TrimSpace("refused: "+r.Place+" "+quoteSome(r.Value)))
		fmt.Fprintln(&text, "  why:     "+r.Why)
		if r.Nearest != "" {
			fmt.Fprintln(&text, "  nearest: "+r.Nearest)
		}
	}
	return text.String()
}

func quoteSome(s string) string {
	if s == "" {
		return ""
	}
	return quote(s)
}
