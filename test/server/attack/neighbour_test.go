package attack

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gaol/test/harness"
	"gaol/test/tier"
)

// Bounds: of the neighbour's median beside an attack, and of what the server has more than at the start.
const (
	mostSlower      = 3
	mostDescriptors = 64
	mostMemory      = 64 << 20
	mostGarbage     = 256 << 20 // right after an attack: twice the tenant's quota bodyBytes, which Go may not have collected yet
)

// samples is how many requests a median is of, at least.
const samples = 15

// hostility is an attack that a tenant makes while another one works.
type hostility struct {
	name string

	// attack attacks until ctx ends, and returns when all of its workers have. It calls begun, once or
	// more, when the attack takes effect.
	attack func(ctx context.Context, t *testing.T, w *world, begun func())
}

var hostilities = []hostility{
	{"A1 responses forged by a guest", forgeResponses},
	{"A2 code that is exponential for a compiler", sendComplexCode},
	{"A3 egress to a server that does not read", egressUnread},
	{"A3 egress from a server that is not read", egressNotReading},
	{"A4 descriptors", takeDescriptors},
	{"A5 JSON of many values", sendManyValues},
	{"A6 schemas that take long", callSlowSchema},
	{"A7 unfinished messages of sessions", sendUnfinished},
	{"A8 page cache of the image", adviseCache},
	{"A9 odd bytes in request lines", sendOddLines},
}

// A neighbour of a hostile tenant works as if nearly alone, and the server has nothing left of the attack.
// GAOL_TEST_ATTACK is how long each attack takes.
func TestNeighbour(t *testing.T) {
	tier.Judge(t)
	duration, print := time.Second/2, t.Log
	if text := os.Getenv("GAOL_TEST_ATTACK"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		duration, print = d, func(row ...any) { fmt.Println(row...) }
	}
	w := startWorld(t)
	w.measure(t, 0) // starts the processes that stay warm
	print("| attack | alone | beside | ratio | descriptors left | MiB left | most MiB |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
	start := w.use(t)
	for _, h := range hostilities {
		t.Run(h.name, func(t *testing.T) { h.beside(t, w, start, duration, print) })
	}
	if left := w.settle(t, start, mostMemory); left.memory > mostMemory {
		t.Errorf("the server keeps %d MiB", left.memory>>20)
	}
}

// beside makes the attack beside the neighbour. Work of others on the machine may slow the neighbour
// down, too, so that a row that fails by its median is measured again.
func (h hostility) beside(t *testing.T, w *world, start use, duration time.Duration, print func(...any)) {
	var ratio float64
	for range 3 {
		logged := len(w.log.String())
		control := w.measure(t, 0)
		beside, most := h.once(t, w, duration)
		if t.Failed() {
			return
		}
		left := w.settle(t, start, mostGarbage)
		control = append(control, w.measure(t, 0)...)
		ratio = float64(median(beside)) / float64(median(control))
		print(fmt.Sprintf("| %s | %v | %v | %.2f | %d | %d | %d |", h.name, median(control).Round(time.Millisecond/10),
			median(beside).Round(time.Millisecond/10), ratio, left.descriptors, left.memory>>20, most.memory>>20))
		if left.descriptors > mostDescriptors || left.memory > mostGarbage {
			t.Errorf("the server keeps %d descriptors and %d MiB", left.descriptors, left.memory>>20)
		}
		if text := w.log.String()[logged:]; strings.Contains(text, "level=ERROR") || strings.Contains(text, "panic") {
			t.Errorf("the server's log:\n%.4000s", text)
		}
		if t.Failed() || ratio <= mostSlower {
			return
		}
	}
	t.Errorf("the neighbour takes %.2f times as long, the third time", ratio)
}

// once makes the attack, and returns how long the neighbour's requests took meanwhile, and what the
// server used at most.
func (h hostility) once(t *testing.T, w *world, duration time.Duration) (beside []time.Duration, most use) {
	ctx, cancel := context.WithCancel(t.Context())
	begun, ended := make(chan struct{}), make(chan struct{})
	begin := sync.OnceFunc(func() { close(begun) })
	go func() {
		defer close(ended)
		h.attack(ctx, t, w, begin)
	}()
	defer func() {
		cancel()
		select {
		case <-ended:
		case <-time.After(hangTime):
			t.Error("the attack's workers do not end")
			<-ended
		}
		w.attacker.CloseIdleConnections() // which the server would keep as long as the client
	}()
	before := w.use(t)
	select {
	case <-begun:
	case <-ended:
		t.Error("the attack has ended before it began")
		return nil, most
	case <-time.After(hangTime):
		t.Error("the attack does not begin")
		return nil, most
	}
	beside = w.measure(t, duration)
	now := w.use(t).since(before)
	select {
	case <-ended:
		t.Error("the attack has ended early")
	default:
	}
	return beside, now
}

// measure sends the neighbour's requests one after another for a time, and at least as many as a median
// needs. Each must have its own output.
func (w *world) measure(t *testing.T, duration time.Duration) (times []time.Duration) {
	t.Helper()
	for began := time.Now(); len(times) < samples || time.Since(began) < duration; {
		w.runs++
		text := fmt.Sprint("neighbour ", w.runs)
		body, err := json.Marshal(map[string]any{"code": fmt.Sprintf("console.log(%q)", text), "timeoutMs": hangTime.Milliseconds()})
		if err != nil {
			t.Fatal(err)
		}
		sent := time.Now()
		status, reply, err := post(t.Context(), w.neighbour, "/v1/run", string(body))
		var result struct{ Stdout string }
		if err != nil || status != 200 || json.Unmarshal(reply, &result) != nil || result.Stdout != text+"\n" {
			t.Fatalf("a request of the neighbour: %d, %v, %s", status, err, reply)
		}
		times = append(times, time.Since(sent))
	}
	return times
}

func median(times []time.Duration) time.Duration {
	return slices.Sorted(slices.Values(times))[len(times)/2]
}

// use counts the resources of the server's process.
type use struct{ descriptors, memory int64 }

func (u use) since(start use) use {
	return use{u.descriptors - start.descriptors, u.memory - start.memory}
}

func (w *world) use(t *testing.T) use {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/", w.process.Pid)
	files, err := os.ReadDir(dir + "fd")
	if err != nil {
		t.Fatal(err)
	}
	return use{int64(len(files)), harness.ProcNumber(t, dir+"status", "RssAnon:") << 10}
}

// settle waits until the server's use is within the bounds, for three minutes, and returns it. An idle Go
// program collects its garbage every two minutes.
func (w *world) settle(t *testing.T, start use, most int64) (left use) {
	t.Helper()
	over := int64(1)
	for minute := 0; minute < 3 && over > 0; minute++ {
		over = harness.Settle(0, func() int64 {
			left = w.use(t).since(start)
			return max(left.descriptors-mostDescriptors, left.memory-most)
		})
	}
	return left
}
