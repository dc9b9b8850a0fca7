package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"gaol/policy"
	"gaol/rootfs"
	"gaol/runtime"
)

// Isolation returns the isolation that GAOL_TEST_ISOLATION chooses for the tests' runtimes.
// Tests of the command line have the native one. It panics if there is no such isolation.
func Isolation() (runtime.Isolation, runtime.OCIOptions) {
	i, oci, err := runtime.ParseIsolation(os.Getenv(IsolationVar))
	if err != nil {
		panic(IsolationVar + ": " + err.Error())
	}
	return i, oci
}

// HasAgent reports whether agents make the tests' sandboxes: in other processes, which have their descriptors and state.
func HasAgent() bool {
	i, _ := Isolation()
	return i == runtime.IsolationRemote || i == runtime.IsolationGVisor || i == runtime.IsolationMicroVM
}

// InMicroVM reports whether the tests' sandboxes are in virtual machines, whose processes this machine does not see.
func InMicroVM() bool {
	i, _ := Isolation()
	return i == runtime.IsolationMicroVM
}

// InGVisor reports whether the tests' sandboxes are in gVisor. docs/isolation.md lists what differs there.
func InGVisor() bool {
	i, _ := Isolation()
	return i == runtime.IsolationGVisor
}

// ReportsDenials reports whether results have the denials of filters of system calls.
func ReportsDenials() bool { return !InGVisor() }

// Denials returns the denials that results have: without those of filters if these are not reported.
func Denials(all ...runtime.Denial) (reported []runtime.Denial) {
	for _, d := range all {
		if ReportsDenials() || d.Source != runtime.SourceSeccomp {
			reported = append(reported, d)
		}
	}
	return reported
}

// RequireDenials skips the rest of the test if denials of filters are not reported. Then it fails unless a call is refused
// without a denial.
func RequireDenials(t testing.TB) {
	t.Helper()
	if ReportsDenials() {
		return
	}
	rt := CreatePermitted(t, policy.Permissions{ChildProcess: policy.Scope{Default: policy.Deny}})
	res := Run(t, rt, `import { spawnSync } from 'node:child_process'; __return(spawnSync('true').error.code)`, runtime.RunOptions{})
	if string(res.Value) != `"EPERM"` || len(res.Denials) > 0 {
		t.Fatalf("%s, %+v", res.Value, res.Denials)
	}
	t.Skip("refused without a denial, as expected")
}

// Reported returns n, the number of such denials, or 0 if they are not reported.
func Reported(n int) int {
	if !ReportsDenials() {
		return 0
	}
	return n
}

// missing returns the table's error if the isolation of the tests lacks a feature.
func missing(f runtime.Feature) error {
	i, _ := Isolation()
	return i.Check(f)
}

// requests are features that not all isolations support, and how a program asks for each.
var requests = map[runtime.Feature]func() error{
	runtime.FeatureZygote: func() error { return create(runtime.Options{Zygote: runtime.ZygoteOptions{Forks: 1}}) },
	runtime.FeaturePark:   func() error { return createPool(runtime.PoolOptions{Size: 1, Park: true}) },
	runtime.FeatureOCI:    func() error { return create(runtime.Options{OCI: runtime.OCIOptions{Runtime: "runc"}}) },
	runtime.FeatureAudit:  func() error { return create(runtime.Options{AuditDenials: true}) },
	runtime.FeaturePause: func() error {
		rt, err := runtime.Create(context.Background(), Options(runtime.Options{}))
		if err != nil {
			return err
		}
		if err = errors.Join(rt.Pause(context.Background()), rt.Close()); err != nil {
			err = &runtime.OptionError{Option: "none", Err: err}
		}
		return err
	},
	runtime.FeatureCommands: func() error { return create(runtime.Options{Commands: map[string]runtime.HostCommand{}}) },
	runtime.FeatureLandlock: func() error { return create(runtime.Options{Permissions: policy.Strict()}) },
	runtime.FeatureLocalhost: func() error {
		rt, err := runtime.Create(context.Background(), Options(runtime.Options{Permissions: policy.Permissions{Network: policy.Scope{Default: policy.Allow}}}))
		if err != nil {
			return err
		}
		hosts := policy.Scope{Default: policy.Deny, Rules: []policy.Rule{{Mode: policy.Allow, Patterns: []string{"tcp://api.example.com:80"}}}}
		_, err = rt.Run(context.Background(), "", runtime.RunOptions{Permissions: policy.Permissions{Network: hosts}})
		return errors.Join(err, rt.Close())
	},
	runtime.FeatureExec: func() error {
		o := Options(runtime.Options{Permissions: policy.Permissions{ChildProcess: policy.Scope{Default: policy.Deny}}})
		o.Launcher = runtime.LauncherExec
		_, err := runtime.Create(context.Background(), o)
		return err
	},
	runtime.FeatureMounts: func() error {
		return create(runtime.Options{Mounts: []runtime.Mount{{Source: "/tmp", Target: "/mnt"}}})
	},
	runtime.FeatureFiles: func() error { return create(runtime.Options{Limits: runtime.Limits{Files: 100}}) },
	runtime.FeatureDerive: func() error {
		return runtime.StepRunner{Options: Options(runtime.Options{})}.RunStep(context.Background(), &rootfs.Image{}, rootfs.StepCommand{}, nil)
	},
}

func create(o runtime.Options) error {
	rt, err := runtime.Create(context.Background(), Options(o))
	if err == nil {
		err = rt.Close()
	}
	return err
}

func createPool(p runtime.PoolOptions) error {
	pool, err := runtime.NewPool(Options(runtime.Options{}), p)
	if err == nil {
		err = pool.Close()
	}
	return err
}

// Needs reports whether the isolation of the tests supports a feature. If it does not, Needs fails
// the test unless asking for the feature is refused as in the table. A test begins with
//
//	if !harness.Needs(t, runtime.FeatureZygote) {
//		return
//	}
func Needs(t testing.TB, f runtime.Feature) bool {
	t.Helper()
	want := missing(f)
	if want == nil {
		return true
	}
	if err := checkRefusal(f, want); err != nil {
		t.Error(err)
	}
	return false
}

// Require is [Needs] for tests of one feature: it skips the rest of the test if the feature is refused. If it is, Create must also
// refuse each of the permissions that need it.
func Require(t testing.TB, f runtime.Feature, permissions ...policy.Permissions) {
	t.Helper()
	if Needs(t, f) {
		return
	}
	for _, p := range permissions {
		if err := checkRefused(create(runtime.Options{Permissions: p}), f, missing(f)); err != nil {
			t.Error(err)
		}
	}
	if !t.Failed() {
		t.Skip("refused as expected: ", missing(f))
	}
}

// RequireZygotes skips the rest of the test if the host does not see zygotes. Then it fails unless it sees none although one
// has forked a run.
func RequireZygotes(t testing.TB) {
	t.Helper()
	if !InGVisor() && !InMicroVM() {
		return
	}
	res := Run(t, CreateForking(t, runtime.Options{}), `__return(1)`, runtime.RunOptions{})
	if seen := Zygotes(t); res.Launcher != runtime.LauncherZygote || len(seen) > 0 {
		t.Fatalf("launcher %v, zygotes %v", res.Launcher, seen)
	}
	t.Skip("the host does not see zygotes, as expected")
}

// WantRefusedRun fails the test unless a run with permissions is refused for lack of a feature.
func WantRefusedRun(t testing.TB, rt *runtime.NodeRuntime, f runtime.Feature, p policy.Permissions) {
	t.Helper()
	_, err := rt.Run(t.Context(), "", runtime.RunOptions{Permissions: p})
	if err := checkRefused(err, f, missing(f)); err != nil {
		t.Error(err)
	}
}

// MainNeeding is [Main] for tests that all need a feature. If the isolation of the tests has
// not, it runs none of them, and fails unless asking for the feature is refused.
func MainNeeding(m *testing.M, f runtime.Feature) {
	want := missing(f)
	if want == nil {
		Main(m)
	}
	if err := checkRefusal(f, want); err != nil {
		os.Exit(fail(err))
	}
	fmt.Println("no tests:", want)
	os.Exit(0)
}

// checkRefusal returns an error unless asking for a feature is refused with the error want.
func checkRefusal(f runtime.Feature, want error) error {
	request, ok := requests[f]
	if !ok {
		return fmt.Errorf("harness: no request for %s is known", f)
	}
	return checkRefused(request(), f, want)
}

// checkRefused returns an error unless err is the refusal want.
func checkRefused(err error, f runtime.Feature, want error) error {
	if _, typed := errors.AsType[*runtime.OptionError](err); !typed || !errors.Is(err, runtime.ErrUnsupported) || !strings.Contains(err.Error(), want.Error()) {
		return errors.Join(fmt.Errorf("asking for %s is not refused with %q", f, want.Error()), err)
	}
	return nil
}
