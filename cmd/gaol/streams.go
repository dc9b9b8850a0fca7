package main

import (
	"context"
	"fmt"
	"io"
	"math"

	"gaol/runtime"
)

// streams hands a run's output on while it runs. With --json it does nothing.
type streams struct {
	out  []*passage
	both *interleaved // nil without --interleave
}

// passage is one stream on its way out. Its write is called from one goroutine
// at a time, and its fields are read after the run.
type passage struct {
	name   string
	w      io.Writer
	left   int64 // bytes that may still go through
	limit  size
	cut    bool
	err    error
	cancel context.CancelCauseFunc
}

// passOn makes the streams of a run with flags f. When one can't be written
// any more, cancel ends the run: nobody would see what it does.
func (a *app) passOn(f *runFlags, cancel context.CancelCauseFunc) *streams {
	if f.json && f.interleave {
		return &streams{both: newInterleaved(f.maxOutput)}
	}
	if f.json {
		return &streams{}
	}
	limit := size(math.MaxInt64)
	if f.set.Changed("max-output") {
		limit = f.maxOutput
	}
	open := func(name string, w io.Writer) *passage {
		return &passage{name: name, w: w, left: int64(limit), limit: limit, cancel: cancel}
	}
	return &streams{out: []*passage{open("standard output", a.stdout), open("standard error", a.stderr)}}
}

// attach makes o's run write to s.
func (s *streams) attach(o *runtime.RunOptions) {
	if s.both != nil {
		s.both.attach(o)
	}
	if len(s.out) == 0 {
		return
	}
	o.OnStdout, o.OnStderr = s.out[0].write, s.out[1].write
}

func (p *passage) write(b []byte) {
	if p.err != nil {
		return
	}
	if int64(len(b)) > p.left {
		b, p.cut = b[:p.left], true
	}
	p.left -= int64(len(b))
	if _, err := p.w.Write(b); err != nil {
		p.err = newOutputError(p.name, err)
		p.cancel(p.err)
	}
}

// err gives the first failure to write. Only to be called after the run.
func (s *streams) err() error {
	for _, p := range s.out {
		if p.err != nil {
			return p.err
		}
	}
	return nil
}

// cuts gives a line for each stream that --max-output cut short.
func (s *streams) cuts() []string {
	var lines []string
	for _, p := range s.out {
		if p.cut {
			lines = append(lines, fmt.Sprintf("%s was cut after %s; allow more with --max-output", p.name, bytesOf(p.limit)))
		}
	}
	return lines
}
