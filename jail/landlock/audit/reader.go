package audit

import (
	"maps"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Limits of a Reader's memory.
const (
	maxWaiting = 1024 // denials that are not claimed yet
	maxDomains = 4096 // domains of processes that are not watched are evicted first

	// retention is how long the records of a process that is not watched yet count, as its
	// watcher may learn the pid late. It is far shorter than the time until the kernel reuses
	// a pid.
	retention = 2 * time.Second
)

// Reader reads the kernel's records of Landlock and finds the process of each denial. The
// record of a denial has only its domain's number. Another record, which is sent once, holds
// the pid of the process that enforced the domain. It follows the first denial, and may have
// another serial number.
//
// It is safe for concurrent use.
type Reader struct {
	socket *nl.NetlinkSocket
	done   chan struct{} // closed when the goroutine ends

	mu      sync.Mutex
	watches map[int]*watch
	domains map[uint64]origin
	waiting []waiting // the oldest first
}

// origin is the process that enforced a domain.
type origin struct {
	pid int
	at  time.Time // of the record
}

// waiting is a denial whose process is unknown or not watched.
type waiting struct {
	Denial
	at time.Time
}

// watch is a call of Watch.
type watch struct {
	pid int

	mu sync.Mutex   // serializes calls of f
	f  func(Denial) // nil after stop
}

// deliver calls f. Precondition: w.mu is locked.
func (w *watch) deliver(list []Denial) {
	for _, d := range list {
		if w.f != nil {
			w.f(d)
		}
	}
}

// Open starts reading. Domains with an earlier denial remain unknown. The error is
// Available's error or an *os.SyscallError.
func Open() (*Reader, error) {
	if err := Available(); err != nil {
		return nil, err
	}
	s, err := openSocket()
	if err != nil {
		return nil, err
	}
	r := newReader()
	r.socket = s
	go r.run()
	return r, nil
}

func newReader() *Reader {
	return &Reader{done: make(chan struct{}), watches: map[int]*watch{}, domains: map[uint64]origin{}}
}

// Close stops reading. No watcher is called after it has returned.
func (r *Reader) Close() {
	r.socket.Close()
	<-r.done
}

// Watch calls f for each denial of a domain that the process with this pid, in the first
// pid namespace, has enforced. Before it returns it calls f for denials of the last two
// seconds. Denials arrive some milliseconds after they happen.
//
// While f runs, no other watcher is called, so f should return quickly. It must not call
// stop, Watch or Close. After stop has returned, f is not called any more. A later Watch of
// the same pid replaces this one.
func (r *Reader) Watch(pid int, f func(Denial)) (stop func()) {
	w := &watch{pid: pid, f: f}
	w.mu.Lock() // newer denials wait until the early ones are delivered
	defer w.mu.Unlock()
	w.deliver(r.watch(w, time.Now()))
	return func() { r.stop(w) }
}

// watch adds a watch and returns the waiting denials of its process. If it replaces a watch
// of the same pid, the kernel has reused the pid.
func (r *Reader) watch(w *watch, now time.Time) []Denial {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expire(now)
	if r.watches[w.pid] != nil {
		r.forget(w.pid, now)
	} else {
		r.forget(w.pid, now.Add(-retention))
	}
	r.watches[w.pid] = w
	return r.claim(w)
}

func (r *Reader) stop(w *watch) {
	r.mu.Lock()
	if r.watches[w.pid] == w {
		delete(r.watches, w.pid)
		r.forget(w.pid, time.Now())
	}
	r.mu.Unlock()
	w.mu.Lock()
	w.f = nil
	w.mu.Unlock()
}

// forget removes the domains of a process that were recorded up to a time.
func (r *Reader) forget(pid int, until time.Time) {
	maps.DeleteFunc(r.domains, func(_ uint64, o origin) bool { return o.pid == pid && !o.at.After(until) })
}

func (r *Reader) run() {
	defer close(r.done)
	for {
		list, from, err := r.socket.Receive()
		switch {
		case err == unix.ENOBUFS: // lost records
		case err != nil: // closed
			return
		case from.Pid == nl.PidKernel:
			for _, m := range list {
				r.dispatch(m)
			}
		}
	}
}

func (r *Reader) dispatch(m syscall.NetlinkMessage) {
	if w, list := r.join(m, time.Now()); w != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.deliver(list)
	}
}

// join returns the denials that a record makes deliverable, and their watch. It ignores
// records that cannot be parsed.
func (r *Reader) join(m syscall.NetlinkMessage, now time.Time) (*watch, []Denial) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expire(now)
	switch m.Header.Type {
	case unix.AUDIT_LANDLOCK_ACCESS:
		if d, err := parseDenial(string(m.Data)); err == nil {
			return r.addDenial(d, now)
		}
	case unix.AUDIT_LANDLOCK_DOMAIN:
		if d, err := parseDomain(string(m.Data)); err == nil {
			return r.addDomain(d, now)
		}
	}
	return nil, nil
}

func (r *Reader) addDenial(d Denial, now time.Time) (*watch, []Denial) {
	from, known := r.domains[d.Domain]
	d.PID = from.pid
	if w := r.watches[d.PID]; w != nil && known {
		return w, []Denial{d}
	}
	r.waiting = append(r.waiting, waiting{d, now})
	return nil, nil
}

// addDomain adds a domain. If its process is watched, it returns the waiting denials of the
// process.
func (r *Reader) addDomain(d domain, now time.Time) (*watch, []Denial) {
	if d.ended {
		delete(r.domains, d.id)
		return nil, nil
	}
	if len(r.domains) >= maxDomains {
		maps.DeleteFunc(r.domains, func(_ uint64, o origin) bool { return r.watches[o.pid] == nil })
	}
	if len(r.domains) < maxDomains {
		r.domains[d.id] = origin{d.pid, now}
	}
	for i := range r.waiting {
		if r.waiting[i].Domain == d.id {
			r.waiting[i].PID = d.pid
		}
	}
	w := r.watches[d.pid]
	if w == nil {
		return nil, nil
	}
	return w, r.claim(w)
}

// claim removes the waiting denials of a process and returns them.
func (r *Reader) claim(w *watch) (mine []Denial) {
	r.waiting = slices.DeleteFunc(r.waiting, func(d waiting) bool {
		if d.PID == w.pid {
			mine = append(mine, d.Denial)
		}
		return d.PID == w.pid
	})
	return mine
}

// expire drops old denials and those beyond the limit.
func (r *Reader) expire(now time.Time) {
	n := 0
	for n < len(r.waiting) && (now.Sub(r.waiting[n].at) > retention || len(r.waiting)-n >= maxWaiting) {
		n++
	}
	r.waiting = slices.Delete(r.waiting, 0, n)
}
