package runtime

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// supply is the standard input of a run that is waited for or followed: a reader's.
type supply struct {
	from   io.Reader // nil: empty
	to     *os.File
	failed chan error // at most one: the reader's
}

func newSupply(o RunOptions) supply { return supply{from: o.Stdin, failed: make(chan error, 1)} }

func (in *supply) open(s *streams) (err error) {
	in.to, err = s.pipeIn()
	return err
}

func (in *supply) pump() {
	if in.from == nil {
		in.to.Close()
		return
	}
	// Not waited for: the caller's Read may block for ever.
	go func() {
		from := &failing{from: in.from}
		_, _ = io.Copy(in.to, from) // the run need not read it all
		if from.err != nil {
			in.failed <- from.err
		}
		in.to.Close()
	}()
}

// failure is why the run did not get all of its input, as far as that is the caller's
// doing.
func (in *supply) failure() error {
	select {
	case err := <-in.failed:
		return fmt.Errorf("read standard input: %w", err)
	default:
		return nil
	}
}

// failing tells the errors of a reader from those of who is written to.
type failing struct {
	from io.Reader
	err  error
}

func (f *failing) Read(b []byte) (int, error) {
	n, err := f.from.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		f.err = err
	}
	return n, err
}
