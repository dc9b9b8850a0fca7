package isolation

import (
	"errors"
	"slices"

	"gaol/policy"
)

// Name is the name of an isolation, as runtime.Isolation.String returns it.
type Name string

// The isolations.
const (
	Native Name = "native"
	OCI    Name = "oci"
)

// Names returns the names of all isolations.
func Names() []Name { return []Name{Native, OCI} }

// Feature is the name of something that an isolation may support.
type Feature string

// Features that not all isolations support, or that tests ask for.
const (
	Zygote Feature = "LauncherZygote"   // also Options.Zygote
	Park   Feature = "PoolOptions.Park" // needs Zygote

	OCIRuntime Feature = "Options.OCI"
)

// Permission returns the feature of an operation of package policy.
func Permission(scope string, op policy.Operation) Feature {
	return Feature(scope + "." + string(op))
}

// Support describes how an isolation supports a feature, or why it does not. One of its fields
// is set.
type Support struct {
	How  string // the mechanism
	Same bool   // the mechanism is that of Native
	Why  string // the reason why the feature is missing
}

// Row is the table's entry for features that are supported by the same mechanisms.
type Row struct {
	Features []Feature
	Native   Support
	OCI      Support
}

// In returns a row's entry for an isolation, with the text of Native where it is the same.
func (r Row) In(n Name) Support {
	switch {
	case n == Native || n == OCI && r.OCI.Same:
		return r.Native
	case n == OCI:
		return r.OCI
	}
	return Support{Why: "there is no such isolation"}
}

// Group is a part of the table.
type Group struct {
	Title string
	Rows  []Row
}

// Groups returns the whole table.
func Groups() []Group { return slices.Clone(table) }

// UnsupportedError says that an isolation lacks a feature. It wraps errors.ErrUnsupported.
type UnsupportedError struct {
	Isolation Name
	Feature   Feature
	Why       string
	Instead   Name // an isolation that supports the feature; "" if none does
}

// Error names the feature, the reason, and an isolation that supports it.
func (e *UnsupportedError) Error() string {
	text := "isolation " + string(e.Isolation) + " does not support " + string(e.Feature) + ": " + e.Why
	if e.Instead != "" {
		text += "; use isolation " + string(e.Instead)
	}
	return text
}

// Unwrap returns errors.ErrUnsupported.
func (e *UnsupportedError) Unwrap() error { return errors.ErrUnsupported }

// Check returns an *[UnsupportedError] if an isolation does not support a feature.
func Check(n Name, f Feature) error { return features.check(n, f) }

// CheckPermissions returns a *[policy.RuleError] for each rule that an isolation cannot
// enforce. They wrap *[UnsupportedError]; several are joined.
func CheckPermissions(n Name, p policy.Permissions) error { return features.checkPermissions(n, p) }

// Explain describes how an isolation enforces operations of a scope, where that differs from
// Native: once for each mechanism.
func Explain(n Name, scope string, ops []policy.Operation) (texts []string) {
	for _, op := range ops {
		row := features[Permission(scope, op)]
		if text := row.In(n).How; text != row.Native.How && !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return texts
}

// index has the rows of a table by feature.
type index map[Feature]Row

var features = newIndex(table)

func newIndex(table []Group) index {
	all := index{}
	for _, g := range table {
		for _, r := range g.Rows {
			for _, f := range r.Features {
				all[f] = r
			}
		}
	}
	return all
}

func (i index) check(n Name, f Feature) error {
	row, ok := i[f]
	if !ok {
		return &UnsupportedError{n, f, "the table of isolations does not list it", ""}
	}
	if s := row.In(n); s.Why != "" {
		return &UnsupportedError{n, f, s.Why, row.instead()}
	}
	return nil
}

// instead returns an isolation that supports the features of a row.
func (r Row) instead() Name {
	for _, n := range Names() {
		if r.In(n).Why == "" {
			return n
		}
	}
	return ""
}

func (i index) checkPermissions(n Name, p policy.Permissions) error {
	return p.RefuseOperations(func(scope string, op policy.Operation) error {
		return i.check(n, Permission(scope, op))
	})
}
