package main

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestServeAdd(t *testing.T) {
	server, address, err := serveAdd()
	if err != nil {
		t.Fatal(err)
	}
	for body, want := range map[string]string{"[2,3]": "200 OK 5", "[2]": "200 OK 2", "{": "400 Bad Request unexpected EOF"} {
		res, err := http.Post(address, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		if got := res.Status + " " + strings.TrimSpace(string(text)); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", body, got, err, want)
		}
		res.Body.Close()
	}
	http.DefaultClient.CloseIdleConnections()
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	if res, err := http.Get(address); err == nil {
		res.Body.Close()
		t.Error("it is still served")
	}
}
