package work

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"runtime/debug"
	"time"

	"gaol/jail/subprocess"
)

// process is a subprocess that performs one request at a time. Requests and replies are frames: a length of
// four bytes, and as many bytes.
type process struct {
	*subprocess.Process
	expiry *time.Timer // ends it while it is idle
}

var errFrame = errors.New("a frame that is too large")

func writeFrame(w io.Writer, b []byte) error {
	frame := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(b)), uint32(len(b)))
	_, err := w.Write(append(frame, b...))
	return err
}

// readFrame allocates as the bytes arrive.
func readFrame(r io.Reader) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	n := int64(binary.BigEndian.Uint32(length[:]))
	if n > maxFrame {
		return nil, errFrame
	}
	b, err := io.ReadAll(io.LimitReader(r, n))
	if err == nil && int64(len(b)) < n {
		err = io.ErrUnexpectedEOF
	}
	return b, err
}

// exchange sends a request and returns the reply. After an error the process cannot be used any more.
func (p *process) exchange(ctx context.Context, request []byte) ([]byte, error) {
	stop := context.AfterFunc(ctx, p.Kill)
	err := writeFrame(p.Conn(), request)
	var reply []byte
	if err == nil {
		reply, err = readFrame(p.Conn())
	}
	if !stop() && err == nil { // it is being killed
		err = ctx.Err()
	}
	return reply, err
}

// maxStack bounds recursion before the limit on memory does: the kernel's OOM killer is slower.
const maxStack = maxMemory / 2

// serve performs requests in the subprocess.
func serve(host *os.File) error {
	debug.SetMaxStack(maxStack)
	debug.SetGCPercent(400) // the heap is small: by default each request or two would collect it
	for {
		request, err := readFrame(host)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		reply, err := dispatch(request)
		if err != nil {
			return err
		}
		if err := writeFrame(host, reply); err != nil {
			return err
		}
	}
}

var role *subprocess.Role

// In an init function, so that all operations of this package are defined.
func init() { role = subprocess.Register(subprocess.Role{Name: "work", Serve: serve}) }
