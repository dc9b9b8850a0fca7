package main

import "testing"

func TestSize(t *testing.T) {
	for _, tc := range []struct {
		text string
		want size
		back string
	}{
		{"1", 1, "1"},
		{"1023", 1023, "1023"},
		{"64k", 64 << 10, "64k"},
		{"64K", 64 << 10, "64k"},
		{"256m", 256 << 20, "256m"},
		{"1024m", 1 << 30, "1g"},
		{"3g", 3 << 30, "3g"},
		{"8589934591g", 8589934591 << 30, "8589934591g"},
		{"9223372036854775807", 1<<63 - 1, "9223372036854775807"},
	} {
		var v size
		if err := v.Set(tc.text); err != nil || v != tc.want || v.String() != tc.back {
			t.Errorf("%q: %d, %q, %v; want %d, %q", tc.text, v, v.String(), err, tc.want, tc.back)
		}
	}
}

func TestSizeRefuses(t *testing.T) {
	for _, text := range []string{
		"", "0", "0m", "-1", "+1", "1.5m", "k", "1 m", " 1m", "1m ", "1mb", "1mib", "1t", "0x10", "1_000", "1e3",
		"8589934592g", "9223372036854775808", "18446744073709551616", "999999999999999999999m", "１m",
	} {
		v := size(7)
		if err := v.Set(text); err == nil || v != 7 {
			t.Errorf("%q: %d, %v; want an error and no change", text, v, err)
		}
	}
}

func FuzzSize(f *testing.F) {
	f.Add("64k")
	f.Add("9223372036854775807")
	f.Fuzz(func(t *testing.T, text string) {
		var v, again size
		if v.Set(text) != nil {
			return
		}
		if v <= 0 {
			t.Errorf("%q is %d", text, v)
		}
		if err := again.Set(v.String()); err != nil || again != v {
			t.Errorf("%q is %d, which reads %q, which is %d, %v", text, v, v.String(), again, err)
		}
	})
}

func TestLaunchers(t *testing.T) {
	for _, tc := range []struct{ text, one, some string }{
		{"exec", "exec", "exec"},
		{"zygote", "zygote", "zygote"},
		{"both", "", "both"},
		{"", "", ""},
		{"Exec", "", ""},
	} {
		var one launcher
		if err := one.Set(tc.text); (err == nil) != (tc.one != "") || err == nil && one.String() != tc.one {
			t.Errorf("%q: %v, %v; want %q", tc.text, &one, err, tc.one)
		}
		var some launchers
		if err := some.Set(tc.text); (err == nil) != (tc.some != "") || err == nil && some.String() != tc.some {
			t.Errorf("%q: %v, %v; want %q", tc.text, &some, err, tc.some)
		}
	}
}
