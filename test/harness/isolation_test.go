package harness

import (
	"errors"
	"testing"

	"gaol/runtime"
)

// Whatever an isolation lacks is refused when a program asks for it.
func TestMissingFeaturesAreRefused(t *testing.T) {
	for name, lacks := range map[string]int{"native": 1, "runc": 3, "crun": 3, "oci=/usr/bin/runc": 3} {
		t.Setenv(IsolationVar, name)
		refused := 0
		for f := range requests {
			if !Needs(t, f) {
				refused++
			}
		}
		if refused != lacks {
			t.Errorf("%s refuses %d features, want %d", name, refused, lacks)
		}
	}
}

// A feature that is not refused, or with another error, fails the test that needs it.
func TestMissingFeatureIsNotRefused(t *testing.T) {
	const f runtime.Feature = "a feature"
	want := runtime.IsolationOCI.Check(runtime.FeatureZygote)
	for _, err := range []error{nil, errors.ErrUnsupported, want, &runtime.OptionError{Option: "Zygote", Err: errors.ErrUnsupported}} {
		requests[f] = func() error { return err }
		if checkRefusal(f, want) == nil {
			t.Errorf("%v is accepted as a refusal", err)
		}
	}
	requests[f] = func() error { return &runtime.OptionError{Option: "Zygote", Err: want} }
	if err := checkRefusal(f, want); err != nil {
		t.Error(err)
	}
	delete(requests, f)
	if checkRefusal(f, want) == nil {
		t.Error("a feature without a request is accepted")
	}
}

// The options of tests have the isolation of the environment.
func TestOptionsHaveIsolation(t *testing.T) {
	t.Setenv(LauncherVar, "")
	for name, want := range map[string]runtime.Isolation{"": runtime.IsolationNative, "runc": runtime.IsolationOCI} {
		t.Setenv(IsolationVar, name)
		o := Options(runtime.Options{})
		if o.Isolation != want || o.OCI.Runtime != name {
			t.Errorf("%q: %v, %+v", name, o.Isolation, o.OCI)
		}
		if n := len(launchers()); (n == 1) != (want == runtime.IsolationOCI) {
			t.Errorf("%q: %d launchers", name, n)
		}
	}
}
