package runtime

import (
	"context"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"gaol/jail"
)

// streams are what connects a run with its host. guest/prelude.cjs says which
// descriptor is what.
type streams struct {
	host  []*os.File // our ends
	guest []*os.File // the run's descriptors from 0 on, closed once it has them

	ends    ends
	control *control // nil for what is no program of Node
	pumps   sync.WaitGroup
	feed    atomic.Pointer[feed] // nil while nobody follows
}

// ends are where a run's standard streams lead to: there are captured, attached and
// onTerminal.
type ends interface {
	// open makes the run's descriptors 0 to 2.
	open(s *streams) error

	// pump begins to move the data.
	pump(s *streams)

	// drain ends the input and sees to it that all output is taken in. The run has
	// ended, and the read deadlines of all that s has for the host are over.
	drain()

	// result fills in what was taken in. The tail is the end of a standard error of
	// which that is not all.
	result(res *Result) (stderrTail []byte, err error)
}

func openStreams(ctx context.Context, t *task, e ends) (*streams, error) {
	s := &streams{ends: e}
	err := e.open(s)
	if err == nil && t.program != nil {
		err = s.openControl(ctx, t)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// openControl adds what only a program of Node gets: its own text, and the channel
// to the host. ctx is the run's.
func (s *streams) openControl(ctx context.Context, t *task) error {
	out, err := s.pipeOut()
	if err != nil {
		return err
	}
	s.control = &control{from: out, limit: t.program.value, told: t.told, cells: t.cells}
	text, err := t.program.open()
	if err != nil {
		return err
	}
	s.guest = append(s.guest, text)
	if len(t.program.functions) == 0 && t.cells == nil {
		return nil
	}
	in, err := s.pipeIn()
	if err != nil {
		return err
	}
	s.control.out = newOutbox(in)
	if len(t.program.functions) == 0 {
		return nil
	}
	s.control.calls = newCalls(ctx, t.program.functions, t.calls, s.control.out)
	return nil
}

// pipeOut makes the run's next descriptor one that we read from.
func (s *streams) pipeOut() (*pipeReader, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	s.host, s.guest = append(s.host, r), append(s.guest, w)
	return &pipeReader{file: r}, nil
}

// pipeIn makes the run's next descriptor one that we write to.
func (s *streams) pipeIn() (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	s.host, s.guest = append(s.host, w), append(s.guest, r)
	return w, nil
}

func (s *streams) start(ctx context.Context, j *jail.Jail, c jail.Command) (*jail.Process, error) {
	c.Stdin, c.Stdout, c.Stderr, c.Files = s.guest[0], s.guest[1], s.guest[2], s.guest[3:]
	p, err := j.Start(ctx, c)
	s.closeGuest()
	return p, err
}

// pump moves the data until drain or the end of each stream.
func (s *streams) pump() {
	if s.control != nil {
		s.pumps.Go(s.control.pump)
	}
	s.ends.pump(s)
}

// drain waits until all that a run has written is taken in. The run has ended.
func (s *streams) drain() {
	if s.control != nil {
		s.control.endCalls()
	}
	s.feed.Load().over()
	for _, f := range s.host {
		_ = f.SetReadDeadline(time.Now()) // fails only for what is closed, or never read
	}
	s.ends.drain()
	s.pumps.Wait()
}

func (s *streams) result() (res *Result, stderrTail []byte, err error) {
	res = &Result{}
	stderrTail, err = s.ends.result(res)
	if s.control != nil {
		s.control.result(res)
	}
	return res, stderrTail, err
}

func (s *streams) closeGuest() {
	for _, f := range s.guest {
		f.Close()
	}
	s.guest = nil
}

func (s *streams) close() {
	if s.control != nil {
		s.control.endCalls()
	}
	s.closeGuest()
	for _, f := range s.host {
		f.Close()
	}
}
