package runtime

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"gaol/internal/wire"
)

func (g *fakeGuest) ask(t testing.TB, id, function uint32, args string) {
	t.Helper()
	g.write(t, callFrameOf(wire.KindAsk, id, function, args))
}

// answer takes the next answer.
func (g *fakeGuest) answer(t testing.TB) (id uint32, text string) {
	t.Helper()
	if err := g.receive.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if g.answers == nil {
		g.answers = wire.NewReader(g.receive, func(wire.Kind) int64 { return 1000 })
	}
	kind, body, err := g.answers.Next()
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

// What is asked for is done by who reads, whatever the function does, and then goes on.
func TestAsk(t *testing.T) {
	g := newFakeGuest(t, 100, (&callee{}).functions())
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
	g.ask(t, 3, echoFunction, `[{"a":1,"a":1}]`)
	g.expect(t, 3, CodeArguments)
	c := g.control.calls
	c.mu.Lock()
	if c.workers > 0 || c.running > 0 {
		t.Errorf("%d other goroutines perform calls, %d go on", c.workers, c.running)
	}
	c.mu.Unlock()
	if res := g.end(); len(res.Calls) != 107 || res.Calls[0] == (Call{}) {
		t.Errorf("%d calls: %+v", len(res.Calls), res.Calls)
	}
}

// While what was asked for takes long, the channel is read all the same: by others, as
// often as that happens, up to CallLimits.Concurrent.
func TestAskTakesLong(t *testing.T) {
	f := &callee{gate: make(chan struct{})}
	g := newFakeGuestWithin(t, 100, f.functions(), CallLimits{Concurrent: 3})
	for i := range uint32(3) {
		g.ask(t, i, gateFunction, `["slow"]`)
		if i < 2 {
			g.write(t, callFrame(10+i, echoFunction, `["meanwhile"]`))
			g.expect(t, 10+i, "meanwhile")
			g.ask(t, 20+i, echoFunction, `["meanwhile too"]`)
			g.expect(t, 20+i, "meanwhile too")
		}
	}
	g.ask(t, 30, echoFunction, `["too many"]`)
	g.write(t, callFrame(31, echoFunction, `["too many"]`), valueFrame("1"))
	for began := time.Now(); time.Since(began) < 50*time.Millisecond; time.Sleep(time.Millisecond) {
		f.mu.Lock()
		if len(f.began) > 7 {
			t.Fatalf("%d functions were called, three of which go on", len(f.began))
		}
		f.mu.Unlock()
	}
	close(f.gate)
	got := map[uint32]bool{}
	for range 5 {
		id, _ := g.answer(t)
		got[id] = true
	}
	if !got[0] || !got[1] || !got[2] || !got[30] || !got[31] {
		t.Errorf("answers: %v", got)
	}
	g.ask(t, 40, echoFunction, `["at the end"]`)
	g.expect(t, 40, "at the end")
	if res := g.end(); string(res.Value) != "1" || len(res.Calls) != 10 {
		t.Errorf("%s, %+v", res.Value, res.Calls)
	}
}

// A run whose end comes while what it asked for goes on is not kept by it.
func TestAskAtTheEnd(t *testing.T) {
	f := &callee{gate: make(chan struct{})}
	defer close(f.gate)
	g := newFakeGuest(t, 100, f.functions())
	g.write(t, valueFrame("1"))
	g.ask(t, 1, gateFunction, `[]`)
	if res := g.end(); string(res.Value) != "1" || len(res.Calls) != 1 || res.Calls[0].Error != unanswered {
		t.Errorf("%s, %+v", res.Value, res.Calls)
	}
}
