package report

import (
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"

	"gaol/internal/lazyregexp"
)

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Terminal is the user's terminal.
type Terminal struct{ *os.File }

// OpenTerminal returns the terminal that stdin is: see IsTerminal. It does not change it.
func OpenTerminal(stdin any) *Terminal { return &Terminal{stdin.(*os.File)} }

// Size returns the size of the window, or zeros if it is not known.
func (t *Terminal) Size() (rows, cols uint16) {
	width, height, err := term.GetSize(int(t.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		return 0, 0
	}
	return uint16(height), uint16(width)
}

// MakeRaw makes the terminal deliver each key as it is pressed, without echo, until restore
// is called, which is idempotent.
func (t *Terminal) MakeRaw() (restore func(), err error) {
	saved, err := term.MakeRaw(int(t.Fd()))
	return func() { _ = term.Restore(int(t.Fd()), saved) }, err // fails if the terminal is gone
}

// Watch calls onResize with the current size of the window and after each change.
// It also calls restore and exits on a second signal: the first one cancels the
// command's context, the second would kill gaol with the terminal in raw mode.
// Stop ends both.
func (t *Terminal) Watch(onResize func(rows, cols uint16), restore func()) (stop func()) {
	// Signals that find a channel full are lost: one resize is as good as many, but two
	// signals must count even if they arrive together.
	resizes, signals := make(chan os.Signal, 1), make(chan os.Signal, 2)
	signal.Notify(resizes, syscall.SIGWINCH)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	resized := func() {
		if rows, cols := t.Size(); rows > 0 {
			onResize(rows, cols)
		}
	}
	done := make(chan struct{})
	go func() {
		for received := 0; ; {
			select {
			case <-done:
				return
			case <-resizes:
				resized()
			case <-signals:
				if received++; received == 2 {
					restore()
					os.Exit(ExitFailure)
				}
			}
		}
	}()
	resized() // the size may have changed before Notify
	return func() {
		signal.Stop(resizes)
		signal.Stop(signals)
		close(done)
	}
}

// colorSequence matches an escape sequence that changes colors and fonts, and nothing else.
var colorSequence = lazyregexp.New(`^\x1b\[[0-9;]{0,32}m`)

const resetColors = "\x1b[0m"

// Sanitize returns untrusted text with control characters and characters that
// change the direction of writing replaced by visible escapes. Line feeds and tabs
// stay. With colors, color sequences stay too, and a reset follows the text.
func Sanitize(text string, colors bool) string {
	var b strings.Builder
	colored := false
	for len(text) > 0 {
		if found := colorSequence().FindString(text); colors && found != "" {
			b.WriteString(found)
			text, colored = text[len(found):], true
			continue
		}
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == '\n', r == '\t', !unicode.IsControl(r) && !unicode.Is(unicode.Bidi_Control, r):
			b.WriteRune(r) // invalid UTF-8 becomes U+FFFD
		case r < utf8.RuneSelf:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		text = text[size:]
	}
	if colored {
		b.WriteString(resetColors)
	}
	return b.String()
}
