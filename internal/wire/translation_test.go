package wire

import (
	"errors"
	"testing"
)

func TestParseTranslation(t *testing.T) {
	got, err := ParseTranslation([]byte("\x00\x00\x01\x02\x02/a/b.ts\x00{}\x00let a\x00b"))
	if want := (Translation{0x102, CommonJSFormat, "/a/b.ts", "{}", "let a\x00b"}); err != nil || got != want {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	for _, body := range []string{"", "\x00\x00\x00\x01", "\x00\x00\x00\x01\x03a\x00\x00b", "\x00\x00\x00\x01\x00a\x00b", "\x00\x00\x00\x01\x00a\x00\x00\xff"} {
		if got, err := ParseTranslation([]byte(body)); !errors.Is(err, ErrFrame) {
			t.Errorf("%q: %v, %v, want ErrFrame", body, got, err)
		}
	}
}
