package test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"io/fs"

	"gaol/runtime"
)

const exhaustPath = "/workspace/exhaust/exhaust"

func (a attack) runtime(t testing.TB, launcher runtime.Launcher) *runtime.NodeRuntime {
	t.Helper()
	o := ours(runtime.Options{
		Limits:  runtime.Limits{Memory: a.memory},
		Folders: map[string]fs.FS{"/workspace/exhaust": fstest.MapFS{"exhaust": &fstest.MapFile{Data: a.program, Mode: 0o755}}},
	})
	o.Launcher = launcher
	rt, err := runtime.Create(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return rt
}

// start runs the program until it is killed. With the zygote it takes the place of a Node
// that was forked. What it prints goes to progress, line by line, the newest alone.
func (a attack) start(ctx context.Context, rt *runtime.NodeRuntime, mode string, launcher runtime.Launcher, progress chan string) (*runtime.Result, error) {
	var text string
	o := runtime.RunOptions{Timeout: a.duration + time.Minute, OnStdout: func(p []byte) {
		text += string(p)
		for {
			line, rest, complete := strings.Cut(text, "\n")
			if !complete {
				return
			}
			text = rest
			select { // the one that nobody has taken is out of date
			case <-progress:
			default:
			}
			progress <- line
		}
	}}
	args := []string{mode, fmt.Sprint(a.duration.Milliseconds())}
	if launcher == runtime.LauncherExec {
		return rt.Command(ctx, exhaustPath, args, o)
	}
	o.Args = append([]string{exhaustPath}, args...)
	return rt.Run(ctx, `process.removeAllListeners('warning'); process.execve(process.argv[2], process.argv.slice(2), process.env)`, o)
}

// exhausted is what came of making objects of one kind.
type exhausted struct {
	mode   objects
	count  string        // of the objects
	reason string        // the errno that stopped it, "-" if none did
	killed bool          // whether the kernel killed processes for memory
	cause  runtime.Cause // of the end of the run
	before kernelUse
	peak   kernelUse // what came to it, at the most
	lost   int64     // bytes that were uncharged, at the most
	left   int64     // bytes that were uncharged when the runtime was closed
}

// follow measures until the program is done, or its run has ended, and ends it.
func (e *exhausted) follow(t testing.TB, progress <-chan string, cancel func()) {
	const interval, ceiling, samplesAfter = 20 * time.Millisecond, 1536 << 20, 4
	defer func() {
		cancel()
		for range progress { // closed when the run has ended
		}
	}()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	last, rest := int64(0), -1
	for rest != 0 {
		select {
		case line, running := <-progress:
			if !running {
				return
			}
			if e.read(line) && rest < 0 {
				rest = samplesAfter
			}
		case <-tick.C:
			now := takeKernelUse(t).since(e.before)
			// The lesser of two in a row, as one reading may be off.
			e.lost = max(e.lost, min(last, now.uncharged()))
			if now.all-now.others > e.peak.all-e.peak.others {
				e.peak = now
			}
			if last = now.uncharged(); last > ceiling {
				t.Logf("%s: ended at %d MiB, lest the machine suffer", e.mode.name, last>>20)
				return
			}
			rest = max(rest-1, min(rest, -1))
		}
	}
}

// read takes a line of the program's and reports whether it is the last.
func (e *exhausted) read(line string) (done bool) {
	words := strings.Fields(line)
	if len(words) < 2 {
		return false
	}
	e.count, e.reason = words[0], words[1]
	e.killed = len(words) > 3
	return len(words) > 2
}

// fewer is the one of two with less that is uncharged.
func fewer(a, b exhausted) exhausted {
	if b.lost < a.lost {
		return b
	}
	return a
}

const tableHead = "| objects | most reached | slab grown | kernel memory grown | charged | not charged | left | verdict |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |"

// row is one of the table's. most is how many bytes may be uncharged.
func (e exhausted) row(most int64) string {
	mib := func(n int64) string { return fmt.Sprintf("%.1f", float64(n)/(1<<20)) }
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %s | %s |", e.mode.name, e.count, mib(e.peak.slab), mib(e.peak.all-e.peak.others),
		mib(e.peak.ours+e.peak.programs), mib(e.lost), mib(e.left), e.verdict(most))
}

// verdict says what bounds the objects.
func (e exhausted) verdict(most int64) string {
	ended := "the time of the test"
	if e.reason != "-" {
		ended = e.reason
	}
	if e.killed || e.cause == runtime.CauseMemory {
		ended = "killed for memory"
	}
	switch {
	case e.lost > most:
		return "HOLE"
	case e.count == "0" && e.reason != "-":
		return "refused: " + e.reason
	case e.peak.ours > e.lost:
		return "charged; " + ended
	}
	return "bounded: " + ended
}
