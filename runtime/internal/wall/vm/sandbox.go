package vm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"time"

	"gaol/runtime/internal/sandbox"
	"gaol/runtime/internal/sandbox/remote"
)

// bootTime is how long a machine may take to make a sandbox.
const bootTime = 30 * time.Second

// The errors of New.
var (
	errBoot  = errors.New("the virtual machine has not started in time")
	errEnded = errors.New("the virtual machine has ended")
)

// New makes a sandbox in a virtual machine.
func New(ctx context.Context, spec *sandbox.Spec) (sandbox.Sandbox, error) {
	m, err := start(ctx, spec)
	if err != nil {
		return nil, fmt.Errorf("start a virtual machine: %w", err)
	}
	inside := *spec
	inside.Image, inside.DiskDir = imagePath(0), "" // the tree is in the machine's memory
	if w := spec.Warm; w != nil {
		warm := *w
		warm.Image = imagePath(len(images(spec)) - 1)
		inside.Warm = &warm
	}
	ctx, cancel := context.WithTimeoutCause(ctx, time.Duration(m.slow*float64(bootTime)), errBoot)
	defer cancel()
	if err := m.awaitBoot(ctx); err != nil {
		return nil, m.output.Explain("console", errors.Join(err, m.conn.Close(), m.end()))
	}
	s, err := remote.New(ctx, &remote.Machine{Conn: m.conn, Place: place, End: m.end, Slow: m.slow}, &inside)
	if err != nil {
		return nil, m.output.Explain("console", err) // remote has called end
	}
	return s, nil
}

// awaitBoot waits until the agent has written ready: it reads nothing before, and writes to the connection have a time limit.
func (m *machine) awaitBoot(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() { _ = m.conn.SetReadDeadline(time.Unix(1, 0)) })() // it is not closed yet
	_, err := io.ReadFull(m.conn, make([]byte, len(ready)))
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return errEnded
	}
	return nil
}

// ready is what the agent writes first.
const ready = "\n"

// images are the folders of the images that the agent uses.
func images(spec *sandbox.Spec) []string {
	list := []string{spec.Image}
	if w := spec.Warm; w != nil && w.Image != spec.Image {
		list = append(list, w.Image)
	}
	return list
}

// imagePath is where Boot mounts the nth disk.
func imagePath(n int) string { return "/images/" + strconv.Itoa(n) }

// place implements remote.Machine. The options of a microVM have no files of the host.
func place(fs.File) (string, error) { return "", fs.ErrInvalid }
