package report

import "testing"

func TestSanitize(t *testing.T) {
	for _, tc := range []struct{ text, plain, colored string }{
		{"", "", ""},
		{"a\tb\nü✓", "a\tb\nü✓", "a\tb\nü✓"},
		{"\x1b[33m5\x1b[39m", `\x1b[33m5\x1b[39m`, "\x1b[33m5\x1b[39m\x1b[0m"},
		{"\x1b[2J", `\x1b[2J`, `\x1b[2J`},
		{"\x1b]0;title\x07", `\x1b]0;title\x07`, `\x1b]0;title\x07`},
		{"\x1b[1;31m\x1b[H", `\x1b[1;31m\x1b[H`, "\x1b[1;31m" + `\x1b[H` + "\x1b[0m"},
		{"\x1b", `\x1b`, `\x1b`},
		{"a\rb\bc\x7f", `a\x0db\x08c\x7f`, `a\x0db\x08c\x7f`},
		{"\u009b2J", `\u009b2J`, `\u009b2J`},
		{"\u202eabc\u2066", `\u202eabc\u2066`, `\u202eabc\u2066`},
		{"\xff\xfe", "\uFFFD\uFFFD", "\uFFFD\uFFFD"},
	} {
		if got := Sanitize(tc.text, false); got != tc.plain {
			t.Errorf("%q: %q, want %q", tc.text, got, tc.plain)
		}
		if got := Sanitize(tc.text, true); got != tc.colored {
			t.Errorf("%q with colors: %q, want %q", tc.text, got, tc.colored)
		}
	}
}

func FuzzSanitize(f *testing.F) {
	f.Add("\x1b[33m5\x1b[39m")
	f.Add("\x1b[\x1b[3m3m")
	f.Fuzz(func(t *testing.T, text string) {
		if got := Sanitize(text, false); Sanitize(got, false) != got {
			t.Errorf("%q: a control character is left in %q", text, got)
		}
		got := Sanitize(text, true)
		for at := 0; at < len(got); at++ {
			if got[at] == 0x1b && !colorSequence().MatchString(got[at:]) {
				t.Errorf("%q: a control character is left in %q", text, got)
			}
		}
	})
}
