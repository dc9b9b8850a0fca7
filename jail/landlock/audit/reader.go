package audit

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Reader reads the kernel's records of Landlock. It is safe for concurrent use.
type Reader struct {
	socket *socket
	done   chan struct{} // closed when the goroutine ends

	mu        sync.Mutex
	joiner    *joiner
	lost      uint64
	malformed uint64
}

// Stats counts the records that a Reader could not deliver.
type Stats struct {
	Lost      uint64 // overflows of the socket's buffer, each of which lost records
	Malformed uint64 // records that could not be parsed
	Unclaimed uint64 // denials of processes that are not watched, or of domains from before Open
}

// watch is a call of Watch.
type watch struct {
	pid     int
	domains []uint64 // guarded by the reader's mutex

	mu sync.Mutex   // serializes calls of f
	f  func(Denial) // nil after stop
}

// add adds a domain of the process. It returns false if the process has too many.
func (w *watch) add(id uint64) bool {
	if len(w.domains) >= maxDomains {
		return false
	}
	w.domains = append(w.domains, id)
	return true
}

func (w *watch) deliver(list ...Denial) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deliverLocked(list)
}

func (w *watch) deliverLocked(list []Denial) {
	for _, d := range list {
		if w.f != nil {
			w.f(d)
		}
	}
}

// Open starts reading. Domains with an earlier denial remain unknown. The error is that of
// Available, or an *os.SyscallError.
func Open() (*Reader, error) {
	if err := Available(); err != nil {
		return nil, err
	}
	s, err := openSocket()
	if err != nil {
		return nil, err
	}
	r := &Reader{socket: s, done: make(chan struct{}), joiner: newJoiner()}
	go r.run()
	return r, nil
}

// Close stops reading. No watcher is called after it has returned.
func (r *Reader) Close() error {
	err := r.socket.file.Close()
	<-r.done
	return err
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
	r.mu.Lock()
	early := r.joiner.watch(w, time.Now())
	r.mu.Unlock()
	w.deliverLocked(early)
	return func() { r.stop(w) }
}

func (r *Reader) stop(w *watch) {
	r.mu.Lock()
	r.joiner.unwatch(w)
	r.mu.Unlock()
	w.mu.Lock()
	w.f = nil
	w.mu.Unlock()
}

// Stats returns the counters since Open.
func (r *Reader) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Stats{r.lost, r.malformed, r.joiner.unclaimed}
}

func (r *Reader) run() {
	defer close(r.done)
	for {
		m, err := r.socket.receive()
		switch {
		case err == unix.ENOBUFS:
			r.mu.Lock()
			r.lost++
			r.mu.Unlock()
		case err != nil: // closed
			return
		default:
			r.dispatch(m)
		}
	}
}

func (r *Reader) dispatch(m message) {
	if w, list := r.parse(m, time.Now()); w != nil {
		w.deliver(list...)
	}
}

// parse returns the denials that a record makes deliverable, and their watch.
func (r *Reader) parse(m message, now time.Time) (*watch, []Denial) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var err error
	switch m.kind {
	case unix.AUDIT_LANDLOCK_ACCESS:
		var d Denial
		if d, err = parseDenial(m.text); err == nil {
			w := r.joiner.addDenial(&d, now)
			return w, []Denial{d}
		}
	case unix.AUDIT_LANDLOCK_DOMAIN:
		var d domain
		if d, err = parseDomain(m.text); err == nil {
			return r.joiner.addDomain(d, now)
		}
	}
	if err != nil {
		r.malformed++
	}
	return nil, nil
}
