package bench

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"
)

const (
	streamPiece  = 64 << 10 // bytes that the program prints at once
	streamPieces = 1 << 14  // 1 GiB in all
)

// streams measures how fast a callback receives output that is not kept. For bare
// node, cat receives it.
func (m *measurer) streams(ctx context.Context) error {
	w, name := m.scaled(workload{program: stream, what: "1 GiB of output by OnStdout, against node | cat"})
	rates, err := m.values(ctx, m.options.fewer(40), func(side Side) (float64, error) {
		began := time.Now()
		n := int64(w.rounds) * streamPiece
		err := m.stream(ctx, side, w.program, n)
		return float64(n) / 1e6 / time.Since(began).Seconds(), err
	})
	if err == nil {
		m.add(againstBare(callbackID, name, "MB/s", rates.percentiles(50)))
	}
	return err
}

// stream runs the program once, which must print n bytes.
func (m *measurer) stream(ctx context.Context, side Side, p program, n int64) error {
	if side == Bare {
		return m.bare.runIntoCat(ctx, p)
	}
	var got int64
	o := p.runOptions()
	o.OnStdout = func(b []byte) { got += int64(len(b)) }
	res, err := m.lasting[side].Run(ctx, p.code(), o)
	if err == nil {
		err = succeeded(p, res)
	}
	if err == nil && got != n {
		err = fmt.Errorf("received %d bytes of %d", got, n)
	}
	return err
}

// runIntoCat starts Node with its output piped to the host's cat, and waits for both.
func (n *bareNode) runIntoCat(ctx context.Context, p program) error {
	node, cat := n.command(ctx, p), exec.CommandContext(ctx, "cat") // cat's output goes to /dev/null
	pipe, err := node.StdoutPipe()
	if err != nil {
		return err
	}
	cat.Stdin = pipe // an *os.File, which cat inherits
	if err := node.Start(); err != nil {
		return err
	}
	err = cat.Run()
	return errors.Join(err, pipe.Close(), node.Wait())
}
