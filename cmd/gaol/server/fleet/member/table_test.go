package member

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Ids of nodes.
const (
	own   = "ownownow"
	nodeA = "aaaaaaaa"
	nodeB = "bbbbbbbb"
	nodeC = "cccccccc"
)

// testTable is a table with a fake clock.
type testTable struct {
	*Table
	t        *testing.T
	clock    time.Time
	sequence uint64
	fenced   chan string
}

func newTable(t *testing.T) *testTable {
	f := make(chan string, 10)
	tt := &testTable{Table: NewTable(own, func(why string) { f <- why }), t: t, clock: time.Unix(1e9, 0), fenced: f}
	tt.now = func() time.Time { return tt.clock }
	return tt
}

// record returns the record of a node with the present protocol.
func record(id string) Record {
	return Record{ID: id, Address: id + ":8641", MinProtocol: Protocol, MaxProtocol: Protocol}
}

// put applies a record with a new sequence.
func (t *testTable) put(r Record) {
	t.t.Helper()
	t.sequence++
	r.Sequence = t.sequence
	t.putAgain(r)
}

func (t *testTable) putAgain(r Record) {
	t.t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.t.Fatal(err)
	}
	t.Apply(nodeKey+r.ID, text)
}

// renew applies new records of nodes.
func (t *testTable) renew(ids ...string) {
	t.t.Helper()
	for _, id := range ids {
		t.put(record(id))
	}
}

func (t *testTable) hint(id string, l Load) {
	t.t.Helper()
	text, err := json.Marshal(l)
	if err != nil {
		t.t.Fatal(err)
	}
	t.Hint(id, text)
}

func (t *testTable) dies(id, why string) {
	t.t.Helper()
	text, err := json.Marshal(Grave{Why: why})
	if err != nil {
		t.t.Fatal(err)
	}
	t.Apply(deadKey+id, text)
}

// pass lets time pass. The nodes renew their records each second.
func (t *testTable) pass(d time.Duration, ids ...string) {
	t.t.Helper()
	for end := t.clock.Add(d); t.clock.Before(end); {
		t.clock = t.clock.Add(min(time.Second, end.Sub(t.clock)))
		t.renew(ids...)
	}
}

func (t *testTable) wantState(id string, want State) {
	t.t.Helper()
	if got := t.Get(id); got.State != want || got.ID != id {
		t.t.Errorf("node %s is %s, want %s", got.ID, got.State, want)
	}
}

func (t *testTable) wantMissed(want ...string) {
	t.t.Helper()
	var got []string
	missed, _ := t.missed()
	for _, s := range missed {
		got = append(got, s.ID)
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.t.Errorf("missed %v, want %v", got, want)
	}
}

func TestStates(t *testing.T) {
	tt := newTable(t)
	tt.wantState(nodeA, Unknown)
	tt.renew(own, nodeA)
	tt.wantState(nodeA, Live)
	tt.pass(suspectAfter, own)
	tt.wantState(nodeA, Live)
	tt.pass(time.Millisecond, own)
	tt.wantState(nodeA, Suspect)
	tt.wantMissed()
	tt.hint(nodeA, Load{Busy: 0.5})
	tt.wantState(nodeA, Live)
	if busy := tt.Get(nodeA).Busy; busy != 0.5 {
		t.Errorf("it is %v busy", busy)
	}
	tt.pass(deadAfter, own)
	tt.wantState(nodeA, Suspect)
	tt.wantMissed()
	tt.pass(time.Millisecond, own)
	tt.wantMissed(nodeA)
	tt.renew(nodeA)
	tt.wantState(nodeA, Live)
	tt.wantMissed()

	r := record(nodeA)
	r.Draining = true
	tt.put(r)
	tt.wantState(nodeA, Draining)
	tt.pass(deadAfter+time.Second, own)
	tt.wantState(nodeA, Suspect)
	tt.wantMissed(nodeA)
	tt.Apply(nodeKey+nodeA, nil)
	tt.wantState(nodeA, Unknown)
	tt.wantMissed()
}

// The own node is neither suspect nor missed.
func TestOwnState(t *testing.T) {
	tt := newTable(t)
	tt.renew(own, nodeA)
	tt.pass(time.Minute, nodeA)
	tt.wantState(own, Live)
	tt.wantMissed()
}

// Without a change of any record, the engine is away, and not the nodes. Afterwards, nodes have time to renew their records.
func TestEngineAway(t *testing.T) {
	tt := newTable(t)
	tt.renew(own, nodeA, nodeB)
	tt.pass(8*time.Second, own)
	tt.wantMissed()
	tt.pass(time.Minute)
	tt.wantMissed()
	tt.renew(own) // the engine is back
	tt.wantMissed()
	tt.wantState(nodeA, Live)
	tt.pass(deadAfter, own, nodeB)
	tt.wantMissed()
	tt.pass(time.Second, own, nodeB)
	tt.wantMissed(nodeA)

	tt.pass(silence) // a short absence is not noticed
	tt.wantMissed(nodeA)
	tt.pass(time.Millisecond)
	tt.wantMissed()
}

// While the engine is away, only nodes with requests are missed.
func TestMissedInUse(t *testing.T) {
	tt := newTable(t)
	tt.renew(own, nodeA, nodeB)
	_, cancel := tt.While(t.Context(), nodeA)
	tt.pass(deadAfter)
	tt.wantMissed()
	tt.pass(time.Millisecond)
	tt.wantMissed(nodeA)
	if _, steady := tt.missed(); steady {
		t.Error("the engine is not away")
	}
	cancel()
	tt.wantMissed()
}

// Requests to nodes without contact end. If those are most of several nodes, the own network does not work.
func TestDisconnect(t *testing.T) {
	refused := errors.New("refused")
	for name, test := range map[string]struct {
		others []string
		failed map[string]error // of nodes that were probed
		silent []string         // and not probed yet
		broken bool             // the own network
	}{
		"nothing probed":         {others: []string{nodeA, nodeB}},
		"refused":                {others: []string{nodeA, nodeB}, failed: map[string]error{nodeA: refused, nodeB: refused}},
		"answers":                {others: []string{nodeA, nodeB}, failed: map[string]error{nodeA: nil, nodeB: nil}},
		"one of two":             {others: []string{nodeA, nodeB}, failed: map[string]error{nodeA: ErrNoContact, nodeB: refused}},
		"two of two":             {others: []string{nodeA, nodeB}, failed: map[string]error{nodeA: ErrNoContact, nodeB: ErrNoContact}, broken: true},
		"one of three":           {others: []string{nodeA, nodeB, nodeC}, failed: map[string]error{nodeC: ErrNoContact}},
		"two of three":           {others: []string{nodeA, nodeB, nodeC}, failed: map[string]error{nodeB: ErrNoContact, nodeC: ErrNoContact}, broken: true},
		"two are silent":         {others: []string{nodeA, nodeB, nodeC}, failed: map[string]error{nodeC: ErrNoContact}, silent: []string{nodeA}, broken: true},
		"the only one":           {others: []string{nodeA}, failed: map[string]error{nodeA: ErrNoContact}},
		"a node that was buried": {others: []string{nodeA, nodeB}, failed: map[string]error{nodeC: ErrNoContact}},
	} {
		t.Run(name, func(t *testing.T) {
			tt := newTable(t)
			tt.renew(append(test.others, own)...)
			tt.pass(suspectAfter + time.Millisecond)
			tt.renew(slices.DeleteFunc(slices.Clone(test.others), func(id string) bool { return slices.Contains(test.silent, id) })...)
			var probed []Status
			var failed []error
			requests := map[string]context.Context{}
			for _, id := range test.others {
				requests[id], _ = tt.While(t.Context(), id)
			}
			for id, err := range test.failed {
				probed, failed = append(probed, tt.Get(id)), append(failed, err)
			}
			if works := tt.disconnect(probed, failed); works == test.broken {
				t.Errorf("the network works: %t", works)
			}
			for id, ctx := range requests {
				if errors.Is(test.failed[id], ErrNoContact) {
					<-ctx.Done()
				}
				if ended := context.Cause(ctx) == ErrDead; ended != errors.Is(test.failed[id], ErrNoContact) {
					t.Errorf("the request to %s has ended: %t", id, ended)
				}
				if later, _ := tt.While(t.Context(), id); later.Err() != nil {
					t.Errorf("a later request to %s ends: %v", id, context.Cause(later))
				}
			}
		})
	}
}

// A record that a new watch sends again is not a sign of life.
func TestOldRecordAgain(t *testing.T) {
	tt := newTable(t)
	r := record(nodeA)
	r.Sequence = 7
	tt.putAgain(r)
	tt.pass(5*time.Second, own)
	tt.putAgain(r)
	tt.wantState(nodeA, Suspect)
	tt.pass(5*time.Second, own)
	tt.wantMissed(nodeA)
	r.Sequence = 1 // the node has started again
	tt.putAgain(r)
	tt.wantState(nodeA, Live)
}

// A node that is dead stays dead.
func TestDead(t *testing.T) {
	tt := newTable(t)
	tt.renew(own, nodeA, nodeB)
	tt.dies(nodeA, "it was silent")
	check := func() {
		t.Helper()
		tt.wantState(nodeA, Dead)
		if s := tt.Get(nodeA); s.Why != "it was silent" || !tt.IsDead(nodeA) {
			t.Errorf("%+v, dead: %v", s, tt.IsDead(nodeA))
		}
		if got := tt.Others(); !slices.Equal(got, []string{nodeB}) {
			t.Errorf("others %v", got)
		}
	}
	check()
	tt.renew(nodeA)
	check()
	tt.hint(nodeA, Load{})
	check()
	tt.Apply(nodeKey+nodeA, nil)
	check()
	tt.pass(time.Minute, own, nodeB)
	tt.wantMissed()
	check()
	var all []string
	for _, s := range tt.All() {
		all = append(all, s.ID+" "+string(s.State))
	}
	if want := []string{nodeA + " dead", nodeB + " live", own + " live"}; !slices.Equal(all, want) {
		t.Errorf("all: %v, want %v", all, want)
	}
	tt.Apply(deadKey+nodeA, nil) // after its certificate has expired
	tt.wantState(nodeA, Unknown)

	for i, text := range []string{"{}", "x", "", `{"why":7}`} { // a tombstone counts, whatever it contains
		id := strings.Repeat(string(rune('d'+i)), 8)
		tt.renew(id)
		tt.Apply(deadKey+id, []byte(text))
		if s := tt.Get(id); s.State != Dead || s.Why == "" {
			t.Errorf("tombstone %q: %+v", text, s)
		}
	}
	if len(tt.fenced) > 0 {
		t.Errorf("fenced: %s", <-tt.fenced)
	}
}

// The own node learns once that it is dead, though each new watch sends all tombstones.
func TestFenced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tt := newTable(t)
		tt.renew(own, nodeA)
		tt.dies(nodeA, "another")
		tt.dies(own, "why")
		tt.dies(own, "why")
		synctest.Wait()
		if why := <-tt.fenced; why != "why" || len(tt.fenced) > 0 {
			t.Errorf("reason %q, and %d others", why, len(tt.fenced))
		}
	})
}

func TestWhile(t *testing.T) {
	for name, end := range map[string]func(tt *testTable){
		"dead": func(tt *testTable) { tt.dies(nodeA, "why") },
		"left": func(tt *testTable) { tt.Apply(nodeKey+nodeA, nil) },
	} {
		tt := newTable(t)
		tt.renew(own, nodeA, nodeB)
		ctx, cancel := tt.While(t.Context(), nodeA)
		other, cancelOther := tt.While(t.Context(), nodeB)
		tt.pass(time.Minute, own)
		tt.renew(nodeA)
		if ctx.Err() != nil {
			t.Errorf("%s: ended while the node was not dead: %v", name, context.Cause(ctx))
		}
		end(tt)
		select {
		case <-ctx.Done():
		case <-time.After(time.Minute):
			t.Fatalf("%s: not ended", name)
		}
		if err := context.Cause(ctx); !errors.Is(err, ErrDead) {
			t.Errorf("%s: cause %v", name, err)
		}
		if other.Err() != nil {
			t.Errorf("%s: the context of another node has ended", name)
		}
		cancel()
		cancelOther()
		if err := context.Cause(other); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: cause of the canceled one: %v", name, err)
		}
		ctx, cancel = tt.While(t.Context(), nodeA)
		if err := context.Cause(ctx); !errors.Is(err, ErrDead) {
			t.Errorf("%s: afterwards: %v", name, err)
		}
		cancel()
	}
}

func TestOthers(t *testing.T) {
	tt := newTable(t)
	tt.renew(own, nodeB, nodeA, nodeC)
	older := record(nodeC)
	older.MinProtocol, older.MaxProtocol = Protocol+1, Protocol+1
	tt.put(older)
	if got := tt.Others(); !slices.Equal(got, []string{nodeA, nodeB}) {
		t.Errorf("others %v", got)
	}
}

// Records and hints that are not valid do no harm.
func TestHostile(t *testing.T) {
	tt := newTable(t)
	tt.renew(own, nodeA)
	good := Load{Busy: 0.5, Sandboxes: 3}
	tt.hint(nodeA, good)
	before := tt.All()
	huge := strings.Repeat("x", 1<<20)
	text := func(v any) []byte {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	big := record(nodeA)
	big.Version = huge
	for key, value := range map[string][]byte{
		nodeKey + nodeA: text(big), nodeKey + nodeB: text(record(nodeA)), nodeKey + "../../..": text(record("../../..")),
		nodeKey: text(record("")), nodeKey + huge: text(record(huge)), deadKey + "../": []byte("{}"), deadKey + huge: []byte("{}"),
		"": text(record("")), "other." + nodeB: text(record(nodeB)),
	} {
		tt.Apply(key, value)
	}
	for _, value := range []string{"", "x", "null", "[]", "{", "{}", `{"id":7}`, `{"id":"aaaaaaaa","processors":"many"}`, `{"id":"aaaaaaaa"`} {
		tt.Apply(nodeKey+nodeA, []byte(value))
	}
	for _, id := range []string{nodeA, nodeB, "", huge} {
		for _, value := range []string{
			"", "x", "[]", `{"busy":-1}`, `{"busy":1e999}`, `{"busy":"none"}`, `{"sandboxes":"?"}`, `{"busy":0,"x":"` + huge + `"}`,
		} {
			tt.Hint(id, []byte(value))
		}
	}
	if after := tt.All(); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("%.500v, want %.500v", after, before)
	}
	tt.hint(nodeA, Load{Busy: math.MaxFloat64})
	tt.Pick(0, true)
	tt.dies(nodeB, huge)
	if why := tt.Get(nodeB).Why; len(why) != maxWhy {
		t.Errorf("the reason has %d bytes", len(why))
	}
}
