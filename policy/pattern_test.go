package policy

import (
	"strings"
	"testing"
	"time"
)

func TestMatchPath(t *testing.T) {
	tests := []struct {
		pattern, name string
		want          bool
	}{
		{"/", "/", true},
		{"/", "/a", false},
		{"/**", "/", true},
		{"/**", "/a/b", true},
		{"/a/**", "/a", true},
		{"/a/**", "/a/b/c", true},
		{"/a/**", "/ab", false},
		{"/a/*", "/a/b", true},
		{"/a/*", "/a/b/c", false},
		{"/a/*", "/a", false},
		{"/a?", "/ab", true},
		{"/a?", "/aé", true},
		{"/a?", "/a\xff", true},
		{"/a?", "/a", false},
		{"/*.js", "/a.js", true},
		{"/*.js", "/a.jsx", false},
		{"/**/x", "/x", true},
		{"/**/x", "/a/b/x", true},
		{"/**/a/**/b", "/a/c/a/d/b", true},
		{"/**/a/*/b", "/a/a/c/b", true},
		{"/**/a/**/b", "/a/c", false},
		{"/a[b]", "/a[b]", true},
		{"/a\\*", "/a\\b", true},
	}
	for _, tt := range tests {
		if got := matchPath(tt.pattern, tt.name); got != tt.want {
			t.Errorf("%s on %s: %v", tt.pattern, tt.name, got)
		}
	}
}

// Patterns that make a naive matcher run for years.
func TestMatchIsNotExponential(t *testing.T) {
	start := time.Now()
	matchPath(strings.Repeat("/**/a", 800)+"/b", strings.Repeat("/a", 2000))
	matchWildcard(strings.Repeat("*a", 2000)+"b", strings.Repeat("a", 4000))
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("took %v", d)
	}
}

func TestPlaceOf(t *testing.T) {
	tests := []struct {
		pattern string
		want    Place
		ok      bool
	}{
		{"/a", Place{"/a", false}, true},
		{"/", Place{"/", false}, true},
		{"/**", Place{"/", true}, true},
		{"/a/b/**", Place{"/a/b", true}, true},
		{"/a/*", Place{"/a", true}, false},
		{"/a/**/b", Place{"/a", true}, false},
		{"/a?/b", Place{"/", true}, false},
	}
	for _, tt := range tests {
		if got, ok := placeOf(tt.pattern); got != tt.want || ok != tt.ok {
			t.Errorf("%s: %v %v", tt.pattern, got, ok)
		}
	}
}

func TestCheckNet(t *testing.T) {
	good := []string{"tcp://localhost:1", "udp://a.b-c:65535", "tcp://*:*", "tcp://*.a:80", "tcp://127.0.0.1:80", "tcp://[::1]:80", "dns://a", "dns://*"}
	bad := []string{"", "tcp", "tcp:/a:1", "TCP://a:1", "tcp://A:1", "tcp://a", "tcp://a:", "tcp://a:01", "tcp://a:65536", "tcp://a:-1",
		"tcp://::1:80", "tcp://[127.0.0.1]:80", "tcp://[::1%lo]:80", "tcp://[0::1]:80", "tcp://127.1:80", "tcp://0x7f:80", "tcp://a*:80",
		"tcp://*.*:80", "tcp://a..b:80", "tcp://a.:80", "tcp://a/b:80", "dns://", "dns://a:53", "dns://1.2.3.4"}
	for _, s := range good {
		if err := checkNet(s); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
	for _, s := range bad {
		if checkNet(s) == nil {
			t.Errorf("%s was accepted", s)
		}
	}
}

func TestMatchNet(t *testing.T) {
	tests := []struct {
		pattern  string
		op       Operation
		resource string
		want     bool
	}{
		{"tcp://localhost:80", "connect", "tcp://localhost:80", true},
		{"tcp://localhost:80", "connect", "tcp://localhost:81", false},
		{"tcp://localhost:80", "connect", "udp://localhost:80", false},
		{"tcp://localhost:*", "connect", "tcp://LOCALHOST:81", true},
		{"tcp://localhost:80", "connect", "tcp://127.0.0.2:80", true},
		{"tcp://localhost:80", "connect", "tcp://[::ffff:127.0.0.1]:80", true},
		{"tcp://127.0.0.1:80", "connect", "tcp://0.0.0.0:80", true},
		{"tcp://*:80", "connect", "tcp://a.b:80", true},
		{"tcp://*.b:80", "connect", "tcp://c.a.b:80", true},
		{"tcp://*.b:80", "connect", "tcp://b:80", false},
		{"tcp://*.b:80", "connect", "tcp://ab:80", false},
		{"dns://a", "dns", "dns://a", true},
		{"dns://a", "connect", "dns://a", false},
		{"tcp://a:80", "dns", "tcp://a:80", false},
		{"tcp://*:*", "connect", "nonsense", false},
	}
	for _, tt := range tests {
		if got := matchNet(tt.pattern, tt.op, tt.resource); got != tt.want {
			t.Errorf("%s, %s %s: %v", tt.pattern, tt.op, tt.resource, got)
		}
	}
}
