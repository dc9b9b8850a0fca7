package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"gaol/jail/cgroup"
	"gaol/rootfs"
	"gaol/runtime"
)

func main() {
	var c comparison
	dir := flag.String("dir", "bin/fidelity", "`folder` for the sources of Node's tests")
	only := flag.String("only", ".", "run the tests whose names match this `pattern`")
	flag.IntVar(&c.times, "times", 3, "how often each test runs in each way")
	flag.BoolVar(&c.defaults, "defaults", false, "with gaol's default limits")
	flag.IntVar(&c.every, "every", 1, "run one of so many tests")
	flag.IntVar(&c.workers, "workers", goruntime.NumCPU(), "how many tests run at once")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	ok, err := c.compare(ctx, *dir, *only)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "fidelity:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

// way is one way of running a test.
type way struct {
	name  string
	run   func(context.Context, nodeTest, int) (outcome, error)
	flags bool // runs tests that ask for flags
}

type comparison struct {
	times, workers, every int
	defaults              bool
}

// compare runs all, prints a report, and returns whether the bars are met.
func (c *comparison) compare(ctx context.Context, dir, only string) (ok bool, err error) {
	pattern, err := regexp.Compile(only)
	if err != nil {
		return false, err
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return false, err
	}
	image, err := defaultImage()
	if err != nil {
		return false, err
	}
	folder, version, err := source(dir, image.Node)
	if err != nil {
		return false, err
	}
	tests, err := readTests(folder, pattern)
	if err != nil {
		return false, err
	}
	tests = c.sample(tests)
	node, err := nodeOf(image.Root())
	if err != nil {
		return false, err
	}
	fmt.Printf("%d tests of Node %s, with Node %s, %d times each\n", len(tests), version, image.Node, c.times)
	plain := c.plainWay(node, folder)
	base, err := c.runAll(ctx, plain, tests)
	if err := errors.Join(err, removeParent()); err != nil {
		return false, err
	}
	tests = slices.DeleteFunc(tests, func(t nodeTest) bool { return !base[t.name].passed() })
	fmt.Printf("plain Node passes %d\n", len(tests))
	ok = true
	for _, w := range c.jailedWays(folder) {
		of := slices.Clone(tests)
		if !w.flags {
			of = slices.DeleteFunc(of, func(t nodeTest) bool { return len(t.flags) > 0 })
		}
		results, err := c.runAll(ctx, w, of)
		if err != nil {
			return false, err
		}
		ok = c.report(w.name, of, base, results) && ok
	}
	return ok, runtime.CloseIdle()
}

// sample returns one of every so many tests.
func (c *comparison) sample(tests []nodeTest) (list []nodeTest) {
	for i := 0; i < len(tests); i += max(c.every, 1) {
		list = append(list, tests[i])
	}
	return list
}

func defaultImage() (*rootfs.Image, error) {
	store, err := rootfs.Open(rootfs.DefaultDir)
	if err != nil {
		return nil, err
	}
	return store.Lookup("default")
}

// generous are limits that no test meets.
var generous = runtime.Limits{Memory: 4 << 30, CPUs: float64(goruntime.NumCPU()), Pids: 4096, OpenFiles: 16384, Disk: 16 << 30, Files: 1 << 20}

func (c *comparison) plainWay(node, folder string) way {
	limits := cgroup.Limits{Memory: generous.Memory, CPUs: generous.CPUs, Pids: generous.Pids}
	if c.defaults {
		d := runtime.DefaultLimits()
		limits = cgroup.Limits{Memory: d.Memory, CPUs: d.CPUs, Pids: d.Pids}
	}
	p := &plain{node: node, folder: folder, limits: limits}
	return way{"plain", p.run, true}
}

func (c *comparison) jailedWays(folder string) []way {
	limits := generous
	if c.defaults {
		limits = runtime.Limits{}
	}
	exec := &jailed{folder, runtime.LauncherExec, limits}
	zygote := &jailed{folder, runtime.LauncherZygote, limits}
	return []way{{"exec", exec.run, true}, {"zygote", zygote.run, false}}
}

// outcomes are the outcomes of one test.
type outcomes []outcome

func (list outcomes) passed() bool {
	return !slices.ContainsFunc(list, func(o outcome) bool { return !o.passed })
}

func (list outcomes) skipped() bool {
	return slices.ContainsFunc(list, func(o outcome) bool { return o.skipped })
}

// runAll runs each test, times over, and some at a time.
func (c *comparison) runAll(ctx context.Context, w way, tests []nodeTest) (map[string]outcomes, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	results := map[string]outcomes{}
	var mu sync.Mutex
	var workers sync.WaitGroup
	next := make(chan nodeTest)
	for worker := range c.workers {
		workers.Go(func() {
			for t := range next {
				o, err := w.run(ctx, t, worker)
				if err != nil {
					cancel(fmt.Errorf("%s: %s: %w", w.name, t.name, err))
					continue
				}
				mu.Lock()
				results[t.name] = append(results[t.name], o)
				mu.Unlock()
			}
		})
	}
	for time := range c.times {
		for _, t := range tests {
			if ctx.Err() == nil {
				next <- t
			}
		}
		fmt.Fprintf(os.Stderr, "%s: %d of %d times\n", w.name, time+1, c.times)
	}
	close(next)
	workers.Wait()
	return results, context.Cause(ctx)
}

// report prints what differs from plain Node, and returns whether the bar is met.
func (c *comparison) report(name string, tests []nodeTest, base, results map[string]outcomes) bool {
	bar := 0.999
	if c.defaults {
		bar = 0.995
	}
	var same, listed int
	for _, t := range tests {
		class := classify(base[t.name], results[t.name])
		reason, isKnown := known[t.name]
		switch {
		case class == "":
			same++
		case isKnown:
			listed++
			fmt.Printf("  %s %s: %s: known: %s\n", name, t.name, class, reason)
		default:
			fmt.Printf("  %s %s: %s\n%s", name, t.name, class, indent(lastTrouble(results[t.name])))
		}
	}
	counted := len(tests) - listed
	share := float64(same) / float64(max(counted, 1))
	fmt.Printf("%s: %d of %d pass, %.2f %%, beside %d known differences; the bar is %.1f %%\n", name, same, counted, 100*share, listed, 100*bar)
	return share >= bar && float64(listed) <= 0.002*float64(len(tests))
}

// classify returns how a test differs; "" if it does not.
func classify(base, results outcomes) string {
	failed := 0
	for _, o := range results {
		if !o.passed {
			failed++
		}
	}
	switch {
	case failed == len(results):
		return "fails"
	case failed > 0:
		return fmt.Sprintf("flaky, fails %d of %d times", failed, len(results))
	case results.skipped() && !base.skipped():
		return "skipped"
	}
	return ""
}

func lastTrouble(list outcomes) (text string) {
	for _, o := range list {
		text = cmp.Or(o.trouble, text)
	}
	return text
}

// indent shows the beginning of a text.
func indent(text string) string {
	const lines, width = 12, 200
	var out strings.Builder
	for n, line := range strings.Split(strings.TrimSpace(text), "\n") {
		if n == lines {
			break
		}
		fmt.Fprintf(&out, "      %.*s\n", width, line)
	}
	return out.String()
}
