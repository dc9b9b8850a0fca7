package network

import (
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"gaol/runtime"
	"gaol/test/harness"
)

// connectionKey is the key of a connection's number in the context of its requests.
type connectionKey struct{}

// newWebServer returns one with an unusual response for each path.
func newWebServer() *http.Server {
	var connections atomic.Int64
	waiting, canceled := make(chan string, 100), make(chan string, 100)
	mux := http.NewServeMux()
	for path, serve := range map[string]http.HandlerFunc{
		"/echo": serveEcho, "/gzip": serveGzip, "/trailers": serveTrailers, "/early": serveEarlyHints,
		"/headers": serveHeaders, "/cut": serveCut, "/raw": serveRaw,
	} {
		mux.HandleFunc(path, serve)
	}
	mux.HandleFunc("/status", func(w http.ResponseWriter, r *http.Request) {
		code, _ := strconv.Atoi(r.URL.Query().Get("code"))
		w.WriteHeader(code)
	})
	mux.HandleFunc("/connection", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Context().Value(connectionKey{}))
	})
	// The server sees that a client gives up. It reports which one waits, and which one does no more.
	mux.HandleFunc("/wait", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("flush") {
			_ = http.NewResponseController(w).Flush()
		}
		waiting <- r.URL.RawQuery
		<-r.Context().Done()
		canceled <- r.URL.RawQuery
	})
	mux.HandleFunc("/waiting", serveNext(waiting))
	mux.HandleFunc("/canceled", serveNext(canceled))
	return &http.Server{Handler: mux, ConnContext: func(ctx context.Context, _ net.Conn) context.Context {
		return context.WithValue(ctx, connectionKey{}, connections.Add(1))
	}}
}

// serveNext returns the next text that is sent to a channel.
func serveNext(from <-chan string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case text := <-from:
			_, _ = io.WriteString(w, text)
		case <-r.Context().Done():
		}
	}
}

// serveEcho describes the request.
func serveEcho(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Has("refuse") {
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		return
	}
	hash := sha256.New()
	n, err := io.Copy(hash, r.Body)
	r.Header.Del("Connection") // of a single hop
	_ = json.NewEncoder(w).Encode(map[string]any{
		"method": r.Method, "target": r.RequestURI, "proto": r.Proto, "host": r.Host, "header": r.Header,
		"length": r.ContentLength, "encoding": r.TransferEncoding, "bytes": n, "sum": fmt.Sprintf("%x", hash.Sum(nil)), "err": err,
	})
}

func serveGzip(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Encoding", "gzip")
	z := gzip.NewWriter(w)
	_, _ = io.WriteString(z, strings.Repeat("compressed ", 10000))
	_ = z.Close()
}

func serveTrailers(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Trailer", "X-Sum")
	_, _ = io.WriteString(w, "body")
	w.Header().Set("X-Sum", "1234")
}

func serveEarlyHints(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Link", "</style.css>; rel=preload")
	w.WriteHeader(http.StatusEarlyHints)
	_, _ = io.WriteString(w, "late")
}

func serveHeaders(w http.ResponseWriter, _ *http.Request) {
	w.Header()["Set-Cookie"] = []string{"a=1; Path=/", "b=2; HttpOnly"}
	w.Header().Set("X-Long", strings.Repeat("x", 8<<10))
	w.Header().Set("X-Latin", "caf\xe9")
	w.Header().Set("X-Empty", "")
	w.Header()["Date"], w.Header()["Content-Type"] = nil, nil
	_, _ = io.WriteString(w, "<html>")
}

// serveCut closes the connection in the middle of the body.
func serveCut(w http.ResponseWriter, r *http.Request) {
	if !r.URL.Query().Has("chunked") {
		w.Header().Set("Content-Length", "100")
	}
	_, _ = io.WriteString(w, "half")
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// serveRaw takes the connection over, and sends everything back after its end.
func serveRaw(w http.ResponseWriter, _ *http.Request) {
	c, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer c.Close()
	_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n")
	all, err := io.ReadAll(rw)
	fmt.Fprintf(c, "%s, %v", all, err)
}

// Clients of HTTP get the same responses as outside, and the server the same requests.
func TestHTTP(t *testing.T) {
	ca := newInternet(t)
	serve(t, ca, newWebServer())
	for _, scheme := range []string{"http", "https"} {
		t.Run(scheme, func(t *testing.T) { compare(t, ca, "http.mjs", scheme+"://"+host) })
	}
}

// Node trusts the authorities of NODE_EXTRA_CA_CERTS, and no others.
func TestExtraAuthorities(t *testing.T) {
	ca := newInternet(t)
	serve(t, ca, newWebServer())
	const code = `console.log(await fetch('https://api.example.com/status?code=200').then(res => res.status, err => err.cause.code))`
	perLauncher(t, func(t *testing.T, l runtime.Launcher) {
		rt := harness.CreateExact(t, options(ca, l))
		for file, want := range map[string]string{caFile: "200\n", "": "UNABLE_TO_VERIFY_LEAF_SIGNATURE\n"} {
			o := runtime.RunOptions{}
			if file != "" {
				o.Env = map[string]string{"NODE_EXTRA_CA_CERTS": file}
			}
			if res := harness.Run(t, rt, code, o); string(res.Stdout) != want {
				t.Errorf("with %q: got %q, want %q; stderr %s", file, res.Stdout, want, res.Stderr)
			}
		}
	})
}

// uploading sends bodies as curl does on its own, and prints the responses.
const uploading = `
set -e
head -c 3000000 /dev/zero > "$2/big"
ask() { curl --silent --show-error --fail --cacert "$CA" --header 'User-Agent: curl' --write-out '\n%{http_code} %{num_redirects}\n' "$@"; }
ask --data-binary "@$2/big" "$1/echo"
ask --header 'Transfer-Encoding: chunked' --upload-file - "$1/echo" < "$2/big"
ask --form "file=@$2/big;filename=x" "$1/status?code=200"
ask --compressed "$1/gzip" | wc -c
ask --output /dev/null "$1/headers" "$1/trailers" "$1/early"
ask --location "$1//status?code=200"
rm "$2/big"
`

// curl sends and gets the same as outside.
func TestCurl(t *testing.T) {
	ca := newInternet(t)
	serve(t, ca, newWebServer())
	for _, scheme := range []string{"http", "https"} {
		url := scheme + "://" + host
		want := plain(t, t.TempDir(), []string{"CA=" + ca.File}, "sh", "-c", uploading, "sh", url, t.TempDir())
		perLauncher(t, func(t *testing.T, l runtime.Launcher) {
			rt := harness.CreateExact(t, options(ca, l))
			if got := command(t, rt, nil, "sh", "-c", uploading, "sh", url, "/tmp"); got != strings.TrimSpace(want) {
				t.Errorf("%s: got\n%s\nwant\n%s", scheme, got, want)
			}
		})
	}
}
