package stdio

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// stdin copies a reader to a run's standard input.
type stdin struct {
	from   io.Reader // nil: empty
	to     *os.File
	failed chan error // has at most one element: the reader's error
}

func (in *stdin) start() {
	if in.from == nil {
		in.to.Close()
		return
	}
	// Nothing waits for this goroutine: the caller's Read may block forever.
	go func() {
		from := &errorReader{Reader: in.from}
		_, _ = io.Copy(in.to, from) // the run need not read everything
		if from.err != nil {
			in.failed <- from.err
		}
		in.to.Close()
	}()
}

// err returns the reader's error, if that is why the run did not get all of its input.
func (in *stdin) err() error {
	select {
	case err := <-in.failed:
		return fmt.Errorf("read standard input: %w", err)
	default:
		return nil
	}
}

// errorReader remembers the reader's error, which io.Copy does not distinguish from the
// writer's.
type errorReader struct {
	io.Reader
	err error
}

func (r *errorReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}
