package audit

import (
	"slices"
	"time"
)

// Bounds of what a joiner remembers.
const (
	maxWaiting = 1024 // denials that nobody has claimed yet
	maxRecent  = 4096 // domains of processes that nobody watches
	maxDomains = 64   // of one watched process: the kernel nests 16, for each thread

	// holding is for how long they are kept: who watches a process may be told its
	// pid a moment after it began. It is far less than pids take to come again.
	holding = 2 * time.Second
)

// joiner finds out whose each denial is. The record of a denial has its domain's
// number only; another one, which comes once, says who put the domain on. It comes
// after the first denial, and may bear another serial.
type joiner struct {
	watches map[int]*watch
	domains map[uint64]int // to pids; those of watched processes and the recent ones
	recent  []recent       // of those that are not watched, the oldest first
	waiting []waiting      // the oldest first

	unclaimed uint64 // denials that were given up
}

type recent struct {
	id uint64
	at time.Time
}

// waiting is a denial whose process is not known, or not watched.
type waiting struct {
	Denial
	at time.Time
}

func newJoiner() *joiner {
	return &joiner{watches: map[int]*watch{}, domains: map[uint64]int{}}
}

// denied takes a denial and returns the watch it is for, or nil. Its PID is set then.
func (j *joiner) denied(d *Denial, now time.Time) *watch {
	j.forget(now)
	d.PID = j.domains[d.Domain]
	if w := j.watches[d.PID]; w != nil && d.PID != 0 {
		return w
	}
	j.waiting = append(j.waiting, waiting{*d, now})
	return nil
}

// told takes what the kernel says of a domain. Where that is of a watched process, the
// denials that waited for it are returned.
func (j *joiner) told(d domain, now time.Time) (*watch, []Denial) {
	j.forget(now)
	if d.ended {
		j.end(d.id)
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

func (j *joiner) end(id uint64) {
	if w := j.watches[j.domains[id]]; w != nil {
		w.domains = slices.DeleteFunc(w.domains, func(other uint64) bool { return other == id })
	}
	delete(j.domains, id)
}

// claim takes the denials of a process out of the waiting ones.
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

// watch begins to watch a process, and returns what it was denied just before. Who
// watched the pid until now does so no more: the kernel has given it to another one.
func (j *joiner) watch(w *watch, now time.Time) []Denial {
	j.forget(now)
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

// forget gives up what is old, or too much.
func (j *joiner) forget(now time.Time) {
	old := now.Add(-holding)
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
