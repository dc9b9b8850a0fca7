package audit

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// play feeds a reader without a socket with a script: "domain 1 pid 7", "end 1",
// "deny 1", "watch 7", "stop 7" and "wait" for longer than anything is held. It
// gives what the watchers were told, "7:1" being a denial of domain 1 to who
// watches 7.
func play(t *testing.T, script string) (told string, r *Reader) {
	t.Helper()
	r = &Reader{joiner: newJoiner()}
	var heard []string
	stops := map[int]func(){}
	for _, step := range strings.Split(script, "; ") {
		var a, b int
		switch {
		case scan(step, "domain %d pid %d", &a, &b):
			r.dispatch(message{1424, fmt.Sprintf("%sdomain=%x status=allocated mode=enforcing pid=%d", stamp, a, b)})
		case scan(step, "end %d", &a):
			r.dispatch(message{1424, fmt.Sprintf("%sdomain=%x status=deallocated denials=1", stamp, a)})
		case scan(step, "deny %d", &a):
			r.dispatch(message{1423, fmt.Sprintf("%sdomain=%x blockers=fs.refer", stamp, a)})
		case scan(step, "watch %d", &a):
			stops[a] = r.Watch(a, func(d Denial) {
				heard = append(heard, fmt.Sprintf("%d:%d", a, d.Domain))
				if d.PID != a {
					t.Errorf("%s: who watches %d was told of %d", script, a, d.PID)
				}
			})
		case scan(step, "stop %d", &a):
			stops[a]()
		case step == "wait":
			r.joiner.forget(time.Now().Add(2 * holding))
		default:
			t.Fatal(step)
		}
	}
	return strings.Join(heard, " "), r
}

func scan(step, format string, into ...any) bool {
	n, err := fmt.Sscanf(step, format, into[:strings.Count(format, "%d")]...)
	return err == nil && n == strings.Count(format, "%d")
}

func TestJoin(t *testing.T) {
	for _, tc := range []struct {
		name, script, want string
		unclaimed          uint64
	}{
		{"denial first", "watch 7; deny 1; domain 1 pid 7; deny 1", "7:1 7:1", 0},
		{"domain first", "watch 7; domain 1 pid 7; deny 1", "7:1", 0},
		{"two processes", "watch 7; watch 8; deny 1; deny 2; domain 2 pid 8; domain 1 pid 7; deny 2", "8:2 7:1 8:2", 0},
		{"two domains of one process", "watch 7; deny 1; domain 1 pid 7; deny 2; domain 2 pid 7", "7:1 7:2", 0},
		{"nobody's", "watch 7; deny 1; domain 1 pid 9; deny 1; wait", "", 2},
		{"began before", "watch 7; deny 1; wait", "", 1},
		{"watched a moment later", "deny 1; domain 1 pid 7; deny 1; watch 7; deny 1", "7:1 7:1 7:1", 0},
		{"ended a moment before", "deny 1; domain 1 pid 7; end 1; watch 7", "7:1", 0},
		{"watched too late", "deny 1; domain 1 pid 7; wait; watch 7; deny 1; wait", "", 2},
		{"after stop", "watch 7; deny 1; domain 1 pid 7; stop 7; deny 1; wait", "7:1", 1},
		{"pid again", "watch 7; deny 1; domain 1 pid 7; watch 7; deny 1; deny 2; domain 2 pid 7; wait", "7:1 7:2", 1},
		{"stop of who was replaced", "watch 7; stop 7; watch 7; stop 7; stop 7; deny 1; domain 1 pid 7; wait", "", 1},
		{"ended", "watch 7; deny 1; domain 1 pid 7; end 1; deny 1; wait", "7:1", 1},
		{"told twice", "watch 7; domain 1 pid 7; domain 1 pid 7; deny 1", "7:1", 0},
		{"nobody at all", "watch 0; deny 1; wait", "", 1},
	} {
		got, r := play(t, tc.script)
		if got != tc.want || r.Stats() != (Stats{Unclaimed: tc.unclaimed}) {
			t.Errorf("%s: told %q, want %q; %+v", tc.name, got, tc.want, r.Stats())
		}
		if tc.unclaimed > 0 && len(r.joiner.waiting)+len(r.joiner.recent) != 0 {
			t.Errorf("%s: something is left: %+v", tc.name, r.joiner)
		}
	}
}

// TestJoinIsBounded floods a reader with what nobody watches.
func TestJoinIsBounded(t *testing.T) {
	r := &Reader{joiner: newJoiner()}
	told := 0
	stop := r.Watch(7, func(Denial) { told++ })
	defer stop()
	const flood = 3 * maxRecent
	for id := 1; id <= flood; id++ {
		r.dispatch(message{1423, fmt.Sprintf("%sdomain=%x blockers=fs.refer", stamp, id)})
		pid := 8
		if id%100 == 0 {
			pid = 7
		}
		r.dispatch(message{1424, fmt.Sprintf("%sdomain=%x status=allocated mode=enforcing pid=%d", stamp, id, pid)})
	}
	j := r.joiner
	if len(j.waiting) > maxWaiting || len(j.recent) > maxRecent || len(j.domains) > maxRecent+maxDomains || told != maxDomains {
		t.Errorf("%d denials and %d domains, %d recent; %d were told", len(j.waiting), len(j.domains), len(j.recent), told)
	}
}

func TestMalformed(t *testing.T) {
	r := &Reader{joiner: newJoiner()}
	for _, m := range []message{{1423, "x"}, {1424, stamp}, {1300, "x"}} {
		r.dispatch(m)
	}
	if got := r.Stats(); got != (Stats{Malformed: 2}) {
		t.Errorf("%+v", got)
	}
}
