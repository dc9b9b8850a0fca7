package report

import "testing"

func TestParseSize(t *testing.T) {
	for _, tc := range []struct {
		text string
		want int64
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
		n, err := ParseSize(tc.text)
		if err != nil || n != tc.want || FormatSize(n) != tc.back {
			t.Errorf("%q: %d, %q, %v; want %d, %q", tc.text, n, FormatSize(n), err, tc.want, tc.back)
		}
	}
}

func TestParseSizeRejects(t *testing.T) {
	for _, text := range []string{
		"", "0", "0m", "-1", "+1", "1.5m", "k", "1 m", " 1m", "1m ", "1mb", "1mib", "1t", "0x10", "1_000", "1e3",
		"8589934592g", "9223372036854775808", "18446744073709551616", "999999999999999999999m", "１m",
	} {
		if n, err := ParseSize(text); err == nil {
			t.Errorf("%q: %d, want an error", text, n)
		}
	}
}

func FuzzParseSize(f *testing.F) {
	f.Add("64k")
	f.Add("9223372036854775807")
	f.Fuzz(func(t *testing.T, text string) {
		n, err := ParseSize(text)
		if err != nil {
			return
		}
		if n <= 0 {
			t.Errorf("%q is %d", text, n)
		}
		if again, err := ParseSize(FormatSize(n)); err != nil || again != n {
			t.Errorf("%q is %d, printed as %q, which is %d, %v", text, n, FormatSize(n), again, err)
		}
	})
}
