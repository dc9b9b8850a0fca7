package relay

import (
	"io"
	"net"
	"sync"

	"golang.org/x/sys/unix"

	"gaol/jail/kernfile"
)

// reset closes a connection so that the other side gets ECONNRESET.
func reset(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0) // the connection is closed in any case
	}
	_ = c.Close()
}

// waitForData waits until a TCP connection has data to read, has ended or has failed. It returns
// how many bytes to copy next: as many as a read gets without waiting, at least 1. For other connections
// it returns copyChunk.
func waitForData(c net.Conn) int64 {
	t, ok := c.(*net.TCPConn)
	if !ok {
		return copyChunk
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return copyChunk
	}
	n := 0
	_ = raw.Read(func(fd uintptr) bool { // the copy that follows returns errors and the end
		_, _, err := unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
		n, _ = unix.IoctlGetInt(int(fd), unix.SIOCINQ)
		return err != unix.EAGAIN
	})
	return min(max(int64(n), 1), copyChunk)
}

// hasEnded reports whether all that the other side has sent has arrived, and its end.
func hasEnded(c *net.TCPConn) bool {
	var info *unix.TCPInfo
	err := kernfile.Control(c, func(fd int) (err error) {
		info, err = unix.GetsockoptTCPInfo(fd, unix.SOL_TCP, unix.TCP_INFO)
		return err
	})
	return err != nil || info.State != unix.BPF_TCP_ESTABLISHED
}

const (
	// copyChunk is how much is copied before it is counted, and the most that a pipe of splice(2)
	// holds if the other side does not read.
	copyChunk = 128 << 10

	// maxSplices bounds the pipes, because their content is charged to no cgroup. Other copies go
	// through a buffer of smallChunk.
	maxSplices = 32
	smallChunk = 8 << 10
)

var (
	splices = make(chan struct{}, maxSplices)
	buffers = sync.Pool{New: func() any { return new([smallChunk]byte) }}
)

// pump copies from one connection to another until EOF, and then shuts down the other
// one's sending side. It counts bytes as soon as they are copied, not when a chunk is full.
func pump(to, from net.Conn, count func(int64)) error {
	for {
		n, err := copySome(to, from, waitForData(from))
		count(n)
		if err == io.EOF {
			return closeWrite(to)
		}
		if err != nil {
			return err
		}
	}
}

// copySome copies at most n bytes, in the kernel if both are TCP and not too many copy that way.
func copySome(to, from net.Conn, n int64) (int64, error) {
	_, fromTCP := from.(*net.TCPConn)
	if _, toTCP := to.(*net.TCPConn); fromTCP && toTCP {
		select {
		case splices <- struct{}{}:
			defer func() { <-splices }()
			return io.CopyN(to, from, n)
		default:
		}
	}
	b := buffers.Get().(*[smallChunk]byte)
	defer buffers.Put(b)
	got, err := from.Read(b[:min(n, smallChunk)])
	if got == 0 {
		return 0, err
	}
	written, failed := to.Write(b[:got])
	return int64(written), failed // the next read returns err again
}

// closeWrite shuts down the sending side of a connection, if that is possible.
func closeWrite(c net.Conn) error {
	if t, ok := c.(interface{ CloseWrite() error }); ok {
		return t.CloseWrite()
	}
	return nil
}

// countedConn counts the bytes read from and written to a server.
type countedConn struct {
	net.Conn
	of *connection
}

func (c *countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.of.countIn(int64(n))
	return n, err
}

func (c *countedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.of.countOut(int64(n))
	return n, err
}

func (c *countedConn) CloseWrite() error { return closeWrite(c.Conn) }
