package bench

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"
)

// streamed measures how fast a callback receives a gigabyte of output that is not kept. For
// bare node, cat receives it.
func (m *measurer) streamed(ctx context.Context) (s, base Samples, err error) {
	const piece = 64 << 10 // bytes that the program prints at once
	p := program{name: "stream", rounds: m.options.work(1 << 30 / piece)}
	n := p.rounds * piece
	return sample(ctx, m.options.fewer(40), m.sides(), func(side Side) (float64, error) {
		began := time.Now()
		got := 0
		var err error
		if side == Bare {
			got, err = n, m.bare.runIntoCat(ctx, p)
		} else {
			_, err = p.run(ctx, m.lasting[side], func(b []byte) { got += len(b) })
		}
		if err == nil && got != n {
			err = fmt.Errorf("received %d bytes of %d", got, n)
		}
		return float64(n) / 1e6 / time.Since(began).Seconds(), err
	}, nil)
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
