package audit

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

// play executes a script on a reader without a socket: "domain 1 pid 7", "end 1",
// "deny 1", "watch 7", "stop 7" and "wait", for longer than the retention. It returns the
// delivered denials: "7:1" is a denial of domain 1 to the watcher of 7.
func play(t *testing.T, script string) (delivered string, r *Reader) {
	t.Helper()
	r = newReader()
	var got []string
	stops := map[int]func(){}
	for _, step := range strings.Split(script, "; ") {
		var a, b int
		switch {
		case scan(step, "domain %d pid %d", &a, &b):
			r.dispatch(message(1424, fmt.Sprintf("%sdomain=%x status=allocated mode=enforcing pid=%d", stamp, a, b)))
		case scan(step, "end %d", &a):
			r.dispatch(message(1424, fmt.Sprintf("%sdomain=%x status=deallocated denials=1", stamp, a)))
		case scan(step, "deny %d", &a):
			r.dispatch(message(1423, fmt.Sprintf("%sdomain=%x blockers=fs.refer", stamp, a)))
		case scan(step, "watch %d", &a):
			stops[a] = r.Watch(a, func(d Denial) {
				got = append(got, fmt.Sprintf("%d:%d", a, d.Domain))
				if d.PID != a {
					t.Errorf("%s: the watcher of %d got a denial of %d", script, a, d.PID)
				}
			})
		case scan(step, "stop %d", &a):
			stops[a]()
		case step == "wait":
			for id, from := range r.domains {
				r.domains[id] = origin{from.pid, from.at.Add(-2 * retention)}
			}
			r.expire(time.Now().Add(2 * retention))
		default:
			t.Fatal(step)
		}
	}
	return strings.Join(got, " "), r
}

func scan(step, format string, into ...any) bool {
	n, err := fmt.Sscanf(step, format, into[:strings.Count(format, "%d")]...)
	return err == nil && n == strings.Count(format, "%d")
}

func TestJoin(t *testing.T) {
	for _, tc := range []struct {
		name, script, want string
	}{
		{"denial first", "watch 7; deny 1; domain 1 pid 7; deny 1", "7:1 7:1"},
		{"domain first", "watch 7; domain 1 pid 7; deny 1", "7:1"},
		{"two processes", "watch 7; watch 8; deny 1; deny 2; domain 2 pid 8; domain 1 pid 7; deny 2", "8:2 7:1 8:2"},
		{"two domains of one process", "watch 7; deny 1; domain 1 pid 7; deny 2; domain 2 pid 7", "7:1 7:2"},
		{"not watched", "watch 7; deny 1; domain 1 pid 9; deny 1; wait", ""},
		{"domain from before Open", "watch 7; deny 1; wait", ""},
		{"watched in time", "deny 1; domain 1 pid 7; deny 1; watch 7; deny 1", "7:1 7:1 7:1"},
		{"ended before the watch", "deny 1; domain 1 pid 7; end 1; watch 7", "7:1"},
		{"watched too late", "deny 1; domain 1 pid 7; wait; watch 7; deny 1; wait", ""},
		{"after stop", "watch 7; deny 1; domain 1 pid 7; stop 7; deny 1; wait", "7:1"},
		{"pid reused", "watch 7; deny 1; domain 1 pid 7; watch 7; deny 1; deny 2; domain 2 pid 7; wait", "7:1 7:2"},
		{"stop of a replaced watch", "watch 7; stop 7; watch 7; stop 7; stop 7; deny 1; domain 1 pid 7; wait", ""},
		{"ended", "watch 7; deny 1; domain 1 pid 7; end 1; deny 1; wait", "7:1"},
		{"domain recorded twice", "watch 7; domain 1 pid 7; domain 1 pid 7; deny 1", "7:1"},
		{"pid 0", "watch 0; deny 1; wait", ""},
	} {
		got, r := play(t, tc.script)
		if got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
		if strings.HasSuffix(tc.script, "wait") && len(r.waiting) != 0 {
			t.Errorf("%s: left: %+v", tc.name, r.waiting)
		}
	}
}

// TestJoinIsBounded floods a reader with denials of processes that are not watched.
func TestJoinIsBounded(t *testing.T) {
	r := newReader()
	delivered := 0
	stop := r.Watch(7, func(Denial) { delivered++ })
	defer stop()
	const flood = 3 * maxDomains
	for id := 1; id <= flood; id++ {
		r.dispatch(message(1423, fmt.Sprintf("%sdomain=%x blockers=fs.refer", stamp, id)))
		pid := 8
		if id%100 == 0 {
			pid = 7
		}
		r.dispatch(message(1424, fmt.Sprintf("%sdomain=%x status=allocated mode=enforcing pid=%d", stamp, id, pid)))
	}
	if len(r.waiting) > maxWaiting || len(r.domains) > maxDomains || delivered != flood/100 {
		t.Errorf("%d denials, %d domains; %d delivered", len(r.waiting), len(r.domains), delivered)
	}
}

func TestMalformed(t *testing.T) {
	r := newReader()
	for _, m := range []syscall.NetlinkMessage{message(1423, "x"), message(1424, stamp), message(1300, "x")} {
		r.dispatch(m)
	}
	if len(r.waiting)+len(r.domains) != 0 {
		t.Errorf("%+v", r)
	}
}

func message(kind uint16, text string) syscall.NetlinkMessage {
	return syscall.NetlinkMessage{Header: syscall.NlMsghdr{Type: kind}, Data: []byte(text)}
}
