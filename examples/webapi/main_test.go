package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"gaol/examples/internal/exampletest"
	"gaol/runtime"
)

// The test makes the requests that README.md shows.
func TestExample(t *testing.T) {
	exampletest.Run(t, func(ctx context.Context, out io.Writer, o runtime.Options) error {
		api, err := newAPI(o)
		if err != nil {
			return err
		}
		server := httptest.NewServer(api.handler())
		defer server.Close()
		for _, q := range []struct{ path, body string }{
			{"/run", `{"code": "console.log('hi'); __return({ sum: 1 + 2 })"}`},
			{"/run", `{"code": "for (;;);", "timeoutMs": 300}`},
			{"/run", `{"code": "await fetch('http://192.0.2.1/')"}`},
			{"/run", `{"kode": "1"}`},
			{"/stream", `{"code": "for await (const c of process.stdin) console.log('read', c.length); process.exit(3)", "stdin": "hello"}`},
		} {
			if err := post(out, server, q.path, q.body); err != nil {
				return err
			}
		}
		return api.close()
	})
}

func post(out io.Writer, server *httptest.Server, path, body string) error {
	res, err := server.Client().Post(server.URL+path, "application/json", strings.NewReader(body))
	if err != nil {
		return err
	}
	text, err := io.ReadAll(res.Body)
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	for i, l := range lines {
		// Stack traces have lines of Node's own, which differ between versions.
		if at := strings.Index(l, `"stderr":"`); at >= 0 {
			end := strings.Index(l, `","exitCode"`)
			lines[i] = l[:at] + `"stderr":"…` + l[end:]
		}
	}
	fmt.Fprintf(out, "POST %s %s\n%d %s\n", path, body, res.StatusCode, strings.Join(lines, "\n"))
	return errors.Join(err, res.Body.Close())
}

// serve stops when its context ends.
func TestServeStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := serve(ctx, "127.0.0.1:0", exampletest.Options(t)); err != nil && !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
}
