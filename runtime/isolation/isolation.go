package isolation

import (
	"errors"

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

// missing are the features that an isolation lacks, with the reason. Features that are not listed are supported.
var missing = map[Name]map[Feature]string{
	Native: {OCIRuntime: "it lacks an OCI runtime"},
	OCI: {
		Zygote: "each run is started by the OCI runtime, with a new Node",
		Park:   "no process can wait in the container for its program, because each run is started by the OCI runtime",
	},
}

// UnsupportedError reports that an isolation lacks a feature. It wraps errors.ErrUnsupported.
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
func Check(n Name, f Feature) error {
	why, lacks := missing[n][f]
	if !lacks {
		return nil
	}
	e := &UnsupportedError{n, f, why, ""}
	for _, other := range Names() {
		if _, lacks := missing[other][f]; !lacks && e.Instead == "" {
			e.Instead = other
		}
	}
	return e
}

// CheckPermissions returns a *[policy.RuleError] for each rule that an isolation cannot
// enforce. They wrap *[UnsupportedError]; several are joined.
func CheckPermissions(n Name, p policy.Permissions) error {
	return p.RefuseOperations(func(scope string, op policy.Operation) error { return Check(n, Permission(scope, op)) })
}
