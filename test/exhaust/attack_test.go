package exhaust

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"gaol/runtime"
	"gaol/test/harness"
)

const (
	exhaustPath   = "/workspace/exhaust/exhaust"
	exhaustMemory = 64 << 20 // of each run
)

// buildExhaust compiles the program that creates kernel objects.
func buildExhaust(t *testing.T) []byte {
	t.Helper()
	to := t.TempDir() + "/exhaust"
	cc := exec.Command("cc", append([]string{"-static", "-Os", "-s", "-o", to}, harness.Glob("testdata/*.c")...)...)
	if text, err := cc.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	program, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// make creates a runtime in which to create objects of one kind.
func (a attack) make(t *testing.T, name string, launcher runtime.Launcher) *exhausted {
	return &exhausted{name: name, launcher: launcher, rt: a.create(t, name, launcher)}
}

// create creates a runtime with as many rights as possible, and with an overlay mount.
func (a attack) create(t *testing.T, name string, launcher runtime.Launcher) *runtime.NodeRuntime {
	t.Helper()
	o := harness.Options(runtime.Options{
		Limits:      runtime.Limits{Memory: exhaustMemory},
		Folders:     map[string]fs.FS{"/workspace/exhaust": fstest.MapFS{"exhaust": &fstest.MapFile{Data: a.program, Mode: 0o755}}},
		Mounts:      []runtime.Mount{{Source: t.TempDir(), Target: "/merged", Access: runtime.CopyOnWrite}},
		UnixSockets: true, // mounts disable them by default
	})
	o.Launcher = launcher
	if strings.HasPrefix(name, "disk: ") {
		o.Limits.Disk, o.Limits.Files = 8<<30, 1<<20
	}
	return harness.CreateExact(t, o)
}

// exhausted is the result of creating objects of one kind.
type exhausted struct {
	name     string
	launcher runtime.Launcher
	rt       *runtime.NodeRuntime // used for nothing else
	count    string               // of objects; fewer exist if processes were killed
	reason   string               // the errno that stopped it, "-" if none did
	killed   bool                 // whether the kernel killed processes for memory
	cause    runtime.Cause        // of the run's end
	err      error                // why there is no result: nothing that a guest does may cause one
	peak     kernelUse            // the largest increase
	lost     int64                // the most bytes that no limit bounded
	left     int64                // bytes that were uncharged when the runtime was closed
}

// run creates objects and measures meanwhile. It closes the runtime.
func (a attack) run(t *testing.T, e *exhausted, before kernelUse) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	progress := make(chan string, 1)
	go func() {
		defer close(progress)
		res, err := a.start(ctx, e, progress)
		if res == nil {
			e.err = err
			t.Errorf("%s: %v", e.name, err)
			return
		}
		if e.cause = res.Cause; len(res.Stderr) > 0 {
			t.Errorf("%s: %s", e.name, res.Stderr)
		}
	}()
	e.follow(progress, before)
	cancel()
	for range progress { // until the run has ended
	}
	if err := e.rt.Close(); err != nil {
		t.Error(err)
	}
}

// start runs the program until it is killed. With the zygote, the program replaces a forked
// Node. progress receives the last line that the program has printed.
func (a attack) start(ctx context.Context, e *exhausted, progress chan string) (*runtime.Result, error) {
	var text string
	o := runtime.RunOptions{Timeout: a.duration + time.Minute, OnStdout: func(p []byte) {
		text += string(p)
		for {
			line, rest, complete := strings.Cut(text, "\n")
			if !complete {
				return
			}
			text = rest
			select { // drop the previous line, which is out of date
			case <-progress:
			default:
			}
			progress <- line
		}
	}}
	args := []string{e.name, fmt.Sprint(a.duration.Milliseconds())}
	if e.launcher == runtime.LauncherExec {
		return e.rt.Command(ctx, exhaustPath, args, o)
	}
	o.Args = append([]string{exhaustPath}, args...)
	return e.rt.Run(ctx, `process.removeAllListeners('warning'); process.execve(process.argv[2], process.argv.slice(2), process.env)`, o)
}

// follow measures until the program is done or its run has ended.
func (e *exhausted) follow(progress <-chan string, before kernelUse) {
	const interval, after = 15 * time.Millisecond, 4
	const ceiling = 1536 << 20 // protects the machine
	tick := time.NewTicker(interval)
	defer tick.Stop()
	last := []int64{0, 0, 0, 0}
	for left, done := after, false; left > 0; {
		select {
		case line, running := <-progress:
			if !running {
				return
			}
			done = e.read(line) || done
		case <-tick.C:
			now := takeKernelUse().since(before)
			last = append(last[1:], now.unbounded(exhaustMemory))
			e.lost = max(e.lost, slices.Min(last)) // a single reading may be wrong
			if now.all-now.others > e.peak.all-e.peak.others {
				e.peak = now
			}
			if done || now.uncharged() > ceiling {
				left--
			}
		}
	}
}

// read parses a line of the program's output and reports whether it is the last.
func (e *exhausted) read(line string) (done bool) {
	words := strings.Fields(line)
	if len(words) < 2 {
		return false
	}
	e.count, e.reason, e.killed = words[0], words[1], len(words) > 3
	return len(words) > 2
}

const tableHead = `| objects | most made | slab grown | kernel memory grown | charged | not bounded | left behind | verdict |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |`

// row is a row of the table, in MiB.
func (e *exhausted) row() string {
	mib := func(n int64) string { return fmt.Sprintf("%.1f", max(0, float64(n)/(1<<20))) }
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %s | %s |", e.name, e.count, mib(e.peak.slab), mib(e.peak.all-e.peak.others),
		mib(e.peak.ours+e.peak.programs), mib(e.lost), mib(e.left), e.verdict())
}

// verdict says what bounds the objects. "slow" are those that are created too slowly for
// a verdict.
func (e *exhausted) verdict() string {
	const few = 8 << 20
	ended := e.reason
	if e.killed || e.cause == runtime.CauseMemory {
		ended = "memory"
	}
	switch {
	case e.err != nil:
		return "HOLE: can't be ended"
	case e.lost > mostOf(e.name):
		return "HOLE"
	case e.lost > mostUnbounded:
		return "late: " + ended
	case e.count == "0" && e.reason != "-" && e.peak.ours < few:
		return "refused: " + e.reason
	case ended == "-" && e.lost > few:
		return "slow"
	case ended == "-":
		return "charged"
	case e.lost > few:
		return "bounded: " + ended
	}
	return "charged; " + ended
}
