package runtime

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseCompletion(t *testing.T) {
	for _, tc := range []struct {
		line   string
		path   []string
		prefix string
		ok     bool
	}{
		{"", []string{}, "", true},
		{"a", []string{}, "a", true},
		{"a.", []string{"a"}, "", true},
		{"a.b.c", []string{"a", "b"}, "c", true},
		{"a?.b . c", []string{"a", "b"}, "c", true},
		{"x = a.b", []string{"a"}, "b", true},
		{"f(a.b", []string{"a"}, "b", true},
		{"`${a.b", []string{"a"}, "b", true},
		{"[...a.b", []string{"a"}, "b", true},
		{"größe.ä", []string{"größe"}, "ä", true},
		{"$._", []string{"$"}, "_", true},
		{"f().a", nil, "", false},
		{"a[0].b", nil, "", false},
		{"'a", nil, "", false},
		{"1.", nil, "", false},
		{"1.5", nil, "", false},
		{"x = ", []string{}, "", true},
		{strings.Repeat("a.", deepestPath) + "b", nil, "b", true},
		{strings.Repeat("a.", deepestPath+1) + "b", nil, "", false},
		{strings.Repeat("a", maxCompleteLine+1), nil, "", false},
	} {
		c, ok := parseCompletion(tc.line)
		if ok != tc.ok || ok && tc.path != nil && !cmp.Equal(c, completion{tc.path, tc.prefix}) {
			t.Errorf("%.50s: %+v %v", tc.line, c, ok)
		}
	}
}

// The names that the guest returns are checked against the request.
func TestCompletionNames(t *testing.T) {
	long := make([]string, mostNames+1)
	for _, tc := range []struct {
		value any
		want  []string
	}{
		{[]string{"ab", "a", "ab", "b", "a b", "a\x1b[31m", "a-c", ""}, []string{"a", "ab"}},
		{[]string{}, []string{}},
		{long, nil},
		{map[string]int{"a": 1}, nil},
		{[]any{"a", 1}, nil},
		{nil, nil},
	} {
		text, _ := json.Marshal(tc.value)
		cl := &cell{value: text}
		if got := cl.names("a"); !cmp.Equal(got, tc.want) {
			t.Errorf("%.50s: %q, want %q", text, got, tc.want)
		}
	}
	if got := (&cell{}).names(""); got != nil {
		t.Errorf("without a reply: %q", got)
	}
}
