package settings

import (
	"os"
	"path/filepath"
	"testing"
)

// An origin becomes part of a header.
func TestFrameAncestors(t *testing.T) {
	for origin, ok := range map[string]bool{
		"https://docs.example.com": true, "http://localhost:8080": true, "http://127.0.0.1": true, "https://[::1]:8443": true,
		"": false, "*": false, "'self'": false, "docs.example.com": false, "https://": false, "https://*.example.com": false,
		"https://docs.example.com/": false, "https://docs.example.com/path": false, "https://user@docs.example.com": false,
		"https://Docs.example.com": false, "https://a.example; script-src *": false, "https://a.example;x": false, "https://a.example https://b.example": false,
		"https://a.example\nx": false, "data:text/html,x": false, "https://a.example:": false, "https://a.example:123456": false,
	} {
		s := &Settings{Playground: Playground{FrameAncestors: []string{"https://ok.example", origin}}}
		if err := s.checkHosts(); (err == nil) != ok {
			t.Errorf("%q: %v, want valid %t", origin, err, ok)
		}
	}
}

// The flag turns the page off, whatever is in the file; without it, the file decides.
func TestNoPlayground(t *testing.T) {
	file := filepath.Join(t.TempDir(), "server.json")
	if err := os.WriteFile(file, []byte(`{"playground": {"off": true, "frameAncestors": ["https://docs.example"]}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		path      string
		flag, off bool
	}{{"", false, false}, {"", true, true}, {file, false, true}, {file, true, true}} {
		s, err := Read(tc.path, Overrides{NoPlayground: tc.flag})
		if err != nil || s.Playground.Off != tc.off {
			t.Errorf("%q, flag %t: %v, %v", tc.path, tc.flag, s, err)
		}
	}
}
