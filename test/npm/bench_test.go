package npm

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"gaol/runtime"
	"gaol/test/harness"
	"gaol/test/server/servertest"
)

func TestMain(m *testing.M) { harness.Main(m) }

// program prints, because each of the compared libraries can do that.
const program = `console.log(6 * 7)`

// options are for the SDK's sandboxes: their cgroup is as deep as the server's.
func options() runtime.Options {
	return runtime.Options{Launcher: runtime.LauncherZygote, CgroupParent: harness.Parent + "/tenants/sdk"}
}

// sdkRun makes a run by the SDK.
func sdkRun(ctx context.Context, rt *runtime.NodeRuntime) error {
	res, err := rt.Run(ctx, program, runtime.RunOptions{})
	if err == nil && string(res.Stdout) != "42\n" {
		err = fmt.Errorf("printed %q: %s", res.Stdout, res.Stderr)
	}
	return err
}

// BenchmarkRun compares a run of the npm package, on the socket of a server, with one of the SDK. They take turns.
func BenchmarkRun(b *testing.B) {
	rt := harness.CreateExact(b, options())
	d := startDriver(b, "gaol", servertest.Start(b, servertest.Options{}).Socket)
	compare(b, func() (time.Duration, error) {
		start := time.Now()
		err := sdkRun(b.Context(), rt)
		return time.Since(start), err
	}, func() (time.Duration, error) { return d.measure("run") })
}

// BenchmarkClients compares the runs per second of four programs that use the npm package with those of four
// goroutines that use the SDK.
func BenchmarkClients(b *testing.B) {
	const clients, each = 4, 5
	s := servertest.Start(b, servertest.Options{})
	var runtimes []*runtime.NodeRuntime
	var drivers []*driver
	for range clients {
		runtimes = append(runtimes, harness.CreateExact(b, options()))
		drivers = append(drivers, startDriver(b, "gaol", s.Socket))
	}
	compare(b, func() (time.Duration, error) {
		return atOnce(clients, func(i int) (err error) {
			for range each {
				err = errors.Join(err, sdkRun(b.Context(), runtimes[i]))
			}
			return err
		})
	}, func() (time.Duration, error) {
		return atOnce(clients, func(i int) error {
			_, err := drivers[i].measure(fmt.Sprintf("burst %d 1", each))
			return err
		})
	})
}

// atOnce measures n concurrent calls.
func atOnce(n int, do func(i int) error) (time.Duration, error) {
	errs := make(chan error, n)
	start := time.Now()
	for i := range n {
		go func() { errs <- do(i) }()
	}
	var all error
	for range n {
		all = errors.Join(all, <-errs)
	}
	return time.Since(start), all
}

// secureExec is the variable with a folder that has secure-exec in node_modules.
const secureExec = "GAOL_SECURE_EXEC"

// BenchmarkSecureExec compares gaol with secure-exec, which take turns. sdk is secure-exec in its figures.
func BenchmarkSecureExec(b *testing.B) {
	folder := os.Getenv(secureExec)
	if folder == "" {
		b.Skipf("%s names no folder with secure-exec: make bench-npm does", secureExec)
	}
	other := startDriver(b, "secure-exec", folder)
	own := startDriver(b, "gaol", servertest.Start(b, servertest.Options{}).Socket)
	for _, what := range []string{"create", "run", "burst 16 4"} {
		b.Run(what, func(b *testing.B) {
			compare(b, func() (time.Duration, error) { return other.measure(what) }, func() (time.Duration, error) { return own.measure(what) })
		})
	}
}

// measurement makes something once and measures it.
type measurement func() (time.Duration, error)

// compare lets two measurements take turns, and reports their medians and the ratio of these.
func compare(b *testing.B, other, npm measurement) {
	b.Helper()
	medians := takeTurns(b, other, npm)
	theirs, ours := medians[0], medians[1]
	b.ReportMetric(float64(theirs.Microseconds()), "other-µs")
	b.ReportMetric(float64(ours.Microseconds()), "npm-µs")
	b.ReportMetric(float64(ours)/float64(theirs), "ratio")
}

// takeTurns lets measurements take turns, and returns their medians.
func takeTurns(b *testing.B, sides ...measurement) (medians []time.Duration) {
	b.Helper()
	times := make([][]time.Duration, len(sides))
	for range 2 { // warm up
		for _, measure := range sides {
			if _, err := measure(); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ResetTimer()
	for b.Loop() {
		for _, k := range rand.Perm(len(sides)) { // none always follows the same one
			d, err := sides[k]()
			if err != nil {
				b.Fatal(err)
			}
			times[k] = append(times[k], d)
		}
	}
	for _, t := range times {
		medians = append(medians, median(t))
	}
	return medians
}

func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}
