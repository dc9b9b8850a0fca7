package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"gaol/runtime"
)

const (
	streamPiece  = 64 << 10 // bytes that the program prints at once
	streamPieces = 1 << 14  // 1 GiB in all
)

// taking is a way to take in what a run prints. It returns how many bytes that was.
type taking func(ctx context.Context, rt *runtime.NodeRuntime, p program) (int64, error)

// streams measures how fast output goes by that nobody keeps: by a callback, and by
// events. On bare node's side it is cat that takes it in.
func (m *measurer) streams(ctx context.Context) error {
	w := workload{program: stream}
	for _, way := range []struct {
		id   ID
		what string
		take taking
	}{
		{callbackID, "1 GiB of output by OnStdout, against node | cat", byCallback},
		{eventsID, "1 GiB of output by events, against node | cat", byEvents},
	} {
		w.what = way.what
		w, name := m.scaled(w)
		rates, err := m.rates(ctx, w.program, way.take)
		if err != nil {
			return err
		}
		m.add(againstBare(way.id, name, "MB/s", rates))
	}
	return nil
}

// rates gives the medians, of whole runs.
func (m *measurer) rates(ctx context.Context, p program, take taking) (Values, error) {
	all := map[Side][]float64{}
	err := m.turns(ctx, m.options.fewer(40), func(side Side) error {
		began := time.Now()
		n := int64(p.rounds) * streamPiece
		err := m.stream(ctx, side, p, take, n)
		all[side] = append(all[side], float64(n)/1e6/time.Since(began).Seconds())
		return err
	})
	medians := Values{}
	for side, rates := range all {
		medians[side] = percentile(rates, 50)
	}
	return medians, err
}

// stream has n bytes go by once.
func (m *measurer) stream(ctx context.Context, side Side, p program, take taking, n int64) error {
	if side == Bare {
		return m.bare.intoCat(ctx, p)
	}
	got, err := take(ctx, m.lasting[side], p)
	if err == nil && got != n {
		err = fmt.Errorf("%d bytes of %d came", got, n)
	}
	return err
}

func byCallback(ctx context.Context, rt *runtime.NodeRuntime, p program) (n int64, err error) {
	o := p.runOptions()
	o.OnStdout = func(b []byte) { n += int64(len(b)) }
	res, err := rt.Run(ctx, p.code(), o)
	return n, succeeded(p, res, err)
}

func byEvents(ctx context.Context, rt *runtime.NodeRuntime, p program) (n int64, err error) {
	s := rt.FollowRun(ctx, p.code(), p.runOptions())
	for e := range s.Events() {
		if out, ok := e.(runtime.StdoutEvent); ok {
			n += int64(len(out.Data))
		}
	}
	res, err := s.Result()
	return n, succeeded(p, res, err)
}

func succeeded(p program, res *runtime.Result, err error) error {
	if err == nil && res.ExitCode != 0 {
		err = fmt.Errorf("%s ended with exit code %d and cause %q: %.300s", p.file(), res.ExitCode, res.Cause, res.Stderr)
	}
	return err
}

// intoCat starts Node with the host's cat behind it, and waits for both.
func (n *bareNode) intoCat(ctx context.Context, p program) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	node, cat := n.command(ctx, p), exec.CommandContext(ctx, "cat")
	node.Stdout, cat.Stdin = w, r // what cat prints goes to /dev/null
	err = cat.Start()
	r.Close()
	if err != nil {
		w.Close()
		return err
	}
	err = node.Run()
	w.Close()
	return errors.Join(err, cat.Wait())
}
