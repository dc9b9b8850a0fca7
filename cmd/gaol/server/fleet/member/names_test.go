package member

import (
	"encoding/json"
	"fmt"
	"testing"
)

func names(prefix string, n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprint(prefix, i))
	}
	return list
}

// A filter has all its names, also after encoding, and few others: also if those differ in their last characters only.
func TestNames(t *testing.T) {
	for _, prefix := range []string{"image/", "snapshot/token-ci/a-long-prefix-", ""} {
		have := names(prefix, 2000)
		text, err := json.Marshal(Load{Names: NewNames(have)})
		if err != nil {
			t.Fatal(err)
		}
		if len(text) > maxHint/4 {
			t.Errorf("a hint has %d bytes", len(text))
		}
		var l Load
		if err := json.Unmarshal(text, &l); err != nil {
			t.Fatal(err)
		}
		if !l.Names.HasAll(have) || !l.Names.HasAll(nil) {
			t.Errorf("%s: a name is missing", prefix)
		}
		var wrong int
		others := names(prefix, 22_000)[2000:]
		for _, other := range others {
			if l.Names.HasAll([]string{other}) {
				wrong++
			}
		}
		t.Logf("%q: %d of %d other names", prefix, wrong, len(others))
		if wrong > len(others)/500 {
			t.Errorf("%q: it has %d of %d other names", prefix, wrong, len(others))
		}
	}
	one := NewNames([]string{"a"})
	if one.HasAll([]string{"a", "b"}) || one.HasAll([]string{"b", "a"}) || !one.HasAll([]string{"a", "a"}) {
		t.Error("HasAll of several names")
	}
}

// A filter without bits has no names.
func TestNoNames(t *testing.T) {
	for _, n := range []Names{nil, {}, NewNames(nil)} {
		if n.HasAll([]string{"a"}) || n.HasAll([]string{""}) || !n.HasAll(nil) {
			t.Errorf("%d bytes: it has names", len(n))
		}
	}
}
