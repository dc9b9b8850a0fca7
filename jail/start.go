package jail

import (
	"context"
	"errors"
	"os"
	"strconv"
	"time"

	"github.com/opencontainers/runc/libcontainer"

	"gaol/jail/cgroup"
	"gaol/jail/enter"
)

// firstExtraFile is the descriptor that the first of a process's extra files gets.
const firstExtraFile = 3

// startTimeout bounds the time from a start to the program's first instruction. A
// hostile process of the same jail may stop one that has its user id already.
const startTimeout = 30 * time.Second

// Start starts a process in the jail and returns when its program runs.
// A program that does not exist is a [*StepError] that wraps fs.ErrNotExist.
func (j *Jail) Start(ctx context.Context, c Command) (*Process, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	p, err := j.admit()
	if err != nil {
		return nil, err
	}
	inTime := context.AfterFunc(ctx, p.Kill)
	err = p.start(ctx, &c)
	if err != nil {
		err = errors.Join(err, p.abandon())
		p.leave()
	} else {
		go p.reap()
	}
	if inTime() && err == nil {
		return p, nil
	}
	return nil, p.startError(ctx, &c, err)
}

// startError waits until nothing is left of a start that failed or was killed,
// and says why it was. What a killed start says of itself is no news.
func (p *Process) startError(ctx context.Context, c *Command, err error) error {
	<-p.done
	switch {
	case ctx.Err() != nil:
		return stepError("start", c.Path, ctx.Err())
	case p.jail.isClosed():
		return ErrClosed
	}
	return err
}

// admit makes a process that Close kills and waits for.
func (j *Jail) admit() (*Process, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return nil, ErrClosed
	}
	j.serial++
	p := &Process{jail: j, name: "r" + strconv.Itoa(j.serial), killed: make(chan struct{}), done: make(chan struct{})}
	j.live[p] = struct{}{}
	j.runs.Add(1)
	return p, nil
}

func (j *Jail) isClosed() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.closed
}

// leave takes back what admit did.
func (p *Process) leave() {
	close(p.done)
	p.jail.mu.Lock()
	delete(p.jail.live, p)
	p.jail.mu.Unlock()
	p.jail.runs.Done()
}

func (p *Process) start(ctx context.Context, c *Command) error {
	group, err := cgroup.New(p.jail.groupPath(p.name), c.Limits)
	if err != nil {
		return stepError("make", "cgroup", err)
	}
	p.group = group
	go p.killer()
	if err := p.jail.own(c); err != nil {
		return stepError("own", "pipes", err)
	}
	if c.Zygote != nil {
		return p.fork(ctx, c)
	}
	return p.launch(c)
}

// launch has libcontainer start the entry program and hands it the filter.
func (p *Process) launch(c *Command) error {
	host, child, err := socketPair()
	if err != nil {
		return stepError("make", "socket", err)
	}
	defer host.Close()
	setup := strconv.Itoa(firstExtraFile + len(c.Files))
	process := &libcontainer.Process{
		Args:           append([]string{enter.Path, setup, c.Dir, c.Path}, c.Args...),
		Env:            c.Env,
		UID:            GuestUID,
		GID:            GuestGID,
		Cwd:            "/",
		Stdin:          c.Stdin,
		Stdout:         c.Stdout,
		Stderr:         c.Stderr,
		ExtraFiles:     append(append([]*os.File(nil), c.Files...), child),
		SubCgroupPaths: map[string]string{},
	}
	for _, controller := range p.group.Controllers() {
		process.SubCgroupPaths[controller] = p.name
	}
	err = p.startInTurn(process)
	child.Close()
	if err != nil {
		return stepError("start", c.Path, err)
	}
	p.first = process
	return hand(host, c.Path, c.Dir, enter.Setup{Limits: rlimits(c), Filter: p.jail.spec.Filter})
}

var errKilled = errors.New("killed before its turn")

// startInTurn has libcontainer start the process. It starts one at a time of a
// jail, and that one may be held up; waiting for it here ends with a kill.
func (p *Process) startInTurn(process *libcontainer.Process) error {
	select {
	case p.jail.turn <- struct{}{}:
	case <-p.killed:
		return errKilled
	}
	defer func() { <-p.jail.turn }()
	return p.jail.container.Start(process)
}

// hand tells the entry program what to do, and names the step that failed.
func hand(host *os.File, program, dir string, s enter.Setup) error {
	err := enter.Hand(host, s)
	failed, ok := errors.AsType[*enter.StepError](err)
	switch {
	case ok && failed.Step == enter.StepChdir:
		return stepError(failed.Step, dir, failed.Err)
	case ok:
		return stepError(failed.Step, program, failed.Err)
	}
	return stepError("enter", program, err)
}

// own gives the process's pipes to its user, who could not open /dev/stdout
// otherwise.
func (j *Jail) own(c *Command) error {
	first := j.slot.firstHostID()
	for _, f := range []*os.File{c.Stdin, c.Stdout, c.Stderr} {
		info, err := f.Stat()
		if err != nil {
			return err
		}
		if info.Mode()&os.ModeNamedPipe == 0 {
			continue // a host's own file stays its owner's
		}
		if err := f.Chown(first+GuestUID, first+GuestGID); err != nil {
			return err
		}
	}
	return nil
}
