package runtime

import (
	"errors"
	"strings"
	"testing"

	"gaol/policy"
)

func TestIsolationCheck(t *testing.T) {
	for _, tt := range []struct {
		isolation Isolation
		feature   Feature
		words     []string // of the error; nil: supported
	}{
		{IsolationNative, FeatureZygote, nil},
		{IsolationNative, FeaturePark, nil},
		{IsolationNative, FeatureOCI, []string{"isolation native does not support Options.OCI", "use isolation oci"}},
		{IsolationOCI, FeatureOCI, nil},
		{IsolationOCI, FeatureZygote, []string{"isolation oci does not support LauncherZygote", "with a new Node", "use isolation native"}},
		{IsolationNative, FeatureDerive, nil},
		{IsolationOCI, FeatureDerive, []string{"StepRunner", "use isolation native"}},
		{IsolationGVisor, FeatureZygote, nil},
		{IsolationGVisor, FeatureLandlock, []string{"isolation gvisor does not support", "Landlock", "use isolation native"}},
		{IsolationOCI, FeaturePark, []string{"PoolOptions.Park", "use isolation native"}},
	} {
		err := tt.isolation.Check(tt.feature)
		if (err == nil) != (tt.words == nil) || err != nil && !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%v, %s: %v", tt.isolation, tt.feature, err)
		}
		for _, want := range tt.words {
			if err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q in it", err, want)
			}
		}
	}
}

// Options that an isolation lacks are refused. The error names an isolation that has them.
func TestIsolationRefuses(t *testing.T) {
	pool := func(o Options) error {
		p, err := NewPool(o, PoolOptions{Park: true})
		if err == nil {
			err = p.Close()
		}
		return err
	}
	resolve := func(o Options) error {
		_, err := o.resolve()
		return err
	}
	check := func(o Options) error {
		_, err := CheckPermissions(o)
		return err
	}
	noPrograms := policy.Permissions{ChildProcess: policy.Scope{Default: policy.Deny}}
	if err := resolve(Options{Isolation: IsolationGVisor, Permissions: noPrograms}); err != nil {
		t.Errorf("forked runs without other programs: %v", err)
	}
	onlyTrue := policy.Permissions{ChildProcess: policy.Scope{Rules: []policy.Rule{{Mode: policy.Allow, Patterns: []string{"/usr/bin/true"}}}}}
	for name, tt := range map[string]struct {
		err    error
		option string
		words  string
	}{
		"a zygote":               {resolve(Options{Isolation: IsolationOCI, Zygote: ZygoteOptions{Forks: 1}}), "Zygote", "use isolation native"},
		"a parked run":           {pool(Options{Isolation: IsolationOCI}), "Park", "use isolation native"},
		"an OCI runtime":         {resolve(Options{OCI: OCIOptions{Runtime: "runc"}}), "OCI", "use isolation oci"},
		"an OCI runtime, policy": {check(Options{OCI: OCIOptions{Runtime: "crun"}}), "OCI", "use isolation oci"},
		"files in gVisor":        {resolve(Options{Isolation: IsolationGVisor, Limits: Limits{Files: 100}}), "Limits", "does not limit the number of files"},
		"Landlock in gVisor":     {resolve(Options{Isolation: IsolationGVisor, Permissions: policy.Strict()}), "Permissions", "lacks Landlock"},
		"commands in gVisor":     {resolve(Options{Isolation: IsolationGVisor, Commands: map[string]HostCommand{}}), "Commands", "does not notify"},
		"Node in gVisor":         {resolve(Options{Isolation: IsolationGVisor, Launcher: LauncherExec, Permissions: noPrograms}), "Permissions", "LauncherZygote forks it"},
		"programs without Node":  {resolve(Options{Isolation: IsolationOCI, Permissions: onlyTrue}), "Permissions", "list it: isolation oci does not support LauncherZygote"},
	} {
		option, ok := errors.AsType[*OptionError](tt.err)
		_, typed := errors.AsType[*UnsupportedError](tt.err)
		if !ok || !typed || option.Option != tt.option || !errors.Is(tt.err, ErrUnsupported) || !strings.Contains(tt.err.Error(), tt.words) {
			t.Errorf("%s: %v", name, tt.err)
		}
	}
	for _, o := range []Options{{Isolation: -1}, {Isolation: 7}, {Isolation: IsolationOCI, OCI: OCIOptions{Runtime: "docker"}}} {
		if err := resolve(o); err == nil || !strings.HasPrefix(err.Error(), "option ") {
			t.Errorf("%v: %v", o.Isolation, err)
		}
		if err := check(o); err == nil {
			t.Errorf("CheckPermissions takes the isolation %v with %q", o.Isolation, o.OCI.Runtime)
		}
	}
}

// Without a zygote the zero Launcher means LauncherExec.
func TestIsolationWithoutZygote(t *testing.T) {
	for iso, want := range map[Isolation]Launcher{IsolationNative: LauncherZygote, IsolationOCI: LauncherExec} {
		s, err := Options{Isolation: iso}.resolve()
		if err != nil || s.Launcher != want {
			t.Errorf("%v: %v, %v", iso, s.Launcher, err)
		}
	}
}

func TestParseIsolation(t *testing.T) {
	for name, want := range map[string]Options{
		"":                    {},
		"native":              {},
		"gvisor":              {Isolation: IsolationGVisor},
		"runc":                {Isolation: IsolationOCI, OCI: OCIOptions{Runtime: "runc"}},
		"crun":                {Isolation: IsolationOCI, OCI: OCIOptions{Runtime: "crun"}},
		"oci=/a/runc":         {Isolation: IsolationOCI, OCI: OCIOptions{Runtime: "/a/runc"}},
		"crun+systemd":        {Isolation: IsolationOCI, OCI: OCIOptions{Runtime: "crun", SystemdCgroup: true}},
		"oci=/a/runc+systemd": {Isolation: IsolationOCI, OCI: OCIOptions{Runtime: "/a/runc", SystemdCgroup: true}},
	} {
		iso, oci, err := ParseIsolation(name)
		if err != nil || iso != want.Isolation || oci != want.OCI {
			t.Errorf("%q: %v, %+v, %v", name, iso, oci, err)
		}
	}
	for _, name := range []string{"oci", "oci=", "oci=runc", "+systemd", "native+systemd", "runc+systemd+systemd", "oci=+systemd", "docker", "Native"} {
		if _, _, err := ParseIsolation(name); err == nil {
			t.Errorf("%q is accepted", name)
		}
	}
}
