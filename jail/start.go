package jail

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"gaol/internal/kernfile"
	"gaol/jail/cgroup"
	"gaol/jail/enter"
	"gaol/jail/gateway"
	"gaol/jail/kernel"
	"gaol/jail/mounts"
	"gaol/jail/step"
	"gaol/jail/zygote"
)

// startTimeout limits the time from a start to the program's first instruction. Hostile
// processes of the same jail can stop a process that already has their user id.
const startTimeout = 30 * time.Second

// Start starts a process in the jail and returns when it executes its program. If the
// program does not exist, the error is a [*StepError] that wraps fs.ErrNotExist.
func (j *Jail) Start(ctx context.Context, c Command) (*Process, error) {
	ctx, cancel := context.WithTimeout(ctx, kernel.Timeout(startTimeout))
	defer cancel()
	if c.Parked != nil {
		p, err := c.Parked.run(ctx, &c)
		if err == nil {
			return p, nil
		}
		if !errors.Is(err, zygote.ErrEnded) {
			return nil, p.startError(ctx, &c, err)
		}
	}
	return j.begin(ctx, &c, func(p *Process, in *cgroupFiles) error {
		return p.become(&c, func() error { return j.starter.launch(ctx, p, &c, in) })
	})
}

// become calls launch, which makes the process run c's program.
func (p *Process) become(c *Command, launch func() error) error {
	if len(c.Files) < 3 || len(c.Args) == 0 {
		return step.Wrap("start", c.name(), unix.EINVAL)
	}
	p.notify.expect(c)
	p.runs.Store(true)
	if c.OnCgroup != nil {
		id, err := p.group.ID()
		if err != nil {
			return step.Wrap("identify", "cgroup", err)
		}
		c.OnCgroup(id)
	}
	if err := p.jail.chownPipes(c); err != nil {
		return step.Wrap("own", "pipes", err)
	}
	if err := p.notify.startError(launch()); err != nil {
		return err
	}
	uncharged.add(p)
	return nil
}

// launch implements starter.
func (j entryProgram) launch(ctx context.Context, p *Process, c *Command, in *cgroupFiles) error {
	if c.Zygote != nil {
		_, err := p.fork(ctx, c, in, &c.Program)
		return err
	}
	list := enter.List{Steps: j.enterSteps(c, in), Filter: c.Filter.Program, Files: c.Files, OnListener: p.onListener(c.Filter)}
	return enter.Launch(j.program, list, func(child *enter.Child) error {
		p.first = child
		return nil
	})
}

// begin adds a process with a new cgroup to the jail, and calls launch, which sets p.first.
func (j *Jail) begin(ctx context.Context, c *Command, launch func(p *Process, in *cgroupFiles) error) (*Process, error) {
	c.Filter = cmp.Or(c.Filter, j.spec.Filter)
	p, err := j.add()
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, p.Kill)
	if err := p.launchInCgroup(c, launch); err != nil {
		err = errors.Join(err, p.abandon())
		p.leave()
		stop()
		return nil, p.startError(ctx, c, err)
	}
	p.guestPID = guestPID(p.first.PID())
	go p.reap()
	if !stop() {
		return nil, p.startError(ctx, c, nil)
	}
	return p, nil
}

// startError waits until nothing is left of a start that failed or was killed, and
// returns the reason. If the start was killed, its own error does not matter.
func (p *Process) startError(ctx context.Context, c *Command, err error) error {
	<-p.done
	switch {
	case ctx.Err() != nil:
		return step.Wrap("start", c.name(), ctx.Err())
	case p.jail.closed.Load():
		return ErrClosed
	}
	return err
}

// add returns a new process, which Close kills and waits for.
func (j *Jail) add() (*Process, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed.Load() {
		return nil, ErrClosed
	}
	p := &Process{jail: j, killed: make(chan struct{}), done: make(chan struct{})}
	j.live[p] = struct{}{}
	j.runs.Add(1)
	return p, nil
}

// leave removes the process from the jail.
func (p *Process) leave() {
	close(p.done)
	p.jail.mu.Lock()
	delete(p.jail.live, p)
	p.jail.mu.Unlock()
	p.jail.runs.Done()
}

// launchInCgroup makes the process's cgroup and calls launch.
func (p *Process) launchInCgroup(c *Command, launch func(p *Process, in *cgroupFiles) error) error {
	group, err := p.jail.pool.New(c.Limits)
	if err != nil {
		return step.Wrap("make", "cgroup", err)
	}
	p.jail.mu.Lock() // for SetPaused
	p.group, p.limits = group, c.Limits
	p.jail.mu.Unlock()
	go p.killWhenAsked()
	own, err := openCgroups(group.Dirs())
	if err != nil {
		return step.Wrap("open", "cgroup", err)
	}
	defer own.close()
	if c.NoLocalhost {
		if err := gateway.DenyLocalhost(own.startIn); err != nil {
			return step.Wrap("deny", "localhost", err)
		}
	}
	return launch(p, own.with(p.jail.shared))
}

// chownPipes gives the process's pipes to the guest, which could not open /dev/stdout
// otherwise.
func (j *Jail) chownPipes(c *Command) error {
	first := j.identity.ID()
	for _, f := range c.Files[:3] {
		info, err := f.Stat()
		if err != nil {
			return err
		}
		if info.Mode()&os.ModeNamedPipe == 0 {
			continue // a file of the host keeps its owner
		}
		if err := f.Chown(first+mounts.GuestUID, first+mounts.GuestGID); err != nil {
			return err
		}
	}
	return nil
}

// fork sets p.first to a child of a zygote, which enters the jail and runs the program. If
// that is nil, the child waits for it.
func (p *Process) fork(ctx context.Context, c *Command, in *cgroupFiles, program *zygote.Program) (*zygote.Child, error) {
	child, err := c.Zygote.Fork(ctx, &zygote.Entry{
		JoinFiles:  in.join,
		Cgroup:     in.startIn,
		Jail:       p.jail.pidfd,
		Limits:     rlimits(c),
		Filter:     c.Filter.Program,
		OnListener: p.onListener(c.Filter),

		Ruleset:      c.Ruleset,
		RulesetFlags: c.RulesetFlags,
	}, program)
	if err != nil {
		return nil, forkError(c, err)
	}
	p.first = child
	return child, nil
}

// forkError adds the target to a failed step of a zygote or its child.
func forkError(c *Command, err error) error {
	failed, ok := errors.AsType[*StepError](err)
	switch {
	case !ok:
		return step.Wrap("fork", c.name(), err)
	case failed.Target != "":
		return err
	case failed.Step == "chdir":
		return step.Wrap(failed.Step, c.Dir, failed.Err)
	}
	return step.Wrap(failed.Step, c.name(), failed.Err)
}

// Parked is a process that a zygote has forked in advance: it is in the jail, in a separate
// cgroup, and waits for its program. Closing the jail kills it.
type Parked struct {
	process *Process
	child   *zygote.Child
}

// Park forks a process in advance, for one later Start with Command.Parked. c needs a
// Zygote. Its Limits, OpenFiles, FileSize, Filter and Ruleset apply now; Start takes the
// other fields from its own Command.
func (j *Jail) Park(ctx context.Context, c Command) (*Parked, error) {
	ctx, cancel := context.WithTimeout(ctx, kernel.Timeout(startTimeout))
	defer cancel()
	var child *zygote.Child
	p, err := j.begin(ctx, &c, func(p *Process, in *cgroupFiles) (err error) {
		child, err = p.fork(ctx, &c, in, nil)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &Parked{p, child}, nil
}

// Kill kills a process that is not needed any more.
func (k *Parked) Kill() { k.process.Kill() }

// Done is closed when the process has ended.
func (k *Parked) Done() <-chan struct{} { return k.process.done }

// run makes the parked process run c's program. The error is zygote.ErrEnded if it had
// ended before.
func (k *Parked) run(ctx context.Context, c *Command) (*Process, error) {
	p := k.process
	usage, err := p.group.Usage()
	if err != nil {
		p.Kill()
		return p, zygote.ErrEnded // its cgroup has been removed
	}
	p.parkedCPU.Store(int64(usage.CPU))
	err = p.become(c, func() error { return k.child.Run(ctx, &c.Program) })
	if err != nil && !errors.Is(err, zygote.ErrEnded) {
		p.Kill()
		return p, forkError(c, err)
	}
	return p, err
}

// cgroupFiles are open files with which a process moves itself into cgroups: being moved by
// another process takes some 10 ms.
type cgroupFiles struct {
	startIn *os.File   // the folder of the v2 cgroup that it is started in; may be nil
	join    []*os.File // the tasks files of v1 cgroups that it writes to
}

func (c *cgroupFiles) close() {
	for _, f := range c.join {
		f.Close()
	}
	c.startIn.Close() // may be nil
}

// with returns the files of c and other, which continue to own them.
func (c *cgroupFiles) with(other *cgroupFiles) *cgroupFiles {
	return &cgroupFiles{startIn: cmp.Or(c.startIn, other.startIn), join: slices.Concat(c.join, other.join)}
}

// joinSteps join the v1 cgroups.
func (c *cgroupFiles) joinSteps() (steps []enter.Step) {
	for _, f := range c.join {
		steps = append(steps, enter.JoinCgroup(f))
	}
	return steps
}

// openCgroups opens the files of cgroups. The directories may be of both versions: on some
// machines with v1, systemd's own hierarchy is a v2 one.
func openCgroups(dirs []string) (*cgroupFiles, error) {
	c := &cgroupFiles{}
	for _, dir := range dirs {
		f, err := kernfile.Open(filepath.Join(dir, "tasks"), unix.O_WRONLY)
		if err == nil {
			c.join = append(c.join, f)
		} else if errors.Is(err, unix.ENOENT) { // on v2 the file does not exist
			c.startIn, err = kernfile.Open(dir, unix.O_DIRECTORY|unix.O_RDONLY)
		}
		if err != nil {
			c.close()
			return nil, err
		}
	}
	return c, nil
}

// makeCgroups makes the jail's cgroups. It returns the open files of the cgroups that are
// parents of the runs' cgroups. All processes of the jail share the other cgroups, such as
// the devices cgroup of v1, which holds rules.
func (j *Jail) makeCgroups() (*cgroupFiles, error) {
	var devices []cgroup.Device
	for _, d := range mounts.Devices {
		devices = append(devices, cgroup.Device{Major: int64(d.Major), Minor: int64(d.Minor)})
	}
	devices = append(devices, cgroup.Device{Major: 5, Minor: 2}, cgroup.Device{Major: 136, Minor: cgroup.AnyMinor}) // of devpts
	group, err := cgroup.NewNamespaceRoot(j.identity.Cgroup(), devices)
	if err != nil {
		return nil, step.Wrap("make", "cgroup", err)
	}
	j.pool = cgroup.NewPool(group)
	if j.spec.Identified {
		if j.pool, err = cgroup.NewIdentifiedPool(group); err != nil {
			return nil, step.Wrap("identify", "cgroups", err)
		}
	}
	if j.shared, err = openCgroups(group.OtherDirs()); err != nil {
		return nil, step.Wrap("open", "cgroup", err)
	}
	top, err := openCgroups(group.Dirs())
	return top, step.Wrap("open", "cgroup", err)
}

// makeInitCgroup makes a cgroup for pid 1 in cgroup v2, where a cgroup that holds processes
// can't have children with limits. In v1 it returns nil.
func makeInitCgroup(top *cgroupFiles) (*os.File, error) {
	if top.startIn == nil {
		return nil, nil
	}
	// Not made by package cgroup, which enables controllers for it: the jail's own cgroup can't do that
	// before the entry program has left it.
	dir := filepath.Join(top.startIn.Name(), "init")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	return kernfile.Open(dir, unix.O_DIRECTORY|unix.O_RDONLY)
}
