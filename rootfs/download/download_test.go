package download

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestVerify(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString("content"); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte("content"))
	if err := Verify(f, sha256.New(), hex.EncodeToString(sum[:])); err != nil {
		t.Error(err)
	}
	if text, err := io.ReadAll(f); err != nil || string(text) != "content" {
		t.Errorf("read %q, %v after Verify", text, err)
	}
	if err := Verify(f, sha256.New(), hex.EncodeToString(make([]byte, 32))); !errors.Is(err, ErrIntegrity) {
		t.Errorf("wrong hash: %v", err)
	}
}

// TestTransportStalls checks that the client gives up a server that stops before the body or in it, and waits for a slow
// server that continues. On a busy machine, the slow server is tried again.
func TestTransportStalls(t *testing.T) {
	for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
		t.Run(proto, func(t *testing.T) {
			stall := 500 * time.Millisecond
			for ; testStalls(t, proto, stall) && stall < 20*time.Second; stall *= 4 {
			}
			if stall > 20*time.Second {
				t.Error("a slow server is given up")
			}
		})
	}
}

// testStalls reports whether a server that sends slowly was given up.
func testStalls(t *testing.T, proto string, stall time.Duration) (slow bool) {
	t.Helper()
	done := make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/silent" {
			<-done
			return
		}
		for range 12 {
			_, _ = w.Write([]byte("x"))
			w.(http.Flusher).Flush()
			time.Sleep(stall / 8)
		}
		if r.URL.Path == "/half" {
			<-done
		}
	}))
	server.EnableHTTP2 = proto == "HTTP/2.0"
	server.StartTLS()
	defer server.Close()
	defer close(done)
	transport := NewTransport(stall)
	transport.TLSClientConfig = &tls.Config{RootCAs: server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
	client := &http.Client{Transport: transport}
	defer client.CloseIdleConnections()
	for path, want := range map[string]error{"/silent": ErrStalled, "/half": ErrStalled, "/slow": nil} {
		resp, err := client.Get(server.URL + path)
		if err == nil {
			if resp.Proto != proto {
				t.Errorf("%s: %s", path, resp.Proto)
			}
			_, err = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		if path == "/slow" && errors.Is(err, ErrStalled) {
			slow = true
		} else if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
	}
	return slow
}
