package egress

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"gaol/test/internettest"
)

// A server that is as lenient as one can be, and takes whatever arrives for a request, gets none
// with another host: whichever byte is in the first line, and however that is sent.
func TestLenientServer(t *testing.T) {
	w := newWorld(t, byName, Limits{}, 80)
	var mu sync.Mutex
	var got []string
	w.listen(publicV4, 80, func(c net.Conn) {
		b, _ := io.ReadAll(c)
		mu.Lock()
		defer mu.Unlock()
		got = append(got, string(b))
	})
	const rest = "\r\nHost: evil.test\r\n\r\n"
	texts := []string{"GET x" + rest, "GET" + rest, "SSH-2.0-x x" + rest, "*1" + rest, "GET x\x85Host: evil.test\x85\x85", "\x01GET / HTTP/1.1\x1eHost: evil.test\x1e\x1e"}
	for b := range 256 {
		s := string([]byte{byte(b)})
		texts = append(texts, s+"GET / HTTP/1.1"+rest, "G"+s+"ET / HTTP/1.1"+rest, "GET"+s+"/"+s+"HTTP/1.1"+rest, "GET /"+s+" HTTP/1.1"+rest, "GET / HTTP/1.1"+s+rest, s+s+s+s+rest)
	}
	address := w.address("api.example.com")
	var done sync.WaitGroup
	for i, text := range texts {
		done.Go(func() {
			c, err := w.tryDial(address, 80)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			for part := range strings.SplitAfterSeq(text, "1") {
				if i%2 == 0 { // also in one piece
					_, _ = io.WriteString(c, part)
				}
			}
			if i%2 == 1 {
				_, _ = io.WriteString(c, text)
			}
			_ = c.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, c)
		})
	}
	done.Wait()
	mu.Lock()
	defer mu.Unlock()
	for _, text := range got {
		if strings.Contains(text, "evil") {
			t.Errorf("the server got %q", text)
		}
	}
}

// Protocols in which the guest speaks first, or before it has heard the server, pass on a port where
// names count.
func TestOtherProtocols(t *testing.T) {
	w := newWorld(t, byName, Limits{}, 5432)
	for name, first := range map[string]string{
		"Redis":      "*1\r\n$4\r\nPING\r\n",
		"MongoDB":    "\x0a\x01\x00\x00\x0d\x0a\x00\x00\x00\x00\x00\x00\xdd\x07\x00\x00\x00\x0a",
		"MQTT":       "\x10\x0a\x00\x04MQTT\x04\x02\x00\x3c\x00\x0aclient\r\n",
		"PostgreSQL": "\x00\x00\x00\x29\x00\x03\x00\x00user\x00x\x00",
		"git":        "0032git-upload-pack /project.git\x00host=example.com\x00",
		"SSH":        "SSH-2.0-x Debian\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			heard := make(chan struct{})
			internettest.Listen(t, publicV4, 5432, func(c net.Conn) {
				if name == "SSH" {
					<-heard // the guest has spoken
					_, _ = io.WriteString(c, "SSH-2.0-y\r\n")
				}
				b := make([]byte, len(first))
				if _, err := io.ReadFull(c, b); err == nil {
					_, _ = fmt.Fprintf(c, "got %s", b)
					_, _ = io.Copy(c, c)
				}
			})
			c := w.dial("api.example.com", 5432)
			_, _ = io.WriteString(c, first)
			close(heard)
			want := "got " + first + "a\nb\n"
			if name == "SSH" {
				want = "SSH-2.0-y\r\n" + want
			}
			b := make([]byte, len(want)-4)
			if _, err := io.ReadFull(c, b); err != nil {
				t.Fatalf("%q, %v", b, err)
			}
			if got, err := exchange(c, "a\nb\n"); string(b)+got != want || err != nil {
				t.Errorf("got %q, %v", string(b)+got, err)
			}
		})
	}
}

// Names have cases in ASCII only.
func TestNamesFoldInASCII(t *testing.T) {
	if name, ok := hostName("\u212aite.test."); ok {
		t.Errorf("%q is the name of a host", name)
	}
	if name, ok := hostName("KITE.test."); name != "kite.test" || !ok {
		t.Errorf("%q, %v", name, ok)
	}
}
