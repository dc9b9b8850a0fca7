package download

import (
	"crypto/sha256"
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

// TestTransportStalls checks that a server that stops before or in the body is given up, and
// that one that sends slowly is not.
func TestTransportStalls(t *testing.T) {
	const stall = 500 * time.Millisecond
	done := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/silent" {
			<-done
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
	defer server.Close()
	defer close(done)
	client := &http.Client{Transport: NewTransport(stall)}
	defer client.CloseIdleConnections()
	for path, want := range map[string]error{"/silent": ErrStalled, "/half": ErrStalled, "/slow": nil} {
		resp, err := client.Get(server.URL + path)
		if err == nil {
			_, err = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
	}
}
