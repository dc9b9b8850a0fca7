package stdio

import (
	"io"
	"os"
	"testing"
	"time"
)

// What is expected is read as soon as it comes; what does not come costs little, and does not
// keep the reader from anything else.
func TestPipeReadExpected(t *testing.T) {
	from, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	r := NewReader(from)
	read := func(want string) {
		t.Helper()
		buf := make([]byte, 16)
		if n, err := r.Read(buf); err != nil || string(buf[:n]) != want {
			t.Errorf("read %q, %v, want %q", buf[:n], err, want)
		}
	}
	write := func(text string) {
		if _, err := io.WriteString(to, text); err != nil {
			t.Error(err)
		}
	}
	r.spinner.due = true
	write("at once")
	read("at once")
	if r.spinner.due || r.spinner.pause != 0 {
		t.Errorf("%+v after what came at once", r.spinner)
	}

	r.spinner.due = true
	time.AfterFunc(50*time.Millisecond, func() { write("late") })
	read("late")
	if r.spinner.pause != spinPause {
		t.Errorf("%+v after what came late", r.spinner)
	}
	for range spinPause {
		if r.Expect(); r.spinner.due {
			t.Fatal("it looks again too soon")
		}
	}
	if r.Expect(); r.spinner.due != canSpin {
		t.Error("it does not look again")
	}

	r.spinner.due = true
	to.Close()
	if n, err := r.Read(make([]byte, 16)); n != 0 || err != io.EOF {
		t.Errorf("at the end: %d, %v", n, err)
	}
}

// A run that has ended keeps nobody looking.
func TestPipeReadExpectedAtTheEnd(t *testing.T) {
	from, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	defer to.Close() // another run holds it
	r := NewReader(from)
	r.spinner.due = true
	r.End()
	if n, err := r.Read(make([]byte, 16)); n != 0 || err != io.EOF {
		t.Errorf("%d, %v", n, err)
	}
}
