package sandbox

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	goruntime "runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gaol/internal/kernfile"
	"gaol/jail"
	"gaol/jail/seccomp/notify"
	"gaol/jail/zygote"
	"gaol/policy"
)

// Command is a process to start.
type Command struct {
	// Command is the process without its limits and what enforces its permissions, which Start adds. Script is a
	// hint: a sandbox without Spec.Warm executes Args.
	jail.Command
	HeapMiB int64 // size of the heap of Script, or 0 for that of Spec.Warm

	// File, if not nil, is a file that the guest can read, and not change, until the process ends.
	File *ProgramFile

	Plan *policy.Plan // nil: that of Spec

	// Denied, if not nil, is called for each operation that the plan denies, if the sandbox learns of
	// it, from any goroutine: from before Start returns until Process.Wait does. The target is the guest's text, of any
	// size and content. There is no rule and no count.
	Denied func(policy.Denial)
}

// ProgramFile is a file in a new folder of mounts.ProgramDir. Beside it is a link node_modules to Packages.
type ProgramFile struct {
	Folder, Name string
	Text         []byte
	Packages     string
}

// Process is a process that Start started, with all its descendants.
type Process struct {
	*jail.Process
	undo []func() // what Start has made for it
}

// Start starts a process and returns when its program runs. The caller closes its own
// copies of the files. Once ctx is done, the process is killed and the error is that of ctx.
// If the program does not exist, the error wraps fs.ErrNotExist.
func (s *Sandbox) Start(ctx context.Context, c *Command) (*Process, error) {
	p := &Process{}
	if err := s.start(ctx, c, p); err != nil {
		p.release()
		return nil, err
	}
	return p, nil
}

func (s *Sandbox) start(ctx context.Context, c *Command, p *Process) (err error) {
	if f := c.File; f != nil { // before load, whose rules name the file
		if err := s.AddProgram(f.Folder, jail.File{Path: f.Name, Mode: 0o444, Data: f.Text}, f.Packages); err != nil {
			return err
		}
		folder, name := f.Folder, f.Name                                      // not the text
		p.undo = append(p.undo, func() { _ = s.RemoveProgram(folder, name) }) // fails only if the jail is closed
	}
	r := s.rules
	if c.Plan != nil {
		if r, err = s.load(c.Plan); err != nil {
			return err
		}
		defer r.close() // the process is restricted by then
	}
	s.restrict(c, r)
	c.Parked = s.takeParked(c)
	if p.Process, err = s.Jail.Start(ctx, c.Command); err != nil {
		s.parking.end()
		return err
	}
	if s.parking.start != nil {
		go func() {
			<-p.Done()
			s.parking.end()
		}()
	}
	if s.audited {
		p.undo = append(p.undo, watchAudit(p.PID(), c.Denied)) // the ID is known only now
	}
	return nil
}

// restrict adds limits and rules to a command.
func (s *Sandbox) restrict(c *Command, r *rules) {
	c.Limits, c.OpenFiles, c.FileSize = s.spec.Limits, s.spec.OpenFiles, s.spec.FileSize
	c.Filter, c.Ruleset, c.RulesetFlags, c.NoLocalhost = r.filter, r.ruleset, r.flags, r.noLocalhost
	if denied := c.Denied; denied != nil {
		c.Refused = func(call notify.Call) { denied(refused(call)) }
	}
	if s.zygotes != nil {
		c.Zygote = s.zygotes.pool(c.HeapMiB)
	}
}

// Wait waits for Done and for late reports of denials, and returns how the process ended. It
// must be called once.
func (p *Process) Wait() (jail.Exit, error) {
	defer p.release()
	return p.Process.Wait()
}

func (p *Process) release() {
	for _, undo := range p.undo {
		undo()
	}
}

// parking holds at most one process of a sandbox that was started in advance. No other process of
// the sandbox runs meanwhile: it would have the same user id, and could stop the parked process.
type parking[P interface{ Kill() }] struct {
	// start starts a process in advance, if mayStart returns true when the sandbox has had no process
	// for a moment. The process is killed if it is not taken within most. If start is nil, only
	// what put adds waits. The fields are set before the first begin.
	start    func(ctx context.Context) (P, error)
	mayStart func() bool
	most     time.Duration

	mu      sync.Mutex // also held while start is called
	closed  bool
	live    int         // processes from begin to end
	waiting *P          // or nil
	timer   *time.Timer // until start may be called, or waiting expires; or nil
	counted bool        // waiting counts in advance
}

// advance counts the processes of all sandboxes that were started in advance by start, or are being started.
var advance atomic.Int64

// maxAdvance bounds them: each takes some 2 MB.
const maxAdvance = 64

// pauseTime is how long the sandbox must have no process before the next one is started in advance. Clients that
// make one run after another gain nothing from it, and right after a run its caller is busy.
const pauseTime = time.Millisecond

// put adds a process that was started in advance.
func (k *parking[P]) put(p P) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.waiting = &p
}

// begin counts a starting process, and returns the parked process or nil. The caller must use it or
// kill it. It waits for a start in advance, which takes some milliseconds.
func (k *parking[P]) begin() *P {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.start != nil {
		k.live++
	}
	return k.take()
}

// take returns the process that waits, if any, which waits no more.
//
// Preconditions: k.mu is held.
func (k *parking[P]) take() *P {
	p := k.waiting
	k.waiting = nil
	if k.timer != nil {
		k.timer.Stop()
	}
	if k.counted {
		k.counted = false
		advance.Add(-1)
	}
	return p
}

// end counts a process that has ended, and may start the next one in advance.
func (k *parking[P]) end() {
	if k.start == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.live--
	if k.live == 0 && !k.closed {
		k.timer = time.AfterFunc(pauseTime, k.startNext)
	}
}

// startNext starts the next process in advance, if nothing speaks against it.
func (k *parking[P]) startNext() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed || k.live > 0 || k.waiting != nil || !k.mayStart() {
		return
	}
	k.counted = true
	if advance.Add(1) > maxAdvance {
		k.take()
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), k.most)
	defer cancel()
	p, err := k.start(ctx)
	if err != nil { // the next process is started as usual, and reports the error
		k.take()
		return
	}
	k.waiting = &p
	k.timer = time.AfterFunc(k.most, func() { k.expire(&p) })
}

// expire kills a process that still waits.
func (k *parking[P]) expire(p *P) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.waiting == p {
		k.take()
		(*p).Kill()
	}
}

// close starts no other process. The owner kills the process that waits.
func (k *parking[P]) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	k.take()
}

// hasIdleProcessor reports whether a process that is started now delays no other: the machine has
// fewer runnable threads than processors, without this one.
func hasIdleProcessor() bool {
	text, err := kernfile.ReadFile("/proc/loadavg") // three averages, then runnable/all
	fields := bytes.Fields(text)
	if err != nil || len(fields) < 4 {
		return false
	}
	runnable, _, _ := bytes.Cut(fields[3], []byte("/"))
	n, err := strconv.Atoi(string(runnable))
	return err == nil && n <= goruntime.NumCPU()
}

// park starts a process in advance for a Command without a Plan, and with the default heap.
func (s *Sandbox) park(ctx context.Context) (*jail.Parked, error) {
	var c Command
	s.restrict(&c, s.rules)
	return s.Park(ctx, c.Command)
}

// takeParked counts a starting process. It returns the parked process if it can run c.
func (s *Sandbox) takeParked(c *Command) *jail.Parked {
	p := s.parking.begin()
	if p == nil {
		return nil
	}
	if c.Plan == nil && (c.HeapMiB == 0 || c.HeapMiB == s.spec.Warm.HeapMiB) {
		return *p
	}
	(*p).Kill() // otherwise this process could stop it
	return nil
}

// Warm describes a Node that runs are forked from, which has run no guest code.
type Warm struct {
	zygote.Options
	HeapMiB int64 // of V8's old space, unless a Command has another

	// Spec describes the Node with a heap. Sandboxes with the same Options and Spec share it; Env and Layer must be alike for
	// all sandboxes of the process.
	Spec func(heapMiB int64) zygote.Spec
}

// zygoteKind identifies a Node that runs are forked from.
type zygoteKind struct {
	zygote.Options
	image, args, cgroup string
}

// zygotePool is a pool of zygotes and the sets that use it.
type zygotePool struct {
	*zygote.Pool
	users map[*zygoteSet]struct{}
}

// sharedZygotes are the pools of this process. Sandboxes of the same kind share a pool. An unused
// pool stays until CloseIdle, because the next sandbox is mostly of the same kind.
var sharedZygotes = struct {
	sync.Mutex
	pools map[zygoteKind]*zygotePool
}{pools: map[zygoteKind]*zygotePool{}}

// zygoteSet is the zygotes of one sandbox: a pool for each heap size. It is safe for concurrent use.
type zygoteSet struct {
	warm     *Warm
	released bool // guarded by sharedZygotes' lock
}

// acquireZygotes returns the zygotes that w describes, and starts the first one if there is none yet. The
// caller must call release.
func acquireZygotes(w *Warm) *zygoteSet {
	s := &zygoteSet{warm: w}
	s.pool(0)
	return s
}

// pool returns the pool for a heap size, which is started on first use. 0 is the size of
// the set's kind.
func (s *zygoteSet) pool(heapMiB int64) *zygote.Pool {
	sharedZygotes.Lock()
	defer sharedZygotes.Unlock()
	spec := s.warm.Spec(cmp.Or(heapMiB, s.warm.HeapMiB))
	k := zygoteKind{s.warm.Options, spec.Image, strings.Join(spec.Args, " "), spec.Cgroup}
	p := sharedZygotes.pools[k]
	if p == nil {
		spec.Dir = StateDir
		p = &zygotePool{zygote.NewPool(spec, k.Options), map[*zygoteSet]struct{}{}}
		sharedZygotes.pools[k] = p
	}
	if !s.released { // otherwise the sandbox was closed while a run started, and no second release comes
		p.users[s] = struct{}{}
	}
	p.Warm()
	return p.Pool
}

// release ends the use of the set's pools. It may be called on nil.
func (s *zygoteSet) release() {
	if s == nil {
		return
	}
	sharedZygotes.Lock()
	defer sharedZygotes.Unlock()
	s.released = true
	for _, p := range sharedZygotes.pools {
		delete(p.users, s)
	}
}

// CloseIdle stops the zygotes that no set uses.
func CloseIdle() error {
	sharedZygotes.Lock()
	var idle []*zygotePool
	for kind, p := range sharedZygotes.pools {
		if len(p.users) == 0 {
			idle = append(idle, p)
			delete(sharedZygotes.pools, kind)
		}
	}
	sharedZygotes.Unlock()
	var failed error
	for _, p := range idle {
		failed = errors.Join(failed, p.Close())
	}
	return failed
}
