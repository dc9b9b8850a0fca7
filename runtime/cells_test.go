package runtime

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"gaol/internal/wire"
	"gaol/runtime/internal/guest"
)

func testCells(t *testing.T, onLog func(Log)) (c *cells, ends chan error) {
	t.Helper()
	ends = make(chan error, 1)
	return newCells(onLog, nil, func(err error) { ends <- err }), ends
}

func testCell(number uint32, o EvaluateOptions) *cell {
	return &cell{number: number, maxValue: o.MaxOutput, logs: newLogs(nil, o), done: make(chan struct{})}
}

var smallCell = EvaluateOptions{MaxOutput: 100, MaxLogs: 10, MaxLogLength: 2000}

func logBody(text string) []byte { return append([]byte{byte(wire.LevelLog)}, text...) }

func TestCellsMaxFrame(t *testing.T) {
	c, _ := testCells(t, nil)
	all := []wire.Kind{wire.KindValue, wire.KindLog, wire.KindFailure, wire.KindDone, wire.KindAnswer, wire.KindCell, wire.KindInterrupt, wire.KindNoValue, 0, 99}
	most := func() (list []int64) {
		for _, kind := range all {
			list = append(list, c.maxFrame(kind))
		}
		return list
	}
	idle := []int64{0, guest.MaxLogBytes(1000) + 1, 0, 0, 0, 0, 0, 0, 0, 0}
	if diff := cmp.Diff(idle, most()); diff != "" {
		t.Errorf("idle: (-want +got)\n%s", diff)
	}
	c.begin(testCell(1, smallCell))
	if diff := cmp.Diff([]int64{100, guest.MaxLogBytes(2000) + 1, maxFailure, 4, 0, 0, 0, maxNoValue, 0, 0}, most()); diff != "" {
		t.Errorf("with a cell: (-want +got)\n%s", diff)
	}
	if err := c.receive(wire.KindDone, []byte{0, 0, 0, 1}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(idle, most()); diff != "" {
		t.Errorf("after it: (-want +got)\n%s", diff)
	}
	c.begin(&cell{number: 2, maxValue: 5, done: make(chan struct{})})
	if diff := cmp.Diff([]int64{5, guest.MaxLogBytes(1000) + 1, maxFailure, 4, 0, 0, 0, 0, 0, 0}, most()); diff != "" {
		t.Errorf("with a request for completions: (-want +got)\n%s", diff)
	}
	if c.busy() {
		t.Error("busy with a request for completions")
	}
}

func TestCellsReceive(t *testing.T) {
	c, _ := testCells(t, nil)
	if c.busy() {
		t.Error("busy at first")
	}
	one := testCell(1, smallCell)
	c.begin(one)
	for _, f := range []struct {
		kind wire.Kind
		body string
	}{
		{wire.KindValue, `1`}, {wire.KindLog, "\x02line"}, {wire.KindValue, `2`}, {wire.KindFailure, `{"name":"E","message":"m","stack":""}`},
		{wire.KindNoValue, "why\xff"},
	} {
		if err := c.receive(f.kind, []byte(f.body)); err != nil {
			t.Fatalf("%d %s: %v", f.kind, f.body, err)
		}
	}
	for _, f := range []struct {
		kind wire.Kind
		body string
	}{
		{wire.KindValue, `{`}, {wire.KindLog, ""}, {wire.KindFailure, `[]`}, {wire.KindDone, "\x00\x00\x00\x02"}, {wire.KindDone, "\x00"},
	} {
		if err := c.receive(f.kind, []byte(f.body)); !errors.Is(err, wire.ErrFrame) {
			t.Errorf("%d %q: %v", f.kind, f.body, err)
		}
	}
	if !c.busy() || string(one.value) != `2` || one.failure == nil || one.failure.Name != "E" || one.noValue != "why\uFFFD" {
		t.Errorf("%s %+v", one.value, one.failure)
	}
	if err := c.receive(wire.KindDone, []byte{0, 0, 0, 1}); err != nil {
		t.Fatal(err)
	}
	<-one.done
	if logs, _ := one.logs.close(); c.busy() || len(logs) != 1 || logs[0].Text != "line" {
		t.Errorf("%v", logs)
	}
}

// Lines between two cells go to OnLog, or to the next cell within its bounds.
func TestCellsIdleLines(t *testing.T) {
	var logged []string
	for _, onLog := range []func(Log){nil, func(l Log) { logged = append(logged, l.Text) }} {
		c, _ := testCells(t, onLog)
		for range 3 {
			if err := c.receive(wire.KindLog, logBody("between")); err != nil {
				t.Fatal(err)
			}
		}
		c.add(fromStdout, LogStdout, "raw")
		one := testCell(1, EvaluateOptions{MaxLogs: 2, MaxLogLength: 4})
		c.begin(one)
		logs, more := one.logs.close()
		if onLog == nil && (len(logs) != 2 || logs[0].Text != "betw…" || !more) {
			t.Errorf("%+v %v", logs, more)
		}
		if onLog != nil && (len(logs) != 0 || more || strings.Join(logged, " ") != "between between between raw") {
			t.Errorf("%+v %v, logged %q", logs, more, logged)
		}
	}
}

// A cell cannot end before it has begun: its lines would then belong to no cell.
func TestCellsEarlyDone(t *testing.T) {
	c, _ := testCells(t, nil)
	if err := c.receive(wire.KindLog, logBody("between")); err != nil {
		t.Fatal(err)
	}
	early := int64(-1)
	one := testCell(1, EvaluateOptions{MaxLogs: 10, MaxLogLength: 10, OnLog: func(Log) { early = c.maxFrame(wire.KindDone) }})
	if c.begin(one); early != 0 || c.maxFrame(wire.KindDone) == 0 {
		t.Errorf("maximum size of done: %d bytes while the cell starts, %d afterwards", early, c.maxFrame(wire.KindDone))
	}
}

// Lines that arrive while OnLog gets earlier ones wait without using CPU time.
func TestCellsSlowOnLog(t *testing.T) {
	const slow = 300 * time.Millisecond
	c, _ := testCells(t, nil)
	c.add(fromConsole, LogLog, "first")
	var began, ended unix.Rusage
	var wg sync.WaitGroup
	one := testCell(1, EvaluateOptions{MaxLogs: 10, MaxLogLength: 10, OnLog: func(l Log) {
		if l.Text != "first" {
			return
		}
		wg.Go(func() { c.add(fromStdout, LogStdout, "second") })
		err := unix.Getrusage(unix.RUSAGE_SELF, &began)
		time.Sleep(slow)
		if err = errors.Join(err, unix.Getrusage(unix.RUSAGE_SELF, &ended)); err != nil {
			t.Error(err)
		}
	}})
	c.begin(one)
	wg.Wait()
	if spent := time.Duration(ended.Utime.Nano() - began.Utime.Nano()); spent > slow/10 {
		t.Errorf("used %v of CPU time", spent)
	}
	if logs, _ := one.logs.close(); len(logs) != 2 || logs[1].Text != "second" {
		t.Errorf("%+v", logs)
	}
}

// No line is lost when cells begin and end while lines arrive.
func TestCellsLinesAtOnce(t *testing.T) {
	c, _ := testCells(t, nil)
	c.bounds = guest.LogBounds{Logs: 1 << 20, LogLength: 1}
	c.idle.options.MaxLogs = 1 << 20
	const each = 5000
	var wg sync.WaitGroup
	for _, source := range []lineSource{fromStdout, fromStderr} {
		wg.Go(func() {
			for range each {
				c.add(source, LogStdout, "x")
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	got := 0
	for number, going := uint32(1), true; going; number++ {
		select {
		case <-done:
			going = false
		default:
		}
		one := testCell(number, EvaluateOptions{MaxLogs: 1 << 20, MaxLogLength: 1})
		c.begin(one)
		_ = c.receive(wire.KindDone, []byte{byte(number >> 24), byte(number >> 16), byte(number >> 8), byte(number)})
		c.detach(fromStdout)
		c.detach(fromStderr)
		logs, more := one.logs.close()
		if got += len(logs); more {
			t.Fatal("more lines than expected")
		}
	}
	if got != 2*each {
		t.Errorf("%d lines of %d", got, 2*each)
	}
}
