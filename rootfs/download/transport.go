package download

import (
	"context"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"net/http"
	"os"
	"time"
)

// ErrStalled is the error for a server that sent nothing for too long.
var ErrStalled = errors.New("the server stopped sending")

// Transport is an [http.RoundTripper] that cancels a request with [ErrStalled] when the
// server sends nothing for a while. It uses the proxies that the environment names. It has
// its own connections, so that [Transport.CloseIdleConnections] can close all of them.
type Transport struct {
	*http.Transport
	stall time.Duration
}

// NewTransport returns a Transport that waits for stall at most until the next byte.
func NewTransport(stall time.Duration) *Transport {
	return &Transport{&http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		ForceAttemptHTTP2:   true,
		TLSHandshakeTimeout: stall,
	}, stall}
}

// RoundTrip implements [http.RoundTripper]. The timer runs until the body is closed.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	b := &watchedBody{ctx: ctx, cancel: cancel, stall: t.stall}
	b.watchdog = time.AfterFunc(t.stall, func() { cancel(ErrStalled) })
	resp, err := t.Transport.RoundTrip(req.WithContext(ctx))
	if err != nil {
		err = b.cause(err)
		b.stop()
		return nil, err
	}
	b.ReadCloser = resp.Body
	resp.Body = b
	return resp, nil
}

// watchedBody is a response body that restarts the watchdog with each byte.
type watchedBody struct {
	io.ReadCloser
	ctx      context.Context
	cancel   context.CancelCauseFunc
	watchdog *time.Timer
	stall    time.Duration
}

func (b *watchedBody) stop() {
	b.watchdog.Stop()
	b.cancel(nil)
}

// cause replaces the error of a request that the watchdog has canceled.
func (b *watchedBody) cause(err error) error {
	if errors.Is(context.Cause(b.ctx), ErrStalled) {
		return ErrStalled
	}
	return err
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.watchdog.Reset(b.stall)
	}
	if err != nil && err != io.EOF {
		err = b.cause(err)
	}
	return n, err
}

func (b *watchedBody) Close() error {
	defer b.stop()
	return b.ReadCloser.Close()
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

// Rewind seeks to the start of the file.
func Rewind(f *os.File) error {
	_, err := f.Seek(0, io.SeekStart)
	return err
}
