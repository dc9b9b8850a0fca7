package audit

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Reader hears the kernel's records of Landlock. It is safe for concurrent use.
type Reader struct {
	socket *socket
	done   chan struct{} // closed by the goroutine at its end

	mu        sync.Mutex
	joiner    *joiner
	lost      uint64
	malformed uint64
}

// Stats counts what a Reader could not tell anybody.
type Stats struct {
	Lost      uint64 // times that records came faster than they were read; each time some were lost
	Malformed uint64 // records that could not be understood
	Unclaimed uint64 // denials of processes that nobody watches, or of domains that began before Open
}

// watch is somebody who wants to hear of one process.
type watch struct {
	pid     int
	domains []uint64 // of the joiner

	mu sync.Mutex // one call at a time
	f  func(Denial)
}

// add notes a domain of the process; false if it has too many.
func (w *watch) add(id uint64) bool {
	if len(w.domains) >= maxDomains {
		return false
	}
	w.domains = append(w.domains, id)
	return true
}

func (w *watch) tell(list ...Denial) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tellLocked(list)
}

func (w *watch) tellLocked(list []Denial) {
	for _, d := range list {
		if w.f != nil {
			w.f(d)
		}
	}
}

// Open begins to read. Domains that had a denial before that stay unknown. The
// error is that of Available, or an *os.SyscallError.
func Open() (*Reader, error) {
	if err := Available(); err != nil {
		return nil, err
	}
	s, err := join()
	if err != nil {
		return nil, err
	}
	r := &Reader{socket: s, done: make(chan struct{}), joiner: newJoiner()}
	go r.run()
	return r, nil
}

// Close ends reading. No watcher is called after it.
func (r *Reader) Close() error {
	err := r.socket.file.Close()
	<-r.done
	return err
}

// Watch calls f for each denial of a domain that the process with this pid, in the
// first pid namespace, has put on; first for those of the last two seconds, before it
// returns. Denials come some milliseconds after they happened.
//
// Nobody else is told anything while f runs: it should be short. It must not call
// stop, Watch or Close. After stop has returned, f is not called any more. A pid has
// one watcher, the last.
func (r *Reader) Watch(pid int, f func(Denial)) (stop func()) {
	w := &watch{pid: pid, f: f}
	w.mu.Lock() // what is newer waits until the old is told
	defer w.mu.Unlock()
	r.mu.Lock()
	early := r.joiner.watch(w, time.Now())
	r.mu.Unlock()
	w.tellLocked(early)
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

// Stats returns what was lost since Open.
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
		case err != nil: // it was closed
			return
		default:
			r.dispatch(m)
		}
	}
}

func (r *Reader) dispatch(m message) {
	if w, list := r.take(m, time.Now()); w != nil {
		w.tell(list...)
	}
}

func (r *Reader) take(m message, now time.Time) (*watch, []Denial) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var err error
	switch m.kind {
	case unix.AUDIT_LANDLOCK_ACCESS:
		var d Denial
		if d, err = parseDenial(m.text); err == nil {
			w := r.joiner.denied(&d, now)
			return w, []Denial{d}
		}
	case unix.AUDIT_LANDLOCK_DOMAIN:
		var d domain
		if d, err = parseDomain(m.text); err == nil {
			return r.joiner.told(d, now)
		}
	}
	if err != nil {
		r.malformed++
	}
	return nil, nil
}
