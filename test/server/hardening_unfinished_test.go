package server

import (
	"encoding/json"
	"io"
	goruntime "runtime"
	"testing"

	"github.com/coder/websocket"

	protocol "gaol/internal/session"
	"gaol/test/server/servertest"
)

// TestUnfinishedMessages: what sessions of a tenant have received of messages counts towards its quota bodyBytes.
func TestUnfinishedMessages(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	part := protocol.Append(nil, protocol.KindRequest, 1, make([]byte, 31<<20))
	var writers []io.WriteCloser
	var sessions []rawSession
	for range 24 {
		socket := openSession(t, s)
		w, err := socket.Writer(t.Context(), websocket.MessageBinary)
		if err == nil {
			_, err = w.Write(part) // returns when the server has read nearly all of it
		}
		if err != nil {
			t.Fatal(err)
		}
		writers, sessions = append(writers, w), append(sessions, socket)
	}
	goruntime.GC()
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	if got := m.HeapAlloc >> 20; got > 256 { // the quota is 128 MiB, and the test has 31
		t.Errorf("the server keeps %d MiB", got)
	}
	refused := 0
	for i, w := range writers {
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		_, message, err := sessions[i].Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		f, err := protocol.Parse(protocol.Server, message)
		var p protocol.Problem
		if err != nil || f.Kind != protocol.KindError || json.Unmarshal(f.Body, &p) != nil {
			t.Fatalf("%v: kind %d", err, f.Kind)
		}
		if p.Code == "quota" {
			refused++
		} else if p.Status != 422 { // not JSON
			t.Errorf("%+v", p)
		}
	}
	if refused < 20 || refused == 24 {
		t.Errorf("%d of 24 messages were refused", refused)
	}
}
