package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"time"

	"gaol/cmd/gaol/bench"
)

// streamed measures how fast a callback receives a gigabyte of output that is not kept. For
// bare node, cat receives it.
func (x *fixtures) streamed(ctx context.Context, m *bench.Measurer) (s, base bench.Samples, err error) {
	const piece = 64 << 10 // bytes that the program prints with one call
	rounds := x.work(1 << 30 / piece)
	p := newProgram("stream", strconv.Itoa(rounds))
	n := rounds * piece
	return bench.Sample(ctx, m.Options.Fewer(40), m.Sides(), func(side bench.Side) (float64, error) {
		began := time.Now()
		got := 0
		var err error
		if side == bench.Bare {
			got, err = n, runIntoCat(ctx, m.Bare, p)
		} else {
			_, err = p.Run(ctx, m.Lasting[side], func(b []byte) { got += len(b) })
		}
		if err == nil && got != n {
			err = fmt.Errorf("received %d bytes of %d", got, n)
		}
		return float64(n) / 1e6 / time.Since(began).Seconds(), err
	})
}

// runIntoCat starts Node with its output piped to the host's cat, and waits for both.
func runIntoCat(ctx context.Context, n *bench.BareNode, p bench.Program) error {
	node, err := n.Command(ctx, p)
	if err != nil {
		return err
	}
	cat := exec.CommandContext(ctx, "cat") // cat's output goes to /dev/null
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
