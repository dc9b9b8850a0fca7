package flags

import (
	"testing"

	"gaol/runtime"
)

func TestRejectedValueKeepsTarget(t *testing.T) {
	n := int64(7)
	for _, text := range []string{"", "0", "x"} {
		if err := Size(&n).Set(text); err == nil || n != 7 {
			t.Errorf("%q: %d, %v; want an error and no change", text, n, err)
		}
	}
}

func TestLaunchers(t *testing.T) {
	for _, tc := range []struct{ text, one, list string }{
		{"exec", "exec", "exec"},
		{"zygote", "zygote", "zygote"},
		{"both", "", "both"},
		{"", "", ""},
		{"Exec", "", ""},
	} {
		var one runtime.Launcher
		flag := Launcher(&one)
		if err := flag.Set(tc.text); (err == nil) != (tc.one != "") || err == nil && flag.String() != tc.one {
			t.Errorf("%q: %v, %v; want %q", tc.text, &one, err, tc.one)
		}
		var list []runtime.Launcher
		flag = Launchers(&list)
		if err := flag.Set(tc.text); (err == nil) != (tc.list != "") || err == nil && flag.String() != tc.list {
			t.Errorf("%q: %v, %v; want %q", tc.text, list, err, tc.list)
		}
	}
}
