package settings

import (
	"strings"
	"testing"
)

func TestPreviewHost(t *testing.T) {
	for host, ok := range map[string]bool{
		"": true, "preview.example.com": true, "localhost": true, "a-b.c1": true,
		"Preview.example.com": false, "preview.example.com:80": false, ".example.com": false, "example.com.": false, "*.example.com": false,
		"127.0.0.1": false, "[::1]": false, "-a.com": false, "a..b": false, "a/b": false, strings.Repeat("a.", 100) + "a": false,
	} {
		s := &Settings{PreviewHost: host}
		if err := s.checkPreviewHost(); (err == nil) != ok {
			t.Errorf("%q: %v, want valid %t", host, err, ok)
		}
	}
}
