package jail

import (
	"context"
	"errors"
	"os"
	"strconv"

	"github.com/opencontainers/runc/libcontainer"

	"gaol/jail/cgroup"
	"gaol/jail/enter"
)

// firstExtraFile is the descriptor that the first of a process's extra files gets.
const firstExtraFile = 3

// Start starts a process in the jail and returns when its program runs.
// A program that does not exist is a [*StepError] that wraps fs.ErrNotExist.
func (j *Jail) Start(ctx context.Context, c Command) (*Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	name, err := j.admit()
	if err != nil {
		return nil, err
	}
	p, err := j.startIn(name, &c)
	if err != nil {
		j.runs.Done()
		return nil, err
	}
	j.register(p)
	go p.reap()
	return p, nil
}

// admit counts a process in, so that Close waits for it, and names it.
func (j *Jail) admit() (string, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return "", ErrClosed
	}
	j.runs.Add(1)
	j.serial++
	return "r" + strconv.Itoa(j.serial), nil
}

// register makes p one that Close kills; if Close has begun, that is now.
func (j *Jail) register(p *Process) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.live[p] = struct{}{}
	if j.closed {
		p.Kill()
	}
}

func (j *Jail) startIn(name string, c *Command) (*Process, error) {
	group, err := cgroup.New(j.groupPath(name), c.Limits)
	if err != nil {
		return nil, stepError("make", "cgroup", err)
	}
	p := &Process{jail: j, group: group, done: make(chan struct{})}
	if err := p.launch(name, c); err != nil {
		return nil, errors.Join(err, p.abandon())
	}
	return p, nil
}

// launch has libcontainer start the entry program and hands it the filter.
func (p *Process) launch(name string, c *Command) error {
	host, child, err := socketPair()
	if err != nil {
		return stepError("make", "socket", err)
	}
	defer host.Close()
	if err := p.jail.own(c); err != nil {
		return stepError("own", "pipes", err)
	}
	setup := strconv.Itoa(firstExtraFile + len(c.Files))
	p.process = &libcontainer.Process{
		Args:           append([]string{enter.Path, setup, c.Path}, c.Args...),
		Env:            c.Env,
		UID:            GuestUID,
		GID:            GuestGID,
		Cwd:            c.Dir,
		Stdin:          c.Stdin,
		Stdout:         c.Stdout,
		Stderr:         c.Stderr,
		ExtraFiles:     append(append([]*os.File(nil), c.Files...), child),
		Rlimits:        rlimits(c),
		SubCgroupPaths: map[string]string{},
	}
	for _, controller := range p.group.Controllers() {
		p.process.SubCgroupPaths[controller] = name
	}
	err = p.jail.container.Start(p.process)
	child.Close()
	if err != nil {
		return stepError("start", c.Path, err)
	}
	p.started = true
	return hand(host, c.Path, enter.Setup{Filter: p.jail.spec.Filter})
}

// hand tells the entry program what to do, and names the step that failed.
func hand(host *os.File, program string, s enter.Setup) error {
	err := enter.Hand(host, s)
	if failed, ok := errors.AsType[*enter.StepError](err); ok {
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
