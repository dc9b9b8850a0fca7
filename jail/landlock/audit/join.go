package audit

import (
	"slices"
	"time"
)

// Limits of a joiner.
const (
	maxWaiting = 1024 // denials that are not claimed yet
	maxRecent  = 4096 // domains of processes that are not watched
	maxDomains = 64   // of a watched process: the kernel nests 16 for each thread

	// retention is how long these are kept, as the watcher of a process may learn its pid
	// late. It is far shorter than the time until the kernel reuses a pid.
	retention = 2 * time.Second
)

// joiner finds the process of each denial. The record of a denial has only its domain's
// number. Another record, which is sent once, has the pid of the process that enforced the
// domain. It follows the first denial, and may have another serial number.
type joiner struct {
	watches map[int]*watch
	domains map[uint64]int // pids, of domains of watched processes and recent ones
	recent  []recent       // domains of processes that are not watched, the oldest first
	waiting []waiting      // the oldest first

	unclaimed uint64 // denials that were dropped
}

type recent struct {
	id uint64
	at time.Time
}

// waiting is a denial whose process is unknown or not watched.
type waiting struct {
	Denial
	at time.Time
}

func newJoiner() *joiner {
	return &joiner{watches: map[int]*watch{}, domains: map[uint64]int{}}
}

// addDenial adds a denial. If its process is watched, it sets the PID and returns the
// watch.
func (j *joiner) addDenial(d *Denial, now time.Time) *watch {
	j.expire(now)
	d.PID = j.domains[d.Domain]
	if w := j.watches[d.PID]; w != nil && d.PID != 0 {
		return w
	}
	j.waiting = append(j.waiting, waiting{*d, now})
	return nil
}

// addDomain adds a domain. If its process is watched, it returns the waiting denials of
// the process.
func (j *joiner) addDomain(d domain, now time.Time) (*watch, []Denial) {
	j.expire(now)
	if d.ended {
		j.remove(d.id)
		return nil, nil
	}
	w := j.watches[d.pid]
	if w == nil {
		j.recent = append(j.recent, recent{d.id, now})
	} else if !w.add(d.id) {
		return nil, nil
	}
	j.domains[d.id] = d.pid
	for i := range j.waiting {
		if j.waiting[i].Domain == d.id {
			j.waiting[i].PID = d.pid
		}
	}
	return w, j.claim(w, d.pid)
}

func (j *joiner) remove(id uint64) {
	if w := j.watches[j.domains[id]]; w != nil {
		w.domains = slices.DeleteFunc(w.domains, func(other uint64) bool { return other == id })
	}
	delete(j.domains, id)
}

// claim removes the waiting denials of a process and returns them.
func (j *joiner) claim(w *watch, pid int) (mine []Denial) {
	if w == nil {
		return nil
	}
	j.waiting = slices.DeleteFunc(j.waiting, func(d waiting) bool {
		if d.PID == pid {
			mine = append(mine, d.Denial)
		}
		return d.PID == pid
	})
	return mine
}

// watch adds a watch and returns the waiting denials of its process. It removes an earlier
// watch of the same pid, which the kernel has reused.
func (j *joiner) watch(w *watch, now time.Time) []Denial {
	j.expire(now)
	j.unwatch(j.watches[w.pid])
	j.watches[w.pid] = w
	j.recent = slices.DeleteFunc(j.recent, func(r recent) bool {
		return j.domains[r.id] == w.pid && w.add(r.id)
	})
	return j.claim(w, w.pid)
}

func (j *joiner) unwatch(w *watch) {
	if w == nil || j.watches[w.pid] != w {
		return
	}
	delete(j.watches, w.pid)
	for _, id := range w.domains {
		delete(j.domains, id)
	}
}

// expire drops old entries and those beyond the limits.
func (j *joiner) expire(now time.Time) {
	old := now.Add(-retention)
	n := 0
	for n < len(j.recent) && (j.recent[n].at.Before(old) || len(j.recent)-n >= maxRecent) {
		delete(j.domains, j.recent[n].id)
		n++
	}
	j.recent = slices.Delete(j.recent, 0, n)
	n = 0
	for n < len(j.waiting) && (j.waiting[n].at.Before(old) || len(j.waiting)-n >= maxWaiting) {
		n++
	}
	j.waiting = slices.Delete(j.waiting, 0, n)
	j.unclaimed += uint64(n)
}
