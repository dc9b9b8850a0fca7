package landlock

import (
	"errors"
	"fmt"
)

// MaxRules is how many rules a ruleset may have, of files and ports together.
const MaxRules = 4096

// Ruleset is what a domain denies and what it grants. The zero value denies
// nothing, and can't be made.
type Ruleset struct {
	// Handled are the rights that are denied but where a rule grants them. Where it
	// has any, renames and links from one folder to another are denied with EXDEV,
	// also where Refer is not among them: only a rule that grants Refer, for both
	// folders, allows them, and only where the file gains no right by it.
	Handled Access

	// Rules grant rights.
	Rules []Rule

	// ConnectTCP are the ports to which TCP sockets may connect. Nil: all. ABI 4.
	ConnectTCP *Ports

	// Signals keeps programs from signalling processes outside of the domain. ABI 6.
	Signals bool

	// AbstractSockets keeps programs from abstract unix sockets that were made
	// outside of the domain. ABI 6.
	AbstractSockets bool

	// Degraded leaves out what the kernel doesn't know, in place of an *ABIError.
	// Missing says what that is.
	Degraded bool
}

// Rule grants rights to a file or to all that is in a folder.
type Rule struct {
	Path     string // a guest's path: absolute, without symbolic links
	Tree     bool   // the folder there, and all in it; or else a file only
	Access   Access // of those handled; for a file, those that files have
	Optional bool   // it may be missing, and grants nothing then
}

// Ports are TCP ports. The zero value has none.
type Ports struct {
	Allowed []uint16
}

// need is a part of a ruleset and the ABI that it needs.
type need struct {
	what string
	abi  int
	drop func(*Ruleset)
}

// needs are all parts of r, by ABI.
func (r *Ruleset) needs() []need {
	var list []need
	add := func(asked bool, n need) {
		if asked {
			list = append(list, n)
		}
	}
	for _, right := range rights {
		bit := right.Bit
		add(r.Handled&bit != 0, need{right.Name, right.ABI, func(r *Ruleset) { r.dropAccess(bit) }})
	}
	add(r.ConnectTCP != nil, need{"connect_tcp", 4, func(r *Ruleset) { r.ConnectTCP = nil }})
	add(r.Signals, need{"signal scope", 6, func(r *Ruleset) { r.Signals = false }})
	add(r.AbstractSockets, need{"abstract unix socket scope", 6, func(r *Ruleset) { r.AbstractSockets = false }})
	return list
}

func (r *Ruleset) dropAccess(a Access) {
	r.Handled &^= a
	for i := range r.Rules {
		r.Rules[i].Access &^= a
	}
}

// Needs returns the least ABI that has all of r, the first release of Linux that
// has that ABI, and the part of r that needs it. ABI 0: r asks for nothing.
func (r *Ruleset) Needs() (abi int, linux, what string) {
	for _, n := range r.needs() {
		if n.abi > abi {
			abi, linux, what = n.abi, linuxOf(n.abi), n.what
		}
	}
	return abi, linux, what
}

// Missing names the parts of r that this kernel doesn't know and that Make leaves
// out if r is Degraded. Where there is no Landlock the error is that of ABI.
func (r *Ruleset) Missing() ([]string, error) {
	abi, err := ABI()
	if err != nil {
		return nil, err
	}
	return r.missing(abi), nil
}

func (r *Ruleset) missing(abi int) []string {
	var names []string
	for _, n := range r.needs() {
		if n.abi > abi {
			names = append(names, n.what)
		}
	}
	return names
}

// fit returns what can be made of r with an ABI: r as it is, or if it is Degraded
// a copy without what is missing.
func (r *Ruleset) fit(abi int) (*Ruleset, error) {
	need, linux, what := r.Needs()
	if need <= abi {
		return r, nil
	}
	if !r.Degraded {
		return nil, &ABIError{Have: abi, Need: need, Linux: linux, What: what}
	}
	fitted := *r
	fitted.Rules = append([]Rule(nil), r.Rules...)
	for _, n := range r.needs() {
		if n.abi > abi {
			n.drop(&fitted)
		}
	}
	return &fitted, nil
}

func (r *Ruleset) check() error {
	if unknown := r.Handled &^ All; unknown != 0 {
		return fmt.Errorf("landlock: rights %#x are not known", uint64(unknown))
	}
	count := len(r.Rules)
	if r.ConnectTCP != nil {
		count += len(r.ConnectTCP.Allowed)
	}
	if count > MaxRules {
		return fmt.Errorf("landlock: %d rules, of %d at most", count, MaxRules)
	}
	for _, rule := range r.Rules {
		if rule.Path == "" || rule.Path[0] != '/' {
			return &RuleError{rule.Path, errors.New("not absolute")}
		}
		if more := rule.Access &^ r.Handled; more != 0 {
			return &RuleError{rule.Path, fmt.Errorf("grants what is not handled: %v", more)}
		}
	}
	return nil
}

// RuleError says which rule can't be made. It wraps the cause.
type RuleError struct {
	Path string // the rule's
	Err  error
}

// Error reads "landlock: rule for /etc/passwd: is a folder".
func (e *RuleError) Error() string { return "landlock: rule for " + e.Path + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *RuleError) Unwrap() error { return e.Err }
