package download

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// ErrStalled is the error for a server that sent nothing for too long.
var ErrStalled = errors.New("the server stopped sending")

// NewTransport returns a transport whose requests fail with [ErrStalled] when the server sends
// nothing for the duration stall. It uses the environment's proxies, and shares no connections,
// so that [http.Transport.CloseIdleConnections] closes all of them.
func NewTransport(stall time.Duration) *http.Transport {
	dialer := net.Dialer{Timeout: stall}
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		ForceAttemptHTTP2:   true,
		TLSHandshakeTimeout: stall,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, address)
			return &watchedConn{conn, stall}, err
		},
	}
}

// watchedConn is a connection whose reads fail with ErrStalled if nothing arrives for a time. A write
// restarts the time: HTTP/2 reads from a connection between requests, too.
type watchedConn struct {
	net.Conn
	stall time.Duration
}

func (c *watchedConn) restart() error { return c.SetReadDeadline(time.Now().Add(c.stall)) }

func (c *watchedConn) Read(p []byte) (int, error) {
	if err := c.restart(); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = ErrStalled
	}
	return n, err
}

func (c *watchedConn) Write(p []byte) (int, error) {
	if err := c.restart(); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// ErrIntegrity is the error for a download whose content does not have the expected hash.
var ErrIntegrity = errors.New("content does not match its hash")

// Verify hashes the whole file with h and compares the result with the hex digits want. It
// then seeks back to the start of the file.
func Verify(f *os.File, h hash.Hash, want string) error {
	if err := Rewind(f); err != nil {
		return err
	}
	if _, err := io.Copy(h, f); err != nil {
		return err
	}
	if hex.EncodeToString(h.Sum(nil)) != want {
		return ErrIntegrity
	}
	return Rewind(f)
}

// Open opens a file whose content has the hex digits want by h, see [Verify].
func Open(path string, h hash.Hash, want string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err := Verify(f, h, want); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", filepath.Base(path), err), f.Close())
	}
	return f, nil
}

// Rewind seeks to the start of the file.
func Rewind(f *os.File) error {
	_, err := f.Seek(0, io.SeekStart)
	return err
}

// Reporter writes the progress of a build or an import: a line for each slow step.
type Reporter struct{ w io.Writer }

// NewReporter returns a Reporter that writes to w. If w is nil, it discards everything.
func NewReporter(w io.Writer) *Reporter {
	return &Reporter{cmp.Or(w, io.Discard)}
}

// Line writes one line. It ignores errors: progress is not worth failing for.
func (r *Reporter) Line(format string, args ...any) {
	_, _ = fmt.Fprintf(r.w, format+"\n", args...)
}

// Fetch writes the line of a download of size bytes, at most 0 if unknown.
func (r *Reporter) Fetch(what string, size int64) {
	if size > 0 {
		what = fmt.Sprintf("%s (%.1f MB)", what, float64(size)/1e6)
	}
	r.Line("fetch %s", what)
}
