package jail

import (
	"context"
	"errors"
	"os"
	"time"

	"gaol/jail/enter"
	"gaol/jail/reap"
)

// startTimeout bounds the time from a start to the program's first instruction. A
// hostile process of the same jail may stop one that has its user id already.
const startTimeout = 30 * time.Second

// Start starts a process in the jail and returns when its program runs.
// A program that does not exist is a [*StepError] that wraps fs.ErrNotExist.
func (j *Jail) Start(ctx context.Context, c Command) (*Process, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if c.Parked != nil {
		p, ok, err := c.Parked.resume(ctx, &c)
		if ok && err == nil {
			return p, nil
		}
		if ok {
			return nil, p.startError(ctx, &c, err)
		}
	}
	p, err := j.admit()
	if err != nil {
		return nil, err
	}
	p.hearing.expect(&c)
	inTime := context.AfterFunc(ctx, p.Kill)
	err = p.hearing.startError(p.start(ctx, &c))
	if err != nil {
		err = errors.Join(err, p.abandon())
		p.leave()
	} else {
		p.guestPID = guestPID(p.first.PID())
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
	p := &Process{jail: j, killed: make(chan struct{}), done: make(chan struct{})}
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
	own, in, err := p.prepare(c)
	if err != nil {
		return err
	}
	defer own.close()
	if err := p.jail.own(c); err != nil {
		return stepError("own", "pipes", err)
	}
	if c.Zygote != nil {
		return p.fork(ctx, c, &in)
	}
	return p.launch(c, &in)
}

// prepare makes the process's group.
func (p *Process) prepare(c *Command) (own *groups, in groups, err error) {
	group, err := p.jail.pool.New(c.Limits)
	if err != nil {
		return nil, in, stepError("make", "cgroup", err)
	}
	p.group, p.limits = group, c.Limits
	go p.killer()
	own, in, err = p.openGroups()
	return own, in, stepError("open", "cgroup", err)
}

// launch starts the process by the entry program.
func (p *Process) launch(c *Command, in *groups) error {
	way, err := newPass(append([]*os.File{c.Stdin, c.Stdout, c.Stderr}, c.Files...), c.Ruleset)
	if err != nil {
		return err
	}
	filter := p.jail.filter(c)
	list := enter.List{Steps: p.jail.enteringSteps(way, c, in), Filter: filter.Program, OnListener: p.listening(filter)}
	return way.run(p.jail.program, list, func(child *reap.Child) error {
		p.first = child
		return nil
	})
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
