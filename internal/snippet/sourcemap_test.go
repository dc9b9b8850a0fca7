package snippet

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func parseMap(t *testing.T, mappings string, sources ...string) (*SourceMap, error) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"version": 3, "sources": sources, "names": []string{}, "mappings": mappings})
	if err != nil {
		t.Fatal(err)
	}
	return ParseSourceMap(text)
}

func TestOriginal(t *testing.T) {
	m, err := parseMap(t, "AAAA,IAAM,C;;ACCA,gBDAgBA", "a.ts", "b.ts")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		line, column int
		want         SourcePosition
		known        bool
	}{
		{0, 0, SourcePosition{"a.ts", 0, 0}, true},
		{0, 3, SourcePosition{"a.ts", 0, 0}, true},
		{0, 4, SourcePosition{"a.ts", 0, 6}, true},
		{1, 0, SourcePosition{"a.ts", 0, 6}, false},
		{2, 5, SourcePosition{"b.ts", 1, 6}, true},
		{2, 99, SourcePosition{"a.ts", 1, 22}, true},
	} {
		got, known := m.Original(tc.line, tc.column)
		if diff := cmp.Diff(tc.want, got); diff != "" || known != tc.known {
			t.Errorf("%d:%d: known %v, want %v; -want +got\n%s", tc.line, tc.column, known, tc.known, diff)
		}
	}
	if _, known := m.Original(-1, 0); known {
		t.Error("a place before the code is known")
	}
	if diff := cmp.Diff([]string{"a.ts", "b.ts"}, m.sources); diff != "" {
		t.Error(diff)
	}
}

func TestInvalidMaps(t *testing.T) {
	for _, mappings := range []string{"AA", "AAA", "AAAAAA", "A A", "AAAg", "DAAA", "AADA", "AAAD", "ADAA", "ACAA", "gggggggggggggggA", "AAAA,", ","} {
		if _, err := parseMap(t, mappings, "a.ts"); err == nil {
			t.Errorf("%q is accepted", mappings)
		}
	}
	for _, text := range []string{"", "{}", `{"version":2,"mappings":""}`, `{"version":3,"mappings":1}`, "[]"} {
		if _, err := ParseSourceMap([]byte(text)); err == nil {
			t.Errorf("%s is accepted", text)
		}
	}
}

func TestEncodeNumber(t *testing.T) {
	for _, n := range []int{0, 1, 15, 16, 31, 32, 1000, 1 << 30} {
		if got, count, err := decodeNumbers(EncodeNumber(n)); err != nil || count != 1 || got[0] != n {
			t.Errorf("%d became %q, which is %v: %v", n, EncodeNumber(n), got, err)
		}
	}
}

// FuzzSourceMap checks that a parsed map leads only to its sources.
func FuzzSourceMap(f *testing.F) {
	for _, text := range []string{"AAAA,IAAM;;ACCA,gBDAgBA", ";;;", "AAAA,A"} {
		f.Add(text, 0, 1)
	}
	f.Fuzz(func(t *testing.T, mappings string, line, column int) {
		m, err := parseMap(t, mappings, "a", "b")
		if err != nil {
			return
		}
		p, known := m.Original(line, column)
		if p.Line < 0 || p.Column < 0 || known && p.Source != "a" && p.Source != "b" {
			t.Errorf("%q: %d:%d leads to %+v", mappings, line, column, p)
		}
	})
}
