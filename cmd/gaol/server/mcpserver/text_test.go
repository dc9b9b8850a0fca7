package mcpserver

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCut(t *testing.T) {
	for _, c := range []struct {
		text  string
		n     int
		shown string
		more  bool
	}{
		{"", 3, "", false},
		{"abc", 3, "abc", false},
		{"äöü", 3, "äöü", false},
		{"äöüx", 3, "äöü", true},
		{"a\xff\xffb", 3, "a\xff\xff", true},
	} {
		if shown, more := cut(c.text, c.n); shown != c.shown || more != c.more {
			t.Errorf("cut(%q, %d) = %q, %v", c.text, c.n, shown, more)
		}
	}
}

func TestOneLine(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "a\nb\n\n": "b", "\x1b[31mred\x07\r\n": `\x1b[31mred\x07`, "  x  y\t": "x y", "\xff\x00": `�\x00`,
	} {
		if got := oneLine(text); got != want {
			t.Errorf("oneLine(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestShares(t *testing.T) {
	long := string(make([]byte, 100_000))
	for _, c := range []struct {
		first, second string
		want          [2]int
	}{
		{"", "", [2]int{maxText, maxText}},
		{long, "", [2]int{maxText, maxText / 4}},
		{"", long, [2]int{0, maxText}},
		{long, long, [2]int{maxText / 4 * 3, maxText / 4}},
		{"abc", long, [2]int{3, maxText - 3}},
	} {
		first, second := shares(c.first, c.second)
		if diff := cmp.Diff(c.want, [2]int{first, second}); diff != "" {
			t.Errorf("%d and %d bytes: %s", len(c.first), len(c.second), diff)
		}
	}
}

func TestURI(t *testing.T) {
	for _, path := range []string{"/a", "/workspace/ü %?#.txt", "/a b/c//d", "/\xff"} {
		id, got, ok := parseURI(fileURI("sb-1", path))
		if !ok || id != "sb-1" || got != path {
			t.Errorf("%q: %q, %q, %v", path, id, got, ok)
		}
	}
	for _, uri := range []string{"", "gaol://sandbox/", "gaol://sandbox/x", "gaol://other/x/y", "gaol://sandbox/x/%zz", "file:///x"} {
		if id, path, ok := parseURI(uri); ok {
			t.Errorf("%q: %q, %q", uri, id, path)
		}
	}
}

func FuzzURI(f *testing.F) {
	f.Add("gaol://sandbox/sb-1/a%20b")
	f.Fuzz(func(t *testing.T, uri string) {
		id, path, ok := parseURI(uri)
		if !ok {
			return
		}
		if again, same, ok := parseURI(fileURI(id, path)); !ok || again != id || same != path {
			t.Errorf("%q: %q %q, then %q %q", uri, id, path, again, same)
		}
	})
}
