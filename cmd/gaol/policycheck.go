package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"gaol/cmd/gaol/flags"
	"gaol/cmd/gaol/report"
	"gaol/cmd/gaol/source"
	"gaol/policy"
	"gaol/runtime"
)

// policyCheck is the result of gaol policy check. Programs rely on its shape.
type policyCheck struct {
	OK      bool          `json:"ok"`
	Held    []heldRule    `json:"held"`
	Refused []refusedRule `json:"refused"`
}

// heldRule is the default or a rule of a scope, and the mechanism that enforces it.
type heldRule struct {
	Rule string `json:"rule"` // such as fs.default or fs.rules[0]
	Text string `json:"text"`
}

// refusedRule cannot be enforced.
type refusedRule struct {
	Place   string `json:"place"` // such as fs.rules[0].paths[1]; "" for all permissions
	Value   string `json:"value"` // the text at Place, if it is a single value
	Why     string `json:"why"`
	Nearest string `json:"nearest"` // what to write instead; may be ""
}

// checkPermissions reads permissions from in and checks them. The result is nil if they
// cannot be read.
func checkPermissions(ctx context.Context, in io.Reader, name string, f policyFlags) (*policyCheck, error) {
	c := &policyCheck{Held: []heldRule{}, Refused: []refusedRule{}}
	p, err := source.Policy(ctx, in, name)
	if bad, ok := errors.AsType[*policy.FormatError](err); ok {
		c.Refused = []refusedRule{{Place: bad.Place, Why: bad.Why}}
		return c, report.Advise(fmt.Errorf("policy check: %w", err), "`gaol policy schema` has the language")
	}
	if err != nil {
		return nil, err
	}
	plan, err := runtime.CheckPermissions(runtime.Options{Permissions: p, Cwd: f.cwd, Launcher: f.launcher})
	c.OK = err == nil
	if plan != nil {
		c.addHeld(plan)
	}
	switch {
	case plan != nil && err != nil:
		c.Refused = append(c.Refused, refusedRule{Why: err.Error()})
		return c, fmt.Errorf("policy check: %s: this kernel cannot enforce it: %w", name, err)
	case err != nil:
		for _, err := range flags.Refusals(err) {
			c.addRefused(err)
		}
		return c, report.Advise(fmt.Errorf("policy check: %s: refused", name), "see above")
	}
	return c, nil
}

func (c *policyCheck) addHeld(plan *policy.Plan) {
	for _, n := range plan.Notes {
		rule := n.Scope + ".default"
		if n.Rule >= 0 {
			rule = fmt.Sprintf("%s.rules[%d]", n.Scope, n.Rule)
		}
		c.Held = append(c.Held, heldRule{rule, n.Text})
	}
}

func (c *policyCheck) addRefused(err error) {
	if rule, ok := errors.AsType[*policy.RuleError](err); ok {
		c.Refused = append(c.Refused, refusedRule{rule.Place, rule.Value, rule.Why, rule.Nearest})
		return
	}
	c.Refused = append(c.Refused, refusedRule{Why: err.Error()})
}

// text prints the result for people.
func (c *policyCheck) text() string {
	var held []string
	for _, h := range c.Held {
		held = append(held, h.Rule+"\t"+h.Text)
	}
	text := table(held)
	for _, r := range c.Refused {
		place := "refused: " + r.Place
		if r.Value != "" {
			place += " " + strconv.Quote(r.Value)
		}
		text += fmt.Sprintf("%s\n  why:     %s\n", strings.TrimSpace(place), r.Why)
		if r.Nearest != "" {
			text += "  nearest: " + r.Nearest + "\n"
		}
	}
	return text
}
