package server

import (
	"net/http"
	"strings"
	"testing"

	"gaol/test/server/servertest"
)

// A guest that forks without end is bounded, and ends with its process.
func testForkBomb(t *testing.T, c tenantClient, _ string) {
	sandbox := c.sandbox(t, object{"limits": object{"pids": 16}})
	// The first shell forks once, before the others: one whose fork fails ends.
	p := c.spawn(t, sandbox, object{"command": "sh", "args": []string{"-c", "trap '' TERM INT HUP; f() { f & f & sleep 1000; }; f & echo x; read a"}})
	e := c.follow(t, "GET", p+"/events", nil, "")
	e.until(t, "x\n")
	c.send(t, "POST", p+"/signal", object{"signal": "SIGTERM", "group": true}, http.StatusNoContent, nil)
	c.evaluate(t, c.context(t, sandbox, object{}), "1") // others are not affected
	c.send(t, "DELETE", p, nil, http.StatusNoContent, nil)
	if all := e.rest(t); all[len(all)-1].name != "result" {
		t.Errorf("%+v", all)
	}
	if n := c.active(t, sandbox); n != 1 {
		t.Errorf("%d runs, want the context's", n)
	}
}

// Clients that vanish while they wait, write or follow leave nothing waiting.
func testVanishedClients(t *testing.T, c tenantClient, sandbox string) {
	p := c.spawn(t, sandbox, object{"command": "sh", "args": []string{"-c", "echo up; sleep 1000"}})
	c.follow(t, "GET", p+"/events", nil, "").until(t, "up\n")
	for range 20 {
		c.vanishing(t, "GET", p+"/wait", "")
		c.vanishing(t, "GET", p+"/events", "")
	}
	// The first one's data is still waiting, and bounds the rest.
	c.vanishing(t, "POST", p+"/stdin", `{"text":"`+strings.Repeat("x", 1<<20)+`"}`)
	for range 20 {
		c.vanishing(t, "POST", p+"/stdin", `{"text":"y"}`)
	}
	c.send(t, "DELETE", p, nil, http.StatusNoContent, nil)
	c.send(t, "POST", sandbox+"/run", object{"code": "1"}, http.StatusOK, nil)
}

// vanishing sends a request and closes the connection without reading the response.
func (c tenantClient) vanishing(t *testing.T, method, path, body string) {
	t.Helper()
	conn, err := servertest.Dial(c.Socket, ada)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, "http://gaol"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if err := r.Write(conn); err != nil {
		t.Error(err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
}
