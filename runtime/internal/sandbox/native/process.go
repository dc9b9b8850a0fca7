package native

import (
	"bytes"
	"context"
	"errors"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gaol/internal/kernfile"
	"gaol/jail"
	"gaol/jail/hostcommand"
	"gaol/jail/seccomp/notify"
	"gaol/jail/zygote"
	"gaol/runtime/internal/sandbox"
)

// Process is a process that Start started, with all its descendants.
type Process struct {
	*jail.Process
	undo []func() // what Start has made for it
}

// Start implements sandbox.Sandbox.
func (s *Sandbox) Start(ctx context.Context, c *sandbox.Command) (sandbox.Process, error) {
	p := &Process{}
	if err := s.start(ctx, c, p); err != nil {
		p.release()
		return nil, err
	}
	return p, nil
}

func (s *Sandbox) start(ctx context.Context, c *sandbox.Command, p *Process) (err error) {
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
	j := s.command(c, r)
	j.Parked = s.takeParked(c)
	if p.Process, err = s.Jail.Start(ctx, j); err != nil {
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

// command returns the jail's command with the sandbox's limits and rules.
func (s *Sandbox) command(c *sandbox.Command, r *rules) jail.Command {
	j := jail.Command{
		Program:  jail.Program{Args: c.Args, Script: c.Script, Env: c.Env, Dir: c.Dir, Terminal: c.Terminal, Files: filesOf(c.Files)},
		FromRoot: c.FromRoot, Connect: c.Connect, OnCgroup: c.OnOwner,
		AllowDegraded: s.degraded(), Limits: s.spec.Limits, OpenFiles: s.spec.OpenFiles, FileSize: s.spec.FileSize,
		Filter: r.filter, Ruleset: r.ruleset, RulesetFlags: r.flags, NoLocalhost: r.noLocalhost,
	}
	if denied := c.Denied; denied != nil {
		j.Refused = func(call notify.Call) { denied(refused(call)) }
	}
	if handler := c.OnCommand; handler != nil {
		j.OnCommand = func(name string) (hostcommand.Ends, error) { return openCall(name, handler) }
	}
	if s.zygotes != nil {
		j.Zygote = s.zygotes.pool(c.WarmArgs)
	}
	return j
}

// Wait waits for Done and for late reports of denials, and returns how the process ended. It
// must be called once.
func (p *Process) Wait() (sandbox.Exit, error) {
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

// setClosed kills the process that waits. While closed, no other process is started in advance.
func (k *parking[P]) setClosed(closed bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = closed
	if p := k.take(); p != nil {
		(*p).Kill()
	}
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

// park starts a process in advance for a Command without a Plan, and without WarmArgs.
func (s *Sandbox) park(ctx context.Context) (*jail.Parked, error) {
	return s.Park(ctx, s.command(&sandbox.Command{}, s.rules))
}

// takeParked counts a starting process. It returns the parked process if it can run c.
func (s *Sandbox) takeParked(c *sandbox.Command) *jail.Parked {
	p := s.parking.begin()
	if p == nil {
		return nil
	}
	if c.Plan == nil && (c.WarmArgs == nil || slices.Equal(c.WarmArgs, s.spec.Warm.Args)) {
		return *p
	}
	(*p).Kill() // otherwise this process could stop it
	return nil
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

// zygoteSet is the zygotes of one sandbox: a pool for each list of Node's arguments. It is safe for concurrent use.
type zygoteSet struct {
	warm     *sandbox.Warm
	released bool // guarded by sharedZygotes' lock
}

// acquireZygotes returns the zygotes that w describes, and starts the first one if there is none yet. The
// caller must call release.
func acquireZygotes(w *sandbox.Warm) *zygoteSet {
	s := &zygoteSet{warm: w}
	s.pool(nil)
	return s
}

// pool returns the pool of zygotes with other arguments than the set's, or with those if args is nil. It is started on
// first use.
func (s *zygoteSet) pool(args []string) *zygote.Pool {
	sharedZygotes.Lock()
	defer sharedZygotes.Unlock()
	w := s.warm
	if args == nil {
		args = w.Args
	}
	options := zygote.Options{Forks: w.Forks, Age: w.Age, Patience: w.Patience}
	k := zygoteKind{options, w.Image, strings.Join(args, " "), w.CgroupParent}
	p := sharedZygotes.pools[k]
	if p == nil {
		spec := zygote.Spec{Image: w.Image, Layer: w.Layer, Args: args, Env: w.Env, Dir: sandbox.StateDir, Cgroup: w.CgroupParent}
		p = &zygotePool{zygote.NewPool(spec, options), map[*zygoteSet]struct{}{}}
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
