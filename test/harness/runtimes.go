package harness

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"testing"

	"go.uber.org/goleak"

	"gaol/policy"
	"gaol/runtime"
)

// ParentVar passes Parent to test binaries that a test starts.
const ParentVar = "GAOL_TEST_CGROUP"

// Parent is the cgroup below which this process makes its jails. No other process uses
// it, except those that tests start.
var Parent = cmp.Or(os.Getenv(ParentVar), fmt.Sprintf("/gaol-test-%d", os.Getpid()))

// Variables that replace a default of all tests. Programs that tests start read them,
// too. To test with another version of Node:
//
//	gaol image build --node 22 --name node-22
//	GAOL_TEST_IMAGE=node-22 go test ./test/...
const (
	StoreVar    = "GAOL_TEST_STORE"
	ImageVar    = "GAOL_TEST_IMAGE"
	LauncherVar = "GAOL_TEST_LAUNCHER"

	// A name as gaol run --isolation takes it, such as runc. See [Needs].
	IsolationVar = "GAOL_TEST_ISOLATION"

	RunsVar  = "GAOL_TEST_RUNS"  // how many runs the tests make that look for leaks
	KillsVar = "GAOL_TEST_KILLS" // how many hosts, or zygotes, the tests kill at random moments
)

// Count is the number in an environment variable that `make soak` sets, or else fallback.
func Count(t testing.TB, variable string, fallback int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return fallback
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Fewer is the number of repetitions of a test: all, or few with -short, which make test
// passes and make soak does not.
func Fewer(all, few int) int {
	if testing.Short() {
		return few
	}
	return all
}

// Some is a test's table. With -short it is every third row, as make test passes it; with LauncherVar,
// too, it is the others, as make soak passes both. So CI tests each row once.
func Some[T any](all []T) []T {
	if !testing.Short() {
		return all
	}
	var thirds, others []T
	for i, row := range all {
		if i%3 == 0 {
			thirds = append(thirds, row)
		} else {
			others = append(others, row)
		}
	}
	if os.Getenv(LauncherVar) != "" && len(others) > 0 {
		return others
	}
	return thirds
}

// SomeByName is Some for a table of named rows.
func SomeByName[T any](all map[string]T) map[string]T {
	some := map[string]T{}
	for _, name := range Some(slices.Sorted(maps.Keys(all))) {
		some[name] = all[name]
	}
	return some
}

// Launchers lists the launcher that LauncherVar chooses, or else all of the isolation, the default
// first. `make soak` runs the tests with the other one.
var Launchers = launchers()

func launchers() []runtime.Launcher {
	if missing(runtime.FeatureZygote) != nil {
		return []runtime.Launcher{runtime.LauncherExec}
	}
	all := []runtime.Launcher{runtime.LauncherZygote, runtime.LauncherExec}
	for i, l := range all {
		if l.String() == os.Getenv(LauncherVar) {
			return all[i : i+1]
		}
	}
	return all
}

// SomeLaunchers lists the launchers of tests that take long: all, or the default with -short.
func SomeLaunchers() []runtime.Launcher { return Launchers[:Fewer(len(Launchers), 1)] }

// Options completes the options of a test's runtime: its cgroup, and what the variables
// choose.
func Options(o runtime.Options) runtime.Options {
	o.CgroupParent = Parent
	o.Store = cmp.Or(o.Store, os.Getenv(StoreVar))
	o.Image = cmp.Or(o.Image, os.Getenv(ImageVar))
	if o.Isolation == runtime.IsolationNative && o.OCI == (runtime.OCIOptions{}) {
		o.Isolation, o.OCI = Isolation()
	}
	if len(Launchers) == 1 {
		o.Launcher = Launchers[0]
	}
	return o
}

// Forking is Options with the zygote, whatever launcher the variables choose.
func Forking(o runtime.Options) runtime.Options {
	o = Options(o)
	o.Launcher = runtime.LauncherZygote
	return o
}

// Create creates a runtime with Options, which is closed when the test ends.
func Create(t testing.TB, o runtime.Options) *runtime.NodeRuntime {
	t.Helper()
	return CreateExact(t, Options(o))
}

// CreateExact is Create without Options.
func CreateExact(t testing.TB, o runtime.Options) *runtime.NodeRuntime {
	t.Helper()
	rt, err := runtime.Create(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	closeAfter(t, rt)
	return rt
}

// CreateError returns the error of creating, and otherwise closing, a runtime with the
// options as they are.
func CreateError(t testing.TB, o runtime.Options) error {
	t.Helper()
	rt, err := runtime.Create(t.Context(), o)
	if err == nil {
		return rt.Close()
	}
	return err
}

// CreateForking creates a runtime with Forking, which is closed when the test ends.
func CreateForking(t testing.TB, o runtime.Options) *runtime.NodeRuntime {
	t.Helper()
	return CreateExact(t, Forking(o))
}

// CreatePermitted creates a runtime with permissions. Omitted scopes use the default.
func CreatePermitted(t testing.TB, p policy.Permissions) *runtime.NodeRuntime {
	t.Helper()
	return Create(t, runtime.Options{Permissions: p.Over(policy.Default())})
}

// CreateParked creates a runtime in which the process of the first run waits for its
// program.
func CreateParked(t testing.TB, o runtime.Options) *runtime.NodeRuntime {
	t.Helper()
	pool, err := runtime.NewPool(Forking(o), runtime.PoolOptions{Size: 1, Park: true})
	if err != nil {
		t.Fatal(err)
	}
	rt, err := pool.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := pool.Close(); err != nil {
		t.Error(err)
	}
	closeAfter(t, rt)
	return rt
}

func closeAfter(t testing.TB, rt *runtime.NodeRuntime) {
	t.Cleanup(func() {
		if err := rt.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Run runs a program, and ends the test if gaol could not.
func Run(t testing.TB, rt *runtime.NodeRuntime, code string, o runtime.RunOptions) *runtime.Result {
	t.Helper()
	res, err := rt.Run(t.Context(), code, o)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// Evaluate evaluates a snippet, and ends the test if gaol could not.
func Evaluate(t testing.TB, rt *runtime.NodeRuntime, code string, o runtime.EvaluateOptions) *runtime.Evaluation {
	t.Helper()
	e, err := rt.Evaluate(t.Context(), code, o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// NewPool makes a pool that is closed when the test ends, and then checks for leaks.
func NewPool(t testing.TB, o runtime.Options, p runtime.PoolOptions) *runtime.Pool {
	t.Helper()
	before := TakeInventory()
	idle := goleak.IgnoreCurrent()
	pool, err := runtime.NewPool(o, p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(pool.Close(), pool.Close()); err != nil {
			t.Error(err)
		}
		if err := runtime.CloseIdle(); err != nil {
			t.Error(err)
		}
		before.CheckLeaks(t)
		if err := goleak.Find(idle); err != nil {
			t.Error(err)
		}
	})
	return pool
}

// RunFromPool runs a program in a runtime from the pool, and closes the runtime.
func RunFromPool(t testing.TB, p *runtime.Pool, code string) *runtime.Result {
	t.Helper()
	rt, err := p.Get(t.Context())
	if err != nil {
		t.Error(err)
		return &runtime.Result{}
	}
	res, err := rt.Run(t.Context(), code, runtime.RunOptions{})
	if err = errors.Join(err, rt.Close()); err != nil {
		t.Error(err)
		return &runtime.Result{}
	}
	return res
}
