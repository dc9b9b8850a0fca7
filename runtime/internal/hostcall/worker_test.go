package hostcall

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"gaol/internal/wire"
)

// fakeGuest is the other end of a control channel.
type fakeGuest struct {
	calls   *Dispatcher
	send    *os.File
	receive *os.File
	results *wire.Reader // reads receive
	value   string       // the last value
	done    chan struct{}
}

// newFakeGuest returns a guest whose calls are accepted by this process.
func newFakeGuest(t testing.TB, functions []Function, l Limits) *fakeGuest {
	t.Helper()
	from, send, err := os.Pipe()
	receive, to, err2 := os.Pipe()
	if err = errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	g := &fakeGuest{send: send, receive: receive, done: make(chan struct{})}
	g.calls = New(t.Context(), functions, withDefaults(l), NewWriter(to))
	frames := wire.NewReader(from, func(wire.Kind) int64 { return 1000 })
	go func() {
		for {
			kind, body, err := frames.Next()
			if err == nil && kind == wire.KindValue {
				g.value = string(body)
				continue
			}
			var call wire.Call
			if err == nil {
				call, err = wire.ParseCall(body)
			}
			if err == nil {
				err = accept(g.calls, call, nil)
			}
			if err != nil {
				from.Close()
				close(g.done)
				return
			}
		}
	}()
	t.Cleanup(func() {
		send.Close()
		g.calls.Stop()
		<-g.done
		to.Close()
		receive.Close()
	})
	return g
}

func (g *fakeGuest) write(t testing.TB, frames ...[]byte) {
	t.Helper()
	for _, f := range frames {
		if _, err := g.send.Write(f); err != nil {
			t.Fatal(err)
		}
	}
}

// end closes the guest's side and returns the calls.
func (g *fakeGuest) end() []Call {
	g.send.Close()
	<-g.done
	g.calls.Stop()
	list, _ := g.calls.Records()
	return list
}

func callFrame(kind wire.Kind, id, function uint32, args string) []byte {
	head := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, id), function)
	return wire.Append(nil, kind, head, []byte(args))
}

func (g *fakeGuest) ask(t testing.TB, id, function uint32, args string) {
	t.Helper()
	g.write(t, callFrame(wire.KindCall, id, function, args))
}

// answer reads the next result.
func (g *fakeGuest) answer(t testing.TB) (id uint32, text string) {
	t.Helper()
	if err := g.receive.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if g.results == nil {
		g.results = wire.NewReader(g.receive, func(wire.Kind) int64 { return 1000 })
	}
	kind, body, err := g.results.Next()
	if err != nil || kind != wire.KindAnswer {
		t.Fatalf("kind %d, %v", kind, err)
	}
	return binary.BigEndian.Uint32(body), string(body[5:])
}

func (g *fakeGuest) expect(t testing.TB, id uint32, text string) {
	t.Helper()
	if gotID, got := g.answer(t); gotID != id || !strings.Contains(got, text) {
		t.Fatalf("call %d: %s; want call %d: %s", gotID, got, id, text)
	}
}

// Calls of one function after another are answered, whatever the function does.
func TestAsk(t *testing.T) {
	g := newFakeGuest(t, (&callee{}).functions(), Limits{})
	for i := range uint32(100) {
		g.ask(t, i, echoFunction, fmt.Sprintf("[%d]", i))
		g.expect(t, i, fmt.Sprintf("[%d]", i))
	}
	for function, want := range map[uint32]string{goexitFunction: CodePanic, panicFunction: CodePanic, errorFunction: "EX"} {
		g.ask(t, 1, function, `[]`)
		g.expect(t, 1, want)
		g.ask(t, 2, echoFunction, `["after it"]`)
		g.expect(t, 2, "after it")
	}
	if list := g.end(); len(list) != 106 || list[0] == (Call{}) {
		t.Errorf("%d calls: %+v", len(list), list)
	}
}

// While functions take long, the channel is read, and other calls are answered.
func TestAskTakesLong(t *testing.T) {
	f := &callee{gate: make(chan struct{})}
	g := newFakeGuest(t, f.functions(), Limits{Concurrent: 3})
	for i := range uint32(3) {
		g.ask(t, i, gateFunction, `["slow"]`)
		if i < 2 {
			g.write(t, callFrame(wire.KindCall, 10+i, echoFunction, `["meanwhile"]`))
			g.expect(t, 10+i, "meanwhile")
		}
	}
	g.ask(t, 30, echoFunction, `["queued"]`)
	g.write(t, wire.Append(nil, wire.KindValue, []byte("1")))
	close(f.gate)
	got := map[uint32]bool{}
	for range 4 {
		id, _ := g.answer(t)
		got[id] = true
	}
	if !got[0] || !got[1] || !got[2] || !got[30] {
		t.Errorf("results: %v", got)
	}
	if list := g.end(); g.value != "1" || len(list) != 6 {
		t.Errorf("%s, %+v", g.value, list)
	}
}

// A call that still runs does not delay the end of the run.
func TestAskAtTheEnd(t *testing.T) {
	f := &callee{gate: make(chan struct{})}
	defer close(f.gate)
	g := newFakeGuest(t, f.functions(), Limits{})
	g.write(t, wire.Append(nil, wire.KindValue, []byte("1")))
	g.ask(t, 1, gateFunction, `[]`)
	if list := g.end(); g.value != "1" || len(list) != 1 || list[0].Error != Unanswered {
		t.Errorf("%s, %+v", g.value, list)
	}
}
