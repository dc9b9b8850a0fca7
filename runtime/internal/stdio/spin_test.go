package stdio

import (
	"io"
	"os"
	"testing"
	"time"
)

// An expected byte is read as soon as it arrives. If it does not arrive, the reader spins only
// briefly, and can still do other work.
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
	r.spinner.expecting = true
	write("at once")
	read("at once")
	if r.spinner.expecting || r.spinner.pause != 0 {
		t.Errorf("%+v after immediate data", r.spinner)
	}

	r.spinner.expecting = true
	time.AfterFunc(50*time.Millisecond, func() { write("late") })
	read("late")
	if r.spinner.pause != spinPause {
		t.Errorf("%+v after late data", r.spinner)
	}
	for range spinPause {
		if r.Expect(); r.spinner.expecting {
			t.Fatal("spins again too soon")
		}
	}
	if r.Expect(); r.spinner.expecting != canSpin {
		t.Error("does not spin again")
	}

	r.spinner.expecting = true
	to.Close()
	if n, err := r.Read(make([]byte, 16)); n != 0 || err != io.EOF {
		t.Errorf("at the end: %d, %v", n, err)
	}
}

// The reader does not spin after the end of a run.
func TestPipeReadExpectedAtTheEnd(t *testing.T) {
	from, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	defer to.Close() // as if another run held it
	r := NewReader(from)
	r.spinner.expecting = true
	r.End()
	if n, err := r.Read(make([]byte, 16)); n != 0 || err != io.EOF {
		t.Errorf("%d, %v", n, err)
	}
}
