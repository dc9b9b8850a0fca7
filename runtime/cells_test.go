package runtime

import (
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"gaol/internal/wire"
)

func testCells(t *testing.T, onLog func(Log)) (c *cells, ends chan error) {
	t.Helper()
	ends = make(chan error, 1)
	return newCells(onLog, newSources(), func(err error) { ends <- err }), ends
}

func testCell(number uint32, o EvaluateOptions) *cell {
	return &cell{number: number, limit: o.MaxOutput, notes: &notes{sources: newSources(), options: o}, done: make(chan struct{})}
}

var smallCell = EvaluateOptions{MaxOutput: 100, MaxLogs: 10, MaxLogLength: 2000}

func logBody(text string) []byte { return append([]byte{byte(wire.LevelLog)}, text...) }

func TestCellsMost(t *testing.T) {
	c, _ := testCells(t, nil)
	all := []wire.Kind{wire.KindValue, wire.KindLog, wire.KindFailure, wire.KindDone, wire.KindAnswer, wire.KindCell, wire.KindInterrupt, wire.KindNoValue, 0, 99}
	most := func() (list []int64) {
		for _, kind := range all {
			list = append(list, c.most(kind))
		}
		return list
	}
	idle := []int64{0, maxLog(1000) + 1, 0, 0, 0, 0, 0, 0, 0, 0}
	if diff := cmp.Diff(idle, most()); diff != "" {
		t.Errorf("idle: (-want +got)\n%s", diff)
	}
	c.begin(testCell(1, smallCell))
	if diff := cmp.Diff([]int64{100, maxLog(2000) + 1, maxFailure, 4, 0, 0, 0, maxNoValue, 0, 0}, most()); diff != "" {
		t.Errorf("with a cell: (-want +got)\n%s", diff)
	}
	if err := c.take(wire.KindDone, []byte{0, 0, 0, 1}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(idle, most()); diff != "" {
		t.Errorf("after it: (-want +got)\n%s", diff)
	}
	c.begin(&cell{number: 2, limit: 5, done: make(chan struct{})})
	if diff := cmp.Diff([]int64{5, maxLog(1000) + 1, maxFailure, 4, 0, 0, 0, maxNoValue, 0, 0}, most()); diff != "" {
		t.Errorf("with a question for names: (-want +got)\n%s", diff)
	}
	if c.busy() {
		t.Error("a question for names is none of the code's")
	}
}

func TestCellsTake(t *testing.T) {
	c, _ := testCells(t, nil)
	if c.busy() {
		t.Error("it is busy at first")
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
		if err := c.take(f.kind, []byte(f.body)); err != nil {
			t.Fatalf("%d %s: %v", f.kind, f.body, err)
		}
	}
	for _, f := range []struct {
		kind wire.Kind
		body string
	}{
		{wire.KindValue, `{`}, {wire.KindLog, ""}, {wire.KindFailure, `[]`}, {wire.KindDone, "\x00\x00\x00\x02"}, {wire.KindDone, "\x00"},
	} {
		if err := c.take(f.kind, []byte(f.body)); !errors.Is(err, wire.ErrFrame) {
			t.Errorf("%d %q: %v", f.kind, f.body, err)
		}
	}
	if !c.busy() || string(one.value) != `2` || one.failure == nil || one.failure.Name != "E" || one.noValue != "why\uFFFD" {
		t.Errorf("%s %+v", one.value, one.failure)
	}
	if err := c.take(wire.KindDone, []byte{0, 0, 0, 1}); err != nil {
		t.Fatal(err)
	}
	<-one.done
	if logs, _ := one.notes.close(); c.busy() || len(logs) != 1 || logs[0].Text != "line" {
		t.Errorf("%v", logs)
	}
}

// Lines between two cells are the next one's, within its own bounds, or go to who asks.
func TestCellsIdleLines(t *testing.T) {
	var told []string
	for _, onLog := range []func(Log){nil, func(l Log) { told = append(told, l.Text) }} {
		c, _ := testCells(t, onLog)
		for range 3 {
			if err := c.take(wire.KindLog, logBody("between")); err != nil {
				t.Fatal(err)
			}
		}
		c.lines[fromStdout].add(LogStdout, "raw")
		one := testCell(1, EvaluateOptions{MaxLogs: 2, MaxLogLength: 4})
		c.begin(one)
		logs, more := one.notes.close()
		if onLog == nil && (len(logs) != 2 || logs[0].Text != "betw…" || !more) {
			t.Errorf("%+v %v", logs, more)
		}
		if onLog != nil && (len(logs) != 0 || more || strings.Join(told, " ") != "between between between raw") {
			t.Errorf("%+v %v, told %q", logs, more, told)
		}
	}
}

// A cell can't end before it has begun: its lines would then have nowhere to go.
func TestCellsEarlyDone(t *testing.T) {
	c, _ := testCells(t, nil)
	if err := c.take(wire.KindLog, logBody("between")); err != nil {
		t.Fatal(err)
	}
	early := int64(-1)
	one := testCell(1, EvaluateOptions{MaxLogs: 10, MaxLogLength: 10, OnLog: func(Log) { early = c.most(wire.KindDone) }})
	if c.begin(one); early != 0 || c.most(wire.KindDone) == 0 {
		t.Errorf("its end may have %d bytes while it begins, and %d then", early, c.most(wire.KindDone))
	}
}

// Lines that come while those from between two cells are told wait, and do not keep a
// processor busy meanwhile.
func TestCellsSlowOnLog(t *testing.T) {
	const slow = 300 * time.Millisecond
	c, _ := testCells(t, nil)
	c.lines[fromConsole].add(LogLog, "first")
	var began, ended unix.Rusage
	var wg sync.WaitGroup
	one := testCell(1, EvaluateOptions{MaxLogs: 10, MaxLogLength: 10, OnLog: func(l Log) {
		if l.Text != "first" {
			return
		}
		wg.Go(func() { c.lines[fromStdout].add(LogStdout, "second") })
		err := unix.Getrusage(unix.RUSAGE_SELF, &began)
		time.Sleep(slow)
		if err = errors.Join(err, unix.Getrusage(unix.RUSAGE_SELF, &ended)); err != nil {
			t.Error(err)
		}
	}})
	c.begin(one)
	wg.Wait()
	if spent := time.Duration(ended.Utime.Nano() - began.Utime.Nano()); spent > slow/10 {
		t.Errorf("it took %v of a processor's time", spent)
	}
	if logs, _ := one.notes.close(); len(logs) != 2 || logs[1].Text != "second" {
		t.Errorf("%+v", logs)
	}
}

// Many lines from all sides, with cells that begin and end meanwhile: none is lost.
func TestCellsLinesAtOnce(t *testing.T) {
	c, _ := testCells(t, nil)
	c.bounds = logBounds{1 << 20, 1}
	c.idle.options.MaxLogs = 1 << 20
	const each = 5000
	var wg sync.WaitGroup
	for _, source := range []int{fromStdout, fromStderr} {
		wg.Go(func() {
			for range each {
				c.lines[source].add(LogStdout, "x")
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
		_ = c.take(wire.KindDone, []byte{byte(number >> 24), byte(number >> 16), byte(number >> 8), byte(number)})
		c.rest(fromStdout)
		c.rest(fromStderr)
		logs, more := one.notes.close()
		if got += len(logs); more {
			t.Fatal("there were more")
		}
	}
	if got != 2*each {
		t.Errorf("%d lines of %d", got, 2*each)
	}
}

func TestCellsEnd(t *testing.T) {
	for _, tc := range []struct{ with, want error }{{io.EOF, nil}, {io.ErrUnexpectedEOF, nil}, {wire.ErrFrame, wire.ErrFrame}} {
		c, ends := testCells(t, nil)
		c.end(tc.with)
		if got := <-ends; got != tc.want {
			t.Errorf("%v: %v", tc.with, got)
		}
	}
}

// pipeStream is a stream of a context with its other end.
func pipeStream(t *testing.T) (*cells, *cellStream, *os.File) {
	t.Helper()
	c, s, w := stillStream(t)
	go s.pump()
	return c, s, w
}

// stillStream is a pipeStream from which nobody reads yet.
func stillStream(t *testing.T) (*cells, *cellStream, *os.File) {
	t.Helper()
	c, _ := testCells(t, nil)
	s := newCellStream(c, fromStdout, LogStdout)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	s.from = &pipeReader{file: r}
	return c, s, w
}

// All that was written before a cell's end is the cell's, and what comes later is not.
func TestCellStreamFlush(t *testing.T) {
	c, s, w := pipeStream(t)
	for number := range uint32(50) {
		one := testCell(number, EvaluateOptions{MaxLogs: 10, MaxLogLength: 10})
		c.begin(one)
		s.bound(10)
		if _, err := io.WriteString(w, "first\nsecond is long\nrest"); err != nil {
			t.Fatal(err)
		}
		s.flush()
		var got []string
		logs, _ := one.notes.close()
		for _, l := range logs {
			got = append(got, l.Text)
		}
		if diff := cmp.Diff([]string{"first", "second is …", "rest"}, got); diff != "" {
			t.Fatalf("(-want +got)\n%s", diff)
		}
	}
	if _, err := io.WriteString(w, "after\n"); err != nil {
		t.Fatal(err)
	}
	s.flush()
	next := testCell(99, smallCell)
	c.begin(next)
	if logs, _ := next.notes.close(); len(logs) != 1 || logs[0].Text != "after" {
		t.Errorf("%v", logs)
	}
}

// At the process's end, all is taken in, and nothing waits for who else may write.
func TestCellStreamEnd(t *testing.T) {
	c, s, w := pipeStream(t)
	one := testCell(1, smallCell)
	c.begin(one)
	if _, err := io.WriteString(w, "last words"); err != nil {
		t.Fatal(err)
	}
	s.end() // w is still open, as by a child that got away
	<-s.gone
	s.flush() // which has nothing to do any more
	if logs, _ := one.notes.close(); len(logs) != 1 || logs[0].Text != "last words" || string(s.tail) != "last words" {
		t.Errorf("%v, %q", logs, s.tail)
	}
}

// What a process writes while a cell's end is flushed, before it ends, is taken in, too.
func TestCellStreamEndAmidFlush(t *testing.T) {
	c, s, w := stillStream(t)
	flushing, goOn := make(chan struct{}, 1), make(chan struct{})
	c.begin(testCell(1, EvaluateOptions{MaxLogs: 10, MaxLogLength: 10, OnLog: func(Log) {
		flushing <- struct{}{}
		<-goOn
	}}))
	if _, err := io.WriteString(w, "first\n"); err != nil {
		t.Fatal(err)
	}
	_ = s.from.file.SetReadDeadline(past) // as flush does
	go s.pump()
	<-flushing
	if _, err := io.WriteString(w, "last words"); err != nil {
		t.Fatal(err)
	}
	s.end()
	close(goOn)
	if <-s.gone; string(s.tail) != "first\nlast words" {
		t.Errorf("%q", s.tail)
	}
}
